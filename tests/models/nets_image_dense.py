"""Image classification by concatenation and at several resolutions: DenseNet, DPN, Inception v4, Xception, HRNet."""
import math

from harness import net
from image_inputs import CLASSES, classifier, inputs


class DenseNet(object):
    def __init__(self, fluid):
        self.fluid = fluid

    def net(self, input, class_dim, growth_rate=4, block_config=(2, 2), bn_size=2):
        layers, ParamAttr = self.fluid.layers, self.fluid.ParamAttr
        conv = layers.conv2d(input=input, num_filters=8, filter_size=7, stride=2, padding=3, act=None,
                             param_attr=ParamAttr(name="conv1_weights"), bias_attr=False)
        conv = self.bn(conv, "conv1", act="relu")
        conv = layers.pool2d(input=conv, pool_size=3, pool_stride=2, pool_padding=1, pool_type="max")
        num_features = 8
        for i, num_layers in enumerate(block_config):
            for j in range(num_layers):
                conv = self.make_dense(conv, growth_rate, bn_size, 0.0, "conv%d_%d" % (i + 2, j + 1))
            num_features = num_features + num_layers * growth_rate
            if i != len(block_config) - 1:
                conv = self.make_transition(conv, num_features // 2, name="conv%d_blk" % (i + 2))
                num_features = num_features // 2
        conv = self.bn(conv, "conv5_blk", act="relu")
        conv = layers.pool2d(input=conv, global_pooling=True, pool_type="avg")
        conv = layers.flatten(conv, axis=1)
        stdv = 1.0 / math.sqrt(conv.shape[1] * 1.0)
        return layers.fc(input=conv, size=class_dim, param_attr=ParamAttr(
            initializer=self.fluid.initializer.Uniform(-stdv, stdv), name="fc_weights"),
            bias_attr=ParamAttr(name="fc_offset"))

    def bn(self, input, name, act=None):
        ParamAttr = self.fluid.ParamAttr
        return self.fluid.layers.batch_norm(
            input, act=act, param_attr=ParamAttr(name=name + "_bn_scale"), bias_attr=ParamAttr(name + "_bn_offset"),
            moving_mean_name=name + "_bn_mean", moving_variance_name=name + "_bn_variance")

    def make_transition(self, input, num_output_features, name):
        bn_ac = self.bn(input, name, act="relu")
        bn_ac_conv = self.fluid.layers.conv2d(bn_ac, num_output_features, filter_size=1, stride=1, bias_attr=False,
                                              param_attr=self.fluid.ParamAttr(name=name + "_weights"))
        return self.fluid.layers.pool2d(input=bn_ac_conv, pool_size=2, pool_stride=2, pool_type="avg")

    def make_dense(self, input, growth_rate, bn_size, dropout, name):
        layers, ParamAttr = self.fluid.layers, self.fluid.ParamAttr
        conv = self.bn(input, name + "_x1", act="relu")
        conv = layers.conv2d(conv, bn_size * growth_rate, 1, bias_attr=False,
                             param_attr=ParamAttr(name=name + "_x1_weights"))
        conv = self.bn(conv, name + "_x2", act="relu")
        conv = layers.conv2d(conv, growth_rate, 3, padding=1, bias_attr=False,
                             param_attr=ParamAttr(name=name + "_x2_weights"))
        if dropout is not None:
            conv = layers.dropout(conv, dropout_prob=dropout, dropout_implementation="upscale_in_train")
        return layers.concat([input, conv], axis=1)


@net("densenet")
def densenet(fluid):
    image, label = inputs(fluid, 32)
    out = DenseNet(fluid).net(image, CLASSES)
    optimizer = fluid.optimizer.Momentum(
        learning_rate=fluid.layers.natural_exp_decay(0.1, 2, 0.5), momentum=0.9,
        regularization=fluid.regularizer.L2Decay(1e-4))
    return classifier(fluid, "densenet", out, label, optimizer, 32)


class DPN(DenseNet):
    """Each unit adds to a residual part and concatenates to a dense part of the channels."""

    def net(self, input, class_dim, bws=(8, 16), incs=(2, 4), groups=4):
        layers = self.fluid.layers
        conv = layers.conv2d(input, 8, 3, stride=2, padding=1, bias_attr=False, name="conv1")
        conv = self.bn(conv, "conv1", act="relu")
        match, inputs = layers.pool2d(conv, 3, "max", 2, 1), None
        inputs = match
        for stage, (bw, inc) in enumerate(zip(bws, incs)):
            for i in range(2):
                kind = "proj" if stage == 0 and i == 0 else "down" if i == 0 else "normal"
                inputs = self.dual_path_factory(inputs, bw, 3, bw, inc, groups, kind, "conv%d_%d" % (stage + 2, i + 1))
        x = layers.concat(inputs, axis=1)
        x = self.bn(x, "final_concat", act="relu")
        pool = layers.pool2d(input=x, pool_type="avg", global_pooling=True)
        return layers.fc(input=pool, size=class_dim, param_attr=self.fluid.ParamAttr(
            initializer=self.fluid.initializer.Uniform(-0.01, 0.01), name="fc_weights"),
            bias_attr=self.fluid.ParamAttr(name="fc_offset"))

    def bn_ac_conv(self, data, num_filter, kernel, pad, stride=1, num_group=1, name=None):
        return self.fluid.layers.conv2d(
            input=self.bn(data, name, act="relu"), num_filters=num_filter, filter_size=kernel, stride=stride,
            padding=pad, groups=num_group, act=None, bias_attr=False,
            param_attr=self.fluid.ParamAttr(name=name + "_weights"))

    def dual_path_factory(self, data, num_1x1, num_3x3, bw, inc, groups, kind, name):
        layers = self.fluid.layers
        stride = 2 if kind == "down" else 1
        data_in = layers.concat(data, axis=1) if isinstance(data, list) else data
        if kind in ("proj", "down"):
            c1x1_w = self.bn_ac_conv(data_in, bw + 2 * inc, 1, 0, stride, name=name + "_match")
            data_o1, data_o2 = layers.split(c1x1_w, num_or_sections=[bw, 2 * inc], dim=1, name=name + "_match_conv_")
        else:
            data_o1, data_o2 = data
        c1x1_a = self.bn_ac_conv(data_in, num_1x1, 1, 0, name=name + "_conv1")
        c3x3_b = self.bn_ac_conv(c1x1_a, num_1x1, (3, 3), (1, 1), stride, groups, name=name + "_conv2")
        c1x1_c = self.bn_ac_conv(c3x3_b, bw + inc, 1, 0, name=name + "_conv3")
        c1, c2 = layers.split(c1x1_c, num_or_sections=[bw, inc], dim=1)
        summ = layers.elementwise_add(x=data_o1, y=c1, name=name + "_elementwise")
        dense = layers.concat([data_o2, c2], axis=1, name=name + "_concat")
        return [summ, dense]


@net("dpn")
def dpn(fluid):
    image, label = inputs(fluid, 32)
    out = DPN(fluid).net(image, CLASSES)
    optimizer = fluid.optimizer.Momentum(
        learning_rate=fluid.layers.inverse_time_decay(0.1, 2, 0.5, staircase=True), momentum=0.9,
        regularization=fluid.regularizer.L2Decay(1e-4))
    return classifier(fluid, "dpn", out, label, optimizer, 32)


class InceptionV4(object):
    def __init__(self, fluid):
        self.fluid = fluid

    def conv_bn_layer(self, data, num_filters, filter_size, stride=1, padding=0, act="relu", name=None):
        ParamAttr = self.fluid.ParamAttr
        conv = self.fluid.layers.conv2d(
            input=data, num_filters=num_filters, filter_size=filter_size, stride=stride, padding=padding, act=None,
            param_attr=ParamAttr(name=name + "_weights"), bias_attr=False, name=name)
        bn_name = name + "_bn"
        return self.fluid.layers.batch_norm(
            input=conv, act=act, name=bn_name, param_attr=ParamAttr(name=bn_name + "_scale"),
            bias_attr=ParamAttr(name=bn_name + "_offset"), moving_mean_name=bn_name + "_mean",
            moving_variance_name=bn_name + "_variance")

    def inception_stem(self, data):
        layers = self.fluid.layers
        conv = self.conv_bn_layer(data, 3, 3, stride=2, name="conv1_3x3_s2")
        conv = self.conv_bn_layer(conv, 6, 3, padding=1, name="conv2_3x3_s1")
        pool1 = layers.pool2d(input=conv, pool_size=3, pool_stride=2, pool_type="max")
        conv2 = self.conv_bn_layer(conv, 9, 3, stride=2, name="inception_stem1_3x3_s2")
        concat = layers.concat([pool1, conv2], axis=1)
        conv1 = self.conv_bn_layer(concat, 6, 1, name="inception_stem2_3x3_reduce")
        conv1 = self.conv_bn_layer(conv1, 9, 3, name="inception_stem2_3x3")
        conv2 = self.conv_bn_layer(concat, 6, 1, name="inception_stem2_1x7_reduce")
        conv2 = self.conv_bn_layer(conv2, 6, (7, 1), padding=(3, 0), name="inception_stem2_1x7")
        conv2 = self.conv_bn_layer(conv2, 6, (1, 7), padding=(0, 3), name="inception_stem2_7x1")
        conv2 = self.conv_bn_layer(conv2, 9, 3, name="inception_stem2_3x3_2")
        return layers.concat([conv1, conv2], axis=1)

    def inception_a(self, data, name):
        layers = self.fluid.layers
        pool1 = layers.pool2d(input=data, pool_size=3, pool_padding=1, pool_type="avg")
        conv1 = self.conv_bn_layer(pool1, 9, 1, name="inception_a" + name + "_1x1")
        conv2 = self.conv_bn_layer(data, 9, 1, name="inception_a" + name + "_1x1_2")
        conv3 = self.conv_bn_layer(data, 6, 1, name="inception_a" + name + "_3x3_reduce")
        conv3 = self.conv_bn_layer(conv3, 9, 3, padding=1, name="inception_a" + name + "_3x3")
        return layers.concat([conv1, conv2, conv3], axis=1)

    def reduction_a(self, data):
        pool1 = self.fluid.layers.pool2d(input=data, pool_size=3, pool_stride=2, pool_type="max")
        conv2 = self.conv_bn_layer(data, 12, 3, stride=2, name="reduction_a_3x3")
        return self.fluid.layers.concat([pool1, conv2], axis=1)

    def net(self, input, class_dim):
        layers = self.fluid.layers
        x = self.inception_stem(input)
        x = self.inception_a(x, name="1")
        x = self.reduction_a(x)
        pool = layers.pool2d(input=x, pool_type="avg", global_pooling=True)
        drop = layers.dropout(x=pool, dropout_prob=0.0)
        stdv = 1.0 / math.sqrt(drop.shape[1] * 1.0)
        return layers.fc(input=drop, size=class_dim, param_attr=self.fluid.ParamAttr(
            initializer=self.fluid.initializer.Uniform(-stdv, stdv), name="final_fc_weights"),
            bias_attr=self.fluid.ParamAttr(
                initializer=self.fluid.initializer.Uniform(-stdv, stdv), name="final_fc_offset"))


@net("inception_v4")
def inception_v4(fluid):
    image, label = inputs(fluid, 40)
    out = InceptionV4(fluid).net(image, CLASSES)
    optimizer = fluid.optimizer.Momentum(
        learning_rate=fluid.layers.cosine_decay(0.045, 2, 2), momentum=0.9,
        regularization=fluid.regularizer.L2Decay(1e-4))
    return classifier(fluid, "inception_v4", out, label, optimizer, 40, smooth=True)
