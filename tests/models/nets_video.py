"""Classification of videos: TSN, TSM, and an inflated 3-D network with non-local blocks."""
import math

from harness import drawn, net

CLASSES, SEGMENTS, SIZE = 6, 4, 32


def clips(name, shape, batch=2, soft=False):
    """step -> clips and labels; `soft` gives pairs of labels with a weight, as mixup does."""
    def feed(step):
        rng = drawn(name, step)
        result = {"image": rng.normal(0, 1, [batch] + shape).astype("float32"),
                  "label": rng.randint(0, CLASSES, (batch, 1)).astype("int64")}
        if soft:
            result.update(label_b=rng.randint(0, CLASSES, (batch, 1)).astype("int64"),
                          lam=rng.uniform(0, 1, (batch, 1)).astype("float32"))
        return result
    return feed


class FrameNet(object):
    """A small residual network on the frames, whose features are averaged over the segments."""

    def __init__(self, fluid, seg_num, is_training=True):
        self.fluid, self.seg_num, self.is_training = fluid, seg_num, is_training

    def conv_bn_layer(self, input, num_filters, filter_size, stride=1, act=None, name=None):
        ParamAttr = self.fluid.param_attr.ParamAttr
        conv = self.fluid.layers.conv2d(
            input=input, num_filters=num_filters, filter_size=filter_size, stride=stride,
            padding=(filter_size - 1) // 2, param_attr=ParamAttr(name=name + "_weights"), bias_attr=False)
        bn_name = "bn_" + name
        return self.fluid.layers.batch_norm(
            input=conv, act=act, is_test=not self.is_training, param_attr=ParamAttr(name=bn_name + "_scale"),
            bias_attr=ParamAttr(bn_name + "_offset"), moving_mean_name=bn_name + "_mean",
            moving_variance_name=bn_name + "_variance")

    def shifted(self, input):
        return input

    def block(self, input, num_filters, stride, name):
        conv0 = self.conv_bn_layer(self.shifted(input), num_filters, 1, act="relu", name=name + "_branch2a")
        conv1 = self.conv_bn_layer(conv0, num_filters, 3, stride, act="relu", name=name + "_branch2b")
        conv2 = self.conv_bn_layer(conv1, num_filters * 2, 1, name=name + "_branch2c")
        short = input
        if input.shape[1] != num_filters * 2 or stride != 1:
            short = self.conv_bn_layer(input, num_filters * 2, 1, stride, name=name + "_branch1")
        return self.fluid.layers.elementwise_add(x=short, y=conv2, act="relu")

    def net(self, input, class_dim):
        layers = self.fluid.layers
        channels, short_size = input.shape[2], input.shape[3]
        x = layers.reshape(x=input, shape=[-1, channels, short_size, short_size])
        x = self.conv_bn_layer(x, 6, 7, 2, act="relu", name="conv1")
        x = layers.pool2d(input=x, pool_size=3, pool_stride=2, pool_padding=1, pool_type="max")
        x = self.block(x, 6, 1, "res2a")
        x = self.block(x, 8, 2, "res3a")
        x = layers.pool2d(input=x, pool_size=7, pool_type="avg", global_pooling=True)
        feature = layers.reshape(x=x, shape=[-1, self.seg_num, x.shape[1]])
        out = layers.reduce_mean(feature, dim=1)
        drop = layers.dropout(x=out, dropout_prob=0.0)
        stdv = 1.0 / math.sqrt(drop.shape[-1] * 1.0)
        return layers.fc(input=drop, size=class_dim, act="softmax", param_attr=self.fluid.ParamAttr(
            initializer=self.fluid.initializer.Uniform(-stdv, stdv)), bias_attr=self.fluid.param_attr.ParamAttr(
            learning_rate=2.0, regularizer=self.fluid.regularizer.L2Decay(0.)))


def evaluated(fluid, build, names):
    """A separate test program, whose parameters have equal names."""
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()), fluid.unique_name.guard():
        out = build(False)
    return {"test": program, "test_fetch": [out], "test_feed": names}


@net("tsn")
def tsn(fluid):
    shape = [SEGMENTS, 3, SIZE, SIZE]

    def build(is_training):
        image = fluid.data(name="image", shape=[None] + shape, dtype="float32")
        return FrameNet(fluid, SEGMENTS, is_training).net(image, CLASSES)

    out = build(True)
    label = fluid.data(name="label", shape=[None, 1], dtype="int64")
    loss = fluid.layers.mean(fluid.layers.cross_entropy(input=out, label=label, ignore_index=-1))
    rate = fluid.layers.piecewise_decay(boundaries=[1, 2], values=[0.01, 0.001, 0.0001])
    optimizer = fluid.optimizer.Momentum(rate, 0.9, regularization=fluid.regularizer.L2Decay(1e-4))
    optimizer.minimize(loss)
    return dict(evaluated(fluid, build, ["image"]), feed=clips("tsn", shape), fetch=[loss, out])


class ShiftedNet(FrameNet):
    def shifted(self, input):
        return self.fluid.layers.temporal_shift(input, self.seg_num, 1.0 / 6)


@net("tsm")
def tsm(fluid):
    """With mixup, and a clip of each gradient's norm."""
    shape = [SEGMENTS, 3, SIZE, SIZE]

    def build(is_training):
        image = fluid.data(name="image", shape=[None] + shape, dtype="float32")
        return ShiftedNet(fluid, SEGMENTS, is_training).net(image, CLASSES)

    out = build(True)
    label = fluid.data(name="label", shape=[None, 1], dtype="int64")
    label_b = fluid.data(name="label_b", shape=[None, 1], dtype="int64")
    lam = fluid.data(name="lam", shape=[None, 1], dtype="float32")
    loss_a = fluid.layers.cross_entropy(input=out, label=label)
    loss_b = fluid.layers.cross_entropy(input=out, label=label_b)
    loss = fluid.layers.mean(loss_a * lam + loss_b * (1 - lam))
    acc = fluid.layers.accuracy(out, label)
    optimizer = fluid.optimizer.Momentum(
        learning_rate=fluid.layers.cosine_decay(0.02, 1, 3), momentum=0.9, use_nesterov=True,
        grad_clip=fluid.clip.GradientClipByNorm(1.0))
    optimizer.minimize(loss)
    return dict(evaluated(fluid, build, ["image"]), feed=clips("tsm", shape, soft=True), fetch=[loss, acc, out])


class NonLocalNet(object):
    """3-D convolutions, some over time; affinities between all positions of a pooled volume."""

    def __init__(self, fluid, is_training=True):
        self.fluid, self.is_training = fluid, is_training

    def conv3d(self, input, filters, size, stride=1, padding=0, name=None, bias=False):
        ParamAttr, initializer = self.fluid.ParamAttr, self.fluid.initializer
        return self.fluid.layers.conv3d(
            input=input, num_filters=filters, filter_size=size, stride=stride, padding=padding, param_attr=ParamAttr(
                initializer=initializer.MSRA(), name=name + "_weights"), bias_attr=ParamAttr(
                initializer=initializer.Constant(value=0.0), name=name + "_bias") if bias else False, name=name)

    def affine_bn(self, input, name, act=None, scale=1.0):
        ParamAttr = self.fluid.ParamAttr
        return self.fluid.layers.batch_norm(
            input, act=act, is_test=not self.is_training, momentum=0.9, epsilon=1e-5, param_attr=ParamAttr(
                name=name + "_scale", initializer=self.fluid.initializer.Constant(scale),
                regularizer=self.fluid.regularizer.L2Decay(0.0)), bias_attr=ParamAttr(
                name=name + "_offset", regularizer=self.fluid.regularizer.L2Decay(0.0)),
            moving_mean_name=name + "_rm", moving_variance_name=name + "_riv")

    def unit(self, input, filters, stride, use_temporal, name):
        layers = self.fluid.layers
        time = 3 if use_temporal else 1
        x = self.conv3d(input, filters, [time, 1, 1], 1, [time // 2, 0, 0], name + "_a")
        x = self.affine_bn(x, name + "_a_bn", "relu")
        x = self.conv3d(x, filters, [1, 3, 3], [1, stride, stride], [0, 1, 1], name + "_b")
        x = self.affine_bn(x, name + "_b_bn", scale=0.5)
        if input.shape[1] != filters or stride != 1:
            input = self.affine_bn(self.conv3d(input, filters, 1, [1, stride, stride], 0, name + "_1"), name + "_1_bn")
        return layers.relu(layers.elementwise_add(input, x))

    def non_local(self, input, inner, name):
        layers = self.fluid.layers
        pooled = layers.pool3d(input, pool_size=[1, 2, 2], pool_type="max", pool_stride=[1, 2, 2])
        theta = self.conv3d(input, inner, 1, name=name + "_theta", bias=True)
        phi = self.conv3d(pooled, inner, 1, name=name + "_phi", bias=True)
        g = self.conv3d(pooled, inner, 1, name=name + "_g", bias=True)
        theta, phi, g = (layers.reshape(v, [0, 0, -1]) for v in (theta, phi, g))
        theta = layers.transpose(theta, [0, 2, 1])
        theta_phi = layers.matmul(theta, phi, name=name + "_affinity", alpha=inner ** -0.5)
        p = layers.softmax(theta_phi, name=name + "_affinity_prob")
        t = layers.matmul(g, layers.transpose(p, [0, 2, 1]), name=name + "_y")
        shape = layers.shape(input)
        shape.stop_gradient = True
        t = layers.reshape(t, shape=[-1, inner] + list(input.shape[2:]))
        out = self.affine_bn(self.conv3d(t, input.shape[1], 1, name=name + "_out", bias=True), name + "_bn", scale=0.1)
        return layers.elementwise_add(input, out, name=name + "_sum")

    def net(self, image, class_dim):
        layers = self.fluid.layers
        x = self.conv3d(image, 6, [3, 5, 5], [1, 2, 2], [1, 2, 2], "conv1")
        x = self.affine_bn(x, "res_conv1_bn", "relu")
        x = layers.pool3d(x, pool_size=[1, 3, 3], pool_type="max", pool_stride=[1, 2, 2], pool_padding=[0, 1, 1])
        x = self.unit(x, 8, 1, True, "res2")
        x = layers.pool3d(x, pool_size=[2, 1, 1], pool_type="max", pool_stride=[2, 1, 1])
        x = self.non_local(x, 4, "nonlocal_conv3_1")
        x = self.unit(x, 10, 2, False, "res3")
        x = layers.pool3d(x, pool_size=x.shape[2:], pool_type="avg", pool_stride=[1, 1, 1])
        x = layers.dropout(x, dropout_prob=0.0, is_test=not self.is_training,
                           dropout_implementation="upscale_in_train")
        return layers.fc(x, class_dim, param_attr=self.fluid.ParamAttr(
            initializer=self.fluid.initializer.Normal(loc=0.0, scale=0.01), name="pred_w"),
            bias_attr=self.fluid.ParamAttr(name="pred_b", learning_rate=2.0))


@net("nonlocal_i3d")
def nonlocal_i3d(fluid):
    shape = [3, SEGMENTS, SIZE, SIZE]

    def build(is_training):
        image = fluid.data(name="image", shape=[None] + shape, dtype="float32")
        return NonLocalNet(fluid, is_training).net(image, CLASSES)

    out = build(True)
    label = fluid.data(name="label", shape=[None, 1], dtype="int64")
    cost, probs = fluid.layers.softmax_with_cross_entropy(out, label, return_softmax=True)
    loss = fluid.layers.mean(cost)
    rate = fluid.layers.linear_lr_warmup(fluid.layers.piecewise_decay([2], [0.05, 0.005]), 1, 0.01, 0.05)
    optimizer = fluid.optimizer.Momentum(rate, 0.9, regularization=fluid.regularizer.L2Decay(1e-4),
                                         use_nesterov=True)
    optimizer.minimize(loss)
    return dict(evaluated(fluid, build, ["image"]), feed=clips("nonlocal", shape), fetch=[loss, probs])
