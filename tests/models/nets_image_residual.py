"""Image classification with shortcuts: ResNet, ResNet-vd, SE-ResNeXt, Res2Net."""
import math

from harness import net
from image_inputs import CLASSES, classifier, inputs


class ResNet(object):
    def __init__(self, fluid, layers=50):
        self.fluid, self.layers = fluid, layers

    def net(self, input, class_dim=1000, data_format="NCHW"):
        layers = self.fluid.layers
        depth = {50: [1, 1, 1], 18: [1, 1]}[self.layers]
        num_filters = [6, 12, 25]
        conv = self.conv_bn_layer(input=input, num_filters=6, filter_size=7, stride=2, act="relu", name="conv1")
        conv = layers.pool2d(input=conv, pool_size=3, pool_stride=2, pool_padding=1, pool_type="max")
        for block in range(len(depth)):
            for i in range(depth[block]):
                conv_name = "res" + str(block + 2) + chr(97 + i)
                make = self.bottleneck_block if self.layers >= 50 else self.basic_block
                conv = make(input=conv, num_filters=num_filters[block],
                            stride=2 if i == 0 and block != 0 else 1, name=conv_name)
        pool = layers.pool2d(input=conv, pool_type="avg", global_pooling=True)
        stdv = 1.0 / math.sqrt(pool.shape[1] * 1.0)
        return layers.fc(input=pool, size=class_dim,
                         param_attr=self.fluid.param_attr.ParamAttr(
                             initializer=self.fluid.initializer.Uniform(-stdv, stdv)))

    def conv_bn_layer(self, input, num_filters, filter_size, stride=1, groups=1, act=None, name=None):
        ParamAttr = self.fluid.param_attr.ParamAttr
        conv = self.fluid.layers.conv2d(
            input=input, num_filters=num_filters, filter_size=filter_size, stride=stride,
            padding=(filter_size - 1) // 2, groups=groups, act=None, param_attr=ParamAttr(name=name + "_weights"),
            bias_attr=False, name=name + ".conv2d.output.1")
        bn_name = "bn_" + name if name == "conv1" else "bn" + name[3:]
        return self.fluid.layers.batch_norm(
            input=conv, act=act, name=bn_name + ".output.1", param_attr=ParamAttr(name=bn_name + "_scale"),
            bias_attr=ParamAttr(bn_name + "_offset"), moving_mean_name=bn_name + "_mean",
            moving_variance_name=bn_name + "_variance")

    def shortcut(self, input, ch_out, stride, is_first, name):
        ch_in = input.shape[1]
        if ch_in != ch_out or stride != 1 or is_first is True:
            return self.conv_bn_layer(input, ch_out, 1, stride, name=name)
        return input

    def bottleneck_block(self, input, num_filters, stride, name):
        conv0 = self.conv_bn_layer(input, num_filters, 1, act="relu", name=name + "_branch2a")
        conv1 = self.conv_bn_layer(conv0, num_filters, 3, stride, act="relu", name=name + "_branch2b")
        conv2 = self.conv_bn_layer(conv1, num_filters * 4, 1, act=None, name=name + "_branch2c")
        short = self.shortcut(input, num_filters * 4, stride, is_first=False, name=name + "_branch1")
        return self.fluid.layers.elementwise_add(x=short, y=conv2, act="relu", name=name + ".add.output.5")

    def basic_block(self, input, num_filters, stride, name):
        conv0 = self.conv_bn_layer(input, num_filters, 3, stride, act="relu", name=name + "_branch2a")
        conv1 = self.conv_bn_layer(conv0, num_filters, 3, act=None, name=name + "_branch2b")
        short = self.shortcut(input, num_filters, stride, is_first=name == "res2a", name=name + "_branch1")
        return self.fluid.layers.elementwise_add(x=short, y=conv1, act="relu")


def warmup_cosine(fluid, lr, steps, warmup):
    """A rate that public code computes itself, from the counter and by Switch."""
    layers = fluid.layers
    global_step = layers.learning_rate_scheduler._decay_step_counter()
    rate = layers.tensor.create_global_var(shape=[1], value=0.0, dtype="float32", persistable=True,
                                           name="learning_rate")
    warmup_step = layers.fill_constant(shape=[1], dtype="float32", value=float(warmup), force_cpu=True)
    with layers.control_flow.Switch() as switch:
        with switch.case(global_step < warmup_step):
            layers.tensor.assign(input=lr * (global_step / warmup_step), output=rate)
        with switch.default():
            decayed = lr * (layers.ops.cos(
                (global_step - warmup_step) * (math.pi / steps)) + 1) / 2
            layers.tensor.assign(input=decayed, output=rate)
    return rate


@net("resnet50")
def resnet50(fluid):
    image, label = inputs(fluid, 32)
    out = ResNet(fluid).net(image, CLASSES)
    rate = warmup_cosine(fluid, 0.1, 4, 1)
    optimizer = fluid.optimizer.Momentum(rate, momentum=0.9, regularization=fluid.regularizer.L2Decay(1e-4))
    built = classifier(fluid, "resnet50", out, label, optimizer, 32)
    return dict(built, fetch=built["fetch"] + [rate])


@net("resnet18")
def resnet18(fluid):
    image, label = inputs(fluid, 32)
    out = ResNet(fluid, 18).net(image, CLASSES)
    optimizer = fluid.optimizer.LarsMomentum(learning_rate=0.1, momentum=0.9, lars_weight_decay=1e-3)
    return classifier(fluid, "resnet18", out, label, optimizer, 32, smooth=True)


class ResNetVd(ResNet):
    """The stem of three convolutions, an average pooling in front of the shortcut's convolution, rates by layer."""
    lr_mult_list = [0.5, 1.0, 1.5]

    def net(self, input, class_dim=1000):
        layers, conv = self.fluid.layers, input
        for i, (filters, stride) in enumerate([(3, 2), (3, 1), (6, 1)]):
            conv = self.conv_bn_layer(conv, filters, 3, stride, act="relu", name="res1_%d" % (i + 1))
        conv = layers.pool2d(input=conv, pool_size=3, pool_stride=2, pool_padding=1, pool_type="max")
        for block, filters in enumerate([6, 12]):
            self.curr_stage = block
            for i in range(2):
                conv = self.bottleneck_block(conv, filters, 2 if i == 0 and block != 0 else 1,
                                             name="res%d%c" % (block + 2, 97 + i))
        pool = layers.pool2d(input=conv, pool_type="avg", global_pooling=True)
        return layers.fc(pool, class_dim, param_attr=self.fluid.ParamAttr(
            initializer=self.fluid.initializer.MSRA(uniform=True), name="fc_weights", learning_rate=2.0),
            bias_attr=self.fluid.ParamAttr(name="fc_offset"))

    def shortcut(self, input, ch_out, stride, is_first, name):
        if input.shape[1] == ch_out and stride == 1:
            return input
        if stride == 1:
            return self.conv_bn_layer(input, ch_out, 1, 1, name=name)
        pool = self.fluid.layers.pool2d(input=input, pool_size=2, pool_stride=2, pool_padding=0, pool_type="avg",
                                        ceil_mode=True)
        return self.conv_bn_layer(pool, ch_out, 1, 1, name=name)


@net("resnet_vd")
def resnet_vd(fluid):
    image, label = inputs(fluid, 40)
    out = ResNetVd(fluid).net(image, CLASSES)
    rate = fluid.layers.linear_lr_warmup(
        fluid.layers.piecewise_decay([2], [0.1, 0.01]), warmup_steps=2, start_lr=0.0, end_lr=0.1)
    optimizer = fluid.optimizer.MomentumOptimizer(
        learning_rate=rate, momentum=0.9, regularization=fluid.regularizer.L2DecayRegularizer(7e-5))
    return classifier(fluid, "resnet_vd", out, label, optimizer, 40, smooth=True)


class SEResNeXt(ResNet):
    reduction_ratio, cardinality = 4, 4

    def net(self, input, class_dim=1000):
        layers = self.fluid.layers
        conv = self.conv_bn_layer(input, 6, 3, stride=2, act="relu", name="conv1")
        for block, filters in enumerate([8, 16]):
            for i in range(2):
                conv = self.bottleneck_block(conv, filters, 2 if i == 0 and block != 0 else 1,
                                             name="res%d%c" % (block + 2, 97 + i))
        pool = layers.pool2d(input=conv, pool_type="avg", global_pooling=True, use_cudnn=False)
        drop = layers.dropout(x=pool, dropout_prob=0.0, seed=1)
        stdv = 1.0 / math.sqrt(drop.shape[1] * 1.0)
        return layers.fc(input=drop, size=class_dim, param_attr=self.fluid.ParamAttr(
            initializer=self.fluid.initializer.Uniform(-stdv, stdv), name="fc6_weights"),
            bias_attr=self.fluid.ParamAttr(name="fc6_offset"))

    def bottleneck_block(self, input, num_filters, stride, name):
        conv0 = self.conv_bn_layer(input, num_filters, 1, act="relu", name=name + "_branch2a")
        conv1 = self.conv_bn_layer(conv0, num_filters, 3, stride, self.cardinality, "relu", name=name + "_branch2b")
        conv2 = self.conv_bn_layer(conv1, num_filters * 2, 1, act=None, name=name + "_branch2c")
        scale = self.squeeze_excitation(conv2, num_filters * 2, "fc" + name)
        short = self.shortcut(input, num_filters * 2, stride, False, name + "_branch1")
        return self.fluid.layers.elementwise_add(x=short, y=scale, act="relu")

    def squeeze_excitation(self, input, num_channels, name):
        layers, ParamAttr = self.fluid.layers, self.fluid.ParamAttr
        pool = layers.pool2d(input=input, pool_size=0, pool_type="avg", global_pooling=True)
        stdv = 1.0 / math.sqrt(pool.shape[1] * 1.0)
        squeeze = layers.fc(input=pool, size=num_channels // self.reduction_ratio, act="relu", param_attr=ParamAttr(
            initializer=self.fluid.initializer.Uniform(-stdv, stdv), name=name + "_sqz_weights"),
            bias_attr=ParamAttr(name=name + "_sqz_offset"))
        excitation = layers.fc(input=squeeze, size=num_channels, act="sigmoid",
                               param_attr=ParamAttr(name=name + "_exc_weights"),
                               bias_attr=ParamAttr(name=name + "_exc_offset"))
        return layers.elementwise_mul(x=input, y=excitation, axis=0)


@net("se_resnext")
def se_resnext(fluid):
    image, label = inputs(fluid, 32)
    out = SEResNeXt(fluid).net(image, CLASSES)
    optimizer = fluid.optimizer.Momentum(
        learning_rate=fluid.layers.cosine_decay(0.1, 1, 3), momentum=0.9,
        regularization=fluid.regularizer.L2Decay(1.2e-4))
    return classifier(fluid, "se_resnext", out, label, optimizer, 32)


class Res2Net(ResNet):
    scales, base_width = 4, 3

    def bottleneck_block(self, input, num_filters, stride, name):
        layers, width = self.fluid.layers, self.base_width
        conv0 = self.conv_bn_layer(input, width * self.scales, 1, act="relu", name=name + "_branch2a")
        xs = layers.split(conv0, self.scales, 1)
        ys = []
        for s in range(self.scales - 1):
            inp = xs[s] if s == 0 or stride == 2 else layers.elementwise_add(xs[s], ys[-1])
            ys.append(self.conv_bn_layer(inp, width, 3, stride, act="relu",
                                         name=name + "_branch2b_" + str(s + 1)))
        if stride == 1:
            ys.append(xs[-1])
        else:
            ys.append(layers.pool2d(input=xs[-1], pool_size=3, pool_stride=stride, pool_padding=1, pool_type="avg"))
        conv1 = layers.concat(ys, axis=1)
        conv2 = self.conv_bn_layer(conv1, num_filters * 4, 1, act=None, name=name + "_branch2c")
        short = self.shortcut(input, num_filters * 4, stride, False, name + "_branch1")
        return layers.elementwise_add(x=short, y=conv2, act="relu")


@net("res2net")
def res2net(fluid):
    image, label = inputs(fluid, 32)
    out = Res2Net(fluid).net(image, CLASSES)
    optimizer = fluid.optimizer.RMSProp(
        learning_rate=fluid.layers.exponential_decay(0.001, 1, 0.9, staircase=True), rho=0.9, momentum=0.9,
        epsilon=1e-3, regularization=fluid.regularizer.L2Decay(1e-4))
    return classifier(fluid, "res2net", out, label, optimizer, 32)
