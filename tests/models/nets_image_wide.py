"""Image classification with scaled or parallel branches: EfficientNet, Xception, HRNet."""
import math

from harness import net
from image_inputs import CLASSES, classifier, images, inputs, smoothed_cost


class EfficientNet(object):
    """Inverted residuals with squeeze and excitation, swish, drop connect and padding as in TensorFlow."""

    def __init__(self, fluid, drop_connect_rate=0.0):
        self.fluid, self.drop_connect_rate = fluid, drop_connect_rate
        self.bn_mom, self.bn_eps = 0.99, 1e-3

    def round_filters(self, filters, width=0.1, divisor=4):
        multiplied = filters * width
        new_filters = max(divisor, int(multiplied + divisor / 2) // divisor * divisor)
        if new_filters < 0.9 * multiplied:
            new_filters += divisor
        return int(new_filters)

    def same_padding(self, size, stride, kernel):
        pad = max((math.ceil(size / stride) - 1) * stride + kernel - size, 0)
        return [pad // 2, pad - pad // 2]

    def conv_norm(self, input, filters, size, stride=1, groups=1, norm=True, act=None, name=None):
        layers, ParamAttr = self.fluid.layers, self.fluid.ParamAttr
        fan = size * size * filters
        begin, end = self.same_padding(input.shape[2], stride, size)
        conv = layers.conv2d(
            input, filters, size, stride=stride, padding=[[0, 0], [0, 0], [begin, end], [begin, end]], groups=groups,
            param_attr=ParamAttr(name=name + "_weights", initializer=self.fluid.initializer.Normal(
                0.0, math.sqrt(2.0 / fan))),
            bias_attr=False if norm else ParamAttr(
                name=name + "_offset", regularizer=self.fluid.regularizer.L2Decay(0.)))
        if not norm:
            return conv
        no_decay = self.fluid.regularizer.L2DecayRegularizer(regularization_coeff=0.0)
        conv = layers.batch_norm(
            conv, momentum=self.bn_mom, epsilon=self.bn_eps, name="bn_" + name,
            moving_mean_name="bn_" + name + "_mean", moving_variance_name="bn_" + name + "_variance",
            param_attr=ParamAttr(name="bn_" + name + "_scale", regularizer=no_decay),
            bias_attr=ParamAttr(name="bn_" + name + "_offset", regularizer=no_decay))
        return layers.swish(conv) if act == "swish" else conv

    def drop_connect(self, inputs, prob):
        layers = self.fluid.layers
        keep_prob = 1.0 - prob
        random_tensor = keep_prob + layers.uniform_random_batch_size_like(inputs, [-1, 1, 1, 1], min=0.0, max=1.0)
        binary_tensor = layers.floor(random_tensor)
        return inputs / keep_prob * binary_tensor

    def mb_conv_block(self, inputs, filters, size, stride, expand, se_ratio, name):
        layers = self.fluid.layers
        channels = inputs.shape[1]
        x, oup = inputs, channels * expand
        if expand != 1:
            x = self.conv_norm(x, oup, 1, act="swish", name=name + "_expand_conv")
        x = self.conv_norm(x, oup, size, stride, groups=oup, act="swish", name=name + "_depthwise_conv")
        squeezed = layers.pool2d(input=x, pool_type="avg", global_pooling=True, use_cudnn=False)
        squeezed = self.conv_norm(squeezed, max(1, int(channels * se_ratio)), 1, norm=False, name=name + "_se_reduce")
        squeezed = self.conv_norm(layers.swish(squeezed), oup, 1, norm=False, name=name + "_se_expand")
        x = x * layers.sigmoid(squeezed)
        x = self.conv_norm(x, filters, 1, name=name + "_project_conv")
        if stride == 1 and channels == filters:
            x = layers.elementwise_add(self.drop_connect(x, self.drop_connect_rate), inputs)
        return x

    def net(self, input, class_dim):
        x = self.conv_norm(input, self.round_filters(64), 3, 2, act="swish", name="_conv_stem")
        for i, (filters, size, stride, expand) in enumerate([(64, 3, 1, 1), (96, 3, 2, 6), (96, 5, 1, 6),
                                                             (160, 5, 2, 6)]):
            x = self.mb_conv_block(x, self.round_filters(filters), size, stride, expand, 0.25, "_blocks.%d." % i)
        x = self.conv_norm(x, self.round_filters(640), 1, act="swish", name="_conv_head")
        pool = self.fluid.layers.pool2d(input=x, pool_type="avg", global_pooling=True, use_cudnn=False)
        init_range = 1.0 / math.sqrt(class_dim)
        return self.fluid.layers.fc(pool, class_dim, name="_fc", param_attr=self.fluid.ParamAttr(
            name="_fc_weights", initializer=self.fluid.initializer.Uniform(low=-init_range, high=init_range)),
            bias_attr=self.fluid.ParamAttr(name="_fc_offset"))


@net("efficientnet")
def efficientnet(fluid):
    """With the exponential moving average of its parameters in the test, as its authors evaluate it."""
    image, label = inputs(fluid, 32)
    out = EfficientNet(fluid).net(image, CLASSES)
    rate = fluid.layers.exponential_decay(0.016, decay_steps=2, decay_rate=0.97, staircase=True)
    optimizer = fluid.optimizer.RMSProp(
        learning_rate=rate, rho=0.9, momentum=0.9, epsilon=0.001, regularization=fluid.regularizer.L2Decay(1e-5))
    built = classifier(fluid, "efficientnet", out, label, optimizer, 32, smooth=True)
    global_steps = fluid.layers.learning_rate_scheduler._decay_step_counter()
    ema = fluid.optimizer.ExponentialMovingAverage(0.99, thres_steps=global_steps)
    ema.update()
    return dict(built, fetch=built["fetch"] + [rate, global_steps], around_test=ema.apply)


class Xception(EfficientNet):
    """Depthwise separable convolutions with shortcuts that are convolutions of 1x1."""

    def bn(self, input, name, act=None):
        return self.fluid.layers.batch_norm(input, act=act, epsilon=1e-3, name=name)

    def separable(self, input, filters, stride, name):
        layers, ParamAttr = self.fluid.layers, self.fluid.ParamAttr
        normal = self.fluid.initializer.TruncatedNormal(loc=0.0, scale=0.09)
        x = layers.conv2d(input, input.shape[1], 3, stride, padding=1, groups=input.shape[1], bias_attr=False,
                          use_cudnn=False, param_attr=ParamAttr(initializer=normal, name=name + "/depthwise/weights"))
        x = layers.conv2d(x, filters, 1, bias_attr=False, param_attr=ParamAttr(
            initializer=normal, name=name + "/pointwise/weights"))
        return self.bn(x, name + "/BatchNorm")

    def block(self, input, filters, stride, name):
        layers = self.fluid.layers
        x = input
        for i in range(3):
            x = self.separable(layers.relu(x), filters, stride if i == 2 else 1, "%s/sep%d" % (name, i))
        if input.shape[1] != filters or stride != 1:
            input = self.bn(layers.conv2d(input, filters, 1, stride, bias_attr=False, name=name + "_shortcut"),
                            name + "/shortcut/BatchNorm")
        return layers.elementwise_add(x, input)

    def net(self, input, class_dim):
        layers = self.fluid.layers
        with self.fluid.name_scope("entry_flow"):
            x = layers.conv2d(input, 4, 3, stride=2, padding=1, bias_attr=False, name="conv1")
            x = self.bn(x, "conv1_bn", act="relu")
            x = self.block(x, 12, 2, "entry_flow/block1")
        with self.fluid.name_scope("middle_flow"):
            x = self.block(x, 12, 1, "middle_flow/block1")
        with self.fluid.name_scope("exit_flow"):
            x = self.block(x, 20, 2, "exit_flow/block1")
            x = layers.relu(self.separable(x, 32, 1, "exit_flow/sep"))
            pool = layers.reduce_mean(x, dim=[2, 3], keep_dim=False)
        return layers.fc(pool, class_dim, param_attr=self.fluid.ParamAttr(
            name="fc_weights", initializer=self.fluid.initializer.TruncatedNormal(scale=0.05)),
            bias_attr=self.fluid.ParamAttr(name="fc_offset"))


@net("xception")
def xception(fluid):
    image, label = inputs(fluid, 32)
    out = Xception(fluid).net(image, CLASSES)
    optimizer = fluid.optimizer.Momentum(
        learning_rate=fluid.layers.noam_decay(d_model=64, warmup_steps=2), momentum=0.9, use_nesterov=True,
        regularization=fluid.regularizer.L2Decay(1e-4), grad_clip=fluid.clip.GradientClipByGlobalNorm(5.0))
    return classifier(fluid, "xception", out, label, optimizer, 32)


class HRNet(EfficientNet):
    """Branches of several resolutions that exchange their features by sums."""

    def conv(self, input, filters, size=3, stride=1, act="relu", name=None):
        ParamAttr = self.fluid.ParamAttr
        x = self.fluid.layers.conv2d(
            input=input, num_filters=filters, filter_size=size, stride=stride, padding=(size - 1) // 2, act=None,
            param_attr=ParamAttr(initializer=self.fluid.initializer.MSRA(), name=name + "_weights"), bias_attr=False)
        return self.fluid.layers.batch_norm(x, act=act, param_attr=ParamAttr(
            name=name + "_bn_scale", initializer=self.fluid.initializer.Constant(1.0)), bias_attr=ParamAttr(
            name=name + "_bn_offset", initializer=self.fluid.initializer.Constant(0.0)))

    def fuse(self, branches, name):
        layers, outs = self.fluid.layers, []
        for i in range(len(branches)):
            residual = branches[i]
            for j in range(len(branches)):
                if j > i:
                    y = self.conv(branches[j], branches[i].shape[1], 1, act=None, name="%s_%d_%d" % (name, i, j))
                    y = layers.resize_nearest(input=y, scale=2 ** (j - i))
                elif j < i:
                    y = branches[j]
                    for k in range(i - j):
                        y = self.conv(y, branches[i].shape[1], 3, 2, act=None, name="%s_%d_%d_%d" % (name, i, j, k))
                else:
                    continue
                residual = layers.elementwise_add(x=residual, y=y, act=None)
            outs.append(layers.relu(residual))
        return outs

    def net(self, input, class_dim):
        layers = self.fluid.layers
        x = self.conv(input, 6, 3, 2, name="layer1_1")
        branches = [self.conv(x, 4, name="tr1_1"), self.conv(x, 8, 3, 2, name="tr1_2")]
        branches.append(self.conv(branches[-1], 12, 3, 2, name="tr2_3"))
        branches = [self.conv(b, b.shape[1], name="st3_%d" % i) for i, b in enumerate(branches)]
        branches = self.fuse(branches, "st3_fuse")
        y = self.conv(branches[0], 16, 3, 2, name="head_0")
        y = layers.elementwise_add(y, self.conv(branches[1], 16, 1, name="head_1"))
        up = layers.resize_bilinear(branches[2], out_shape=y.shape[2:], align_corners=False, align_mode=1)
        y = layers.concat([y, up], axis=1)
        pool = layers.pool2d(input=y, pool_type="avg", global_pooling=True)
        return layers.fc(input=pool, size=class_dim, param_attr=self.fluid.ParamAttr(name="fc_weights"),
                         bias_attr=self.fluid.ParamAttr(name="fc_offset"))


@net("hrnet")
def hrnet(fluid):
    """Distilled: a teacher's logits in the same program that gets no gradient, and weights by name."""
    image, label = inputs(fluid, 32)
    out = HRNet(fluid).net(image, CLASSES)
    teacher = fluid.layers.fc(fluid.layers.pool2d(image, 8, "avg", 8), CLASSES, name="teacher")
    teacher.stop_gradient = True
    soft = fluid.layers.cross_entropy(fluid.layers.softmax(out), fluid.layers.softmax(teacher), soft_label=True)
    avg_cost, pred = smoothed_cost(fluid, out, label)
    loss = avg_cost + fluid.layers.reduce_mean(soft) * 0.5
    test_program = fluid.default_main_program().clone(for_test=True)
    parameters = [p.name for p in fluid.default_main_program().global_block().all_parameters()
                  if "teacher" not in p.name and p.trainable]
    optimizer = fluid.optimizer.Momentum(0.05, 0.9, regularization=fluid.regularizer.L2Decay(1e-4))
    optimizer.minimize(loss, parameter_list=parameters)
    return {"feed": images("hrnet", 32), "fetch": [loss, avg_cost], "test": test_program, "test_fetch": [loss, pred]}
