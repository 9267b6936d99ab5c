"""Image classification for small devices: MobileNet v1 to v3, ShuffleNet v2, EfficientNet."""
from harness import net
from image_inputs import CLASSES, classifier, inputs


class MobileNet(object):
    def __init__(self, fluid, scale=0.1):
        self.fluid, self.scale = fluid, scale

    def conv_bn_layer(self, input, filter_size, num_filters, stride, padding, num_groups=1, act="relu", name=None,
                      use_cudnn=True):
        ParamAttr = self.fluid.ParamAttr
        conv = self.fluid.layers.conv2d(
            input=input, num_filters=num_filters, filter_size=filter_size, stride=stride, padding=padding,
            groups=num_groups, act=None, use_cudnn=use_cudnn, bias_attr=False, param_attr=ParamAttr(
                initializer=self.fluid.initializer.MSRA(), name=name + "_weights"))
        bn_name = name + "_bn"
        return self.fluid.layers.batch_norm(
            input=conv, act=act, param_attr=ParamAttr(name=bn_name + "_scale"),
            bias_attr=ParamAttr(name=bn_name + "_offset"), moving_mean_name=bn_name + "_mean",
            moving_variance_name=bn_name + "_variance")

    def depthwise_separable(self, input, num_filters1, num_filters2, num_groups, stride, name):
        depthwise = self.conv_bn_layer(input, 3, int(num_filters1 * self.scale), stride, 1,
                                       int(num_groups * self.scale), use_cudnn=False, name=name + "_dw")
        return self.conv_bn_layer(depthwise, 1, int(num_filters2 * self.scale), 1, 0, name=name + "_sep")

    def net(self, input, class_dim):
        x = self.conv_bn_layer(input, 3, int(40 * self.scale), 2, 1, name="conv1")
        for i, (f1, f2, stride) in enumerate([(40, 60, 1), (60, 120, 2), (120, 120, 1), (120, 250, 2)]):
            x = self.depthwise_separable(x, f1, f2, f1, stride, "conv%d_1" % (i + 2))
        x = self.fluid.layers.pool2d(input=x, pool_type="avg", global_pooling=True)
        return self.fluid.layers.fc(input=x, size=class_dim, param_attr=self.fluid.ParamAttr(
            initializer=self.fluid.initializer.MSRA(), name="fc7_weights"),
            bias_attr=self.fluid.ParamAttr(name="fc7_offset"))


@net("mobilenet_v1")
def mobilenet_v1(fluid):
    image, label = inputs(fluid, 32)
    out = MobileNet(fluid).net(image, CLASSES)
    optimizer = fluid.optimizer.Momentum(
        learning_rate=fluid.layers.piecewise_decay([1], [0.1, 0.05]), momentum=0.9,
        regularization=fluid.regularizer.L2Decay(3e-5))
    return classifier(fluid, "mobilenet_v1", out, label, optimizer, 32)


class MobileNetV2(MobileNet):
    def inverted_residual_unit(self, input, num_in_filter, num_filters, ifshortcut, stride, factor, name):
        expanded = int(round(num_in_filter * factor))
        x = self.conv_bn_layer(input, 1, expanded, 1, 0, act="relu6", name=name + "_expand")
        x = self.conv_bn_layer(x, 3, expanded, stride, 1, expanded, act="relu6", name=name + "_dwise",
                               use_cudnn=False)
        x = self.conv_bn_layer(x, 1, num_filters, 1, 0, act=None, name=name + "_linear")
        return self.fluid.layers.elementwise_add(x=input, y=x, act=None) if ifshortcut else x

    def net(self, input, class_dim):
        x = self.conv_bn_layer(input, 3, 4, 2, 1, act="relu6", name="conv1_1")
        in_c = 4
        for i, (t, c, n, s) in enumerate([(1, 2, 1, 1), (6, 3, 2, 2), (6, 5, 2, 2)]):
            for j in range(n):
                x = self.inverted_residual_unit(x, in_c, c, j > 0, s if j == 0 else 1, t, "conv%d_%d" % (i + 2, j + 1))
                in_c = c
        x = self.conv_bn_layer(x, 1, 32, 1, 0, act="relu6", name="conv9")
        x = self.fluid.layers.pool2d(input=x, pool_type="avg", global_pooling=True)
        return self.fluid.layers.fc(input=x, size=class_dim, param_attr=self.fluid.ParamAttr(name="fc10_weights"),
                                    bias_attr=self.fluid.ParamAttr(name="fc10_offset"))


@net("mobilenet_v2")
def mobilenet_v2(fluid):
    image, label = inputs(fluid, 32)
    out = MobileNetV2(fluid).net(image, CLASSES)
    optimizer = fluid.optimizer.Momentum(
        learning_rate=fluid.layers.cosine_decay(0.1, 1, 5), momentum=0.9,
        regularization=fluid.regularizer.L2Decay(4e-5))
    return classifier(fluid, "mobilenet_v2", out, label, optimizer, 32)


class MobileNetV3(MobileNet):
    def hard_swish(self, x):
        return x * self.fluid.layers.relu6(x + 3.0) / 6.0

    def se_block(self, input, num_out_filter, ratio=4, name=None):
        layers, ParamAttr = self.fluid.layers, self.fluid.ParamAttr
        pool = layers.pool2d(input=input, pool_type="avg", global_pooling=True, use_cudnn=False)
        conv1 = layers.conv2d(input=pool, filter_size=1, num_filters=num_out_filter // ratio, act="relu",
                              param_attr=ParamAttr(name=name + "_1_weights"),
                              bias_attr=ParamAttr(name=name + "_1_offset"))
        conv2 = layers.conv2d(input=conv1, filter_size=1, num_filters=num_out_filter, act="hard_sigmoid",
                              param_attr=ParamAttr(name=name + "_2_weights"),
                              bias_attr=ParamAttr(name=name + "_2_offset"))
        return layers.elementwise_mul(x=input, y=conv2, axis=0)

    def act(self, x, act):
        return self.fluid.layers.hard_swish(x) if act == "hard_swish" else self.fluid.layers.relu(x)

    def residual_unit(self, input, mid, out, size, stride, act, use_se, name):
        x = self.act(self.conv_bn_layer(input, 1, mid, 1, 0, act=None, name=name + "_expand"), act)
        x = self.conv_bn_layer(x, size, mid, stride, (size - 1) // 2, mid, None, name + "_depthwise", False)
        x = self.act(x, act)
        if use_se:
            x = self.se_block(x, mid, name=name + "_se")
        x = self.conv_bn_layer(x, 1, out, 1, 0, act=None, name=name + "_linear")
        if input.shape[1] == out and stride == 1:
            x = self.fluid.layers.elementwise_add(x=input, y=x, act=None)
        return x

    def net(self, input, class_dim):
        layers = self.fluid.layers
        x = self.hard_swish(self.conv_bn_layer(input, 3, 4, 2, 1, act=None, name="conv1"))
        for i, row in enumerate([(8, 4, 3, 1, "relu", False), (12, 6, 3, 2, "relu", True),
                                 (20, 6, 5, 1, "hard_swish", True), (24, 8, 5, 2, "hard_swish", False)]):
            x = self.residual_unit(x, *row, name="conv" + str(i + 2))
        x = self.hard_swish(self.conv_bn_layer(x, 1, 40, 1, 0, act=None, name="conv_last"))
        x = layers.pool2d(input=x, pool_type="avg", global_pooling=True, use_cudnn=False)
        x = layers.conv2d(input=x, num_filters=64, filter_size=1, bias_attr=False,
                          param_attr=self.fluid.ParamAttr(name="last_1x1_conv_weights"))
        x = layers.dropout(x=self.hard_swish(x), dropout_prob=0.0)
        return layers.fc(input=x, size=class_dim, param_attr=self.fluid.ParamAttr(name="fc_weights"),
                         bias_attr=self.fluid.ParamAttr(name="fc_offset"))


@net("mobilenet_v3")
def mobilenet_v3(fluid):
    image, label = inputs(fluid, 32)
    out = MobileNetV3(fluid).net(image, CLASSES)
    optimizer = fluid.optimizer.RMSProp(0.002, rho=0.9, momentum=0.9, centered=True,
                                        regularization=fluid.regularizer.L2Decay(1e-5))
    return classifier(fluid, "mobilenet_v3", out, label, optimizer, 32, smooth=True)


class ShuffleNetV2(MobileNet):
    def channel_shuffle(self, x, groups):
        layers = self.fluid.layers
        batchsize, num_channels, height, width = x.shape[0], x.shape[1], x.shape[2], x.shape[3]
        x = layers.reshape(x=x, shape=[batchsize, groups, num_channels // groups, height, width])
        x = layers.transpose(x=x, perm=[0, 2, 1, 3, 4])
        return layers.reshape(x=x, shape=[batchsize, num_channels, height, width])

    def branch(self, x, filters, stride, name):
        x = self.conv_bn_layer(x, 1, filters, 1, 0, act="relu", name="stage_" + name + "_conv1")
        x = self.conv_bn_layer(x, 3, filters, stride, 1, filters, None, "stage_" + name + "_conv2", False)
        return self.conv_bn_layer(x, 1, filters, 1, 0, act="relu", name="stage_" + name + "_conv3")

    def unit(self, input, num_filters, stride, name):
        layers, half = self.fluid.layers, num_filters // 2
        if stride == 1:
            x1, x2 = layers.split(input, num_or_sections=[input.shape[1] // 2, input.shape[1] // 2], dim=1)
            out = layers.concat([x1, self.branch(x2, half, 1, name)], axis=1)
        else:
            proj = self.conv_bn_layer(input, 3, input.shape[1], 2, 1, input.shape[1], None, name + "_conv4", False)
            proj = self.conv_bn_layer(proj, 1, half, 1, 0, act="relu", name=name + "_conv5")
            out = layers.concat([proj, self.branch(input, half, 2, name)], axis=1)
        return self.channel_shuffle(out, 2)  # layers.shuffle_channel has another gradient: docs/differences.md

    def net(self, input, class_dim):
        layers = self.fluid.layers
        x = self.conv_bn_layer(input, 3, 6, 2, 1, act="relu", name="stage1_conv")
        x = layers.pool2d(input=x, pool_size=3, pool_stride=2, pool_padding=1, pool_type="max")
        for stage, filters in enumerate([12, 24]):
            for i in range(2):
                x = self.unit(x, filters, 2 if i == 0 else 1, "%d_%d" % (stage + 2, i + 1))
        x = self.conv_bn_layer(x, 1, 32, 1, 0, act="relu", name="conv5")
        x = layers.pool2d(input=x, pool_size=x.shape[2:], pool_stride=1, pool_padding=0, pool_type="avg")
        return layers.fc(input=x, size=class_dim, param_attr=self.fluid.ParamAttr(name="fc6_weights"),
                         bias_attr=self.fluid.ParamAttr(name="fc6_offset"))


@net("shufflenet_v2")
def shufflenet_v2(fluid):
    image = fluid.layers.data(name="image", shape=[4, 3, 32, 32], dtype="float32", append_batch_size=False)
    label = fluid.layers.data(name="label", shape=[4, 1], dtype="int64", append_batch_size=False)
    out = ShuffleNetV2(fluid).net(image, CLASSES)
    optimizer = fluid.optimizer.Momentum(
        learning_rate=fluid.layers.polynomial_decay(0.5, 3, 0.0, cycle=True), momentum=0.9,
        regularization=fluid.regularizer.L2Decay(4e-5))
    return classifier(fluid, "shufflenet_v2", out, label, optimizer, 32)
