"""Image classification without shortcuts: AlexNet, VGG, SqueezeNet, GoogLeNet."""
import math

from harness import net
from image_inputs import CLASSES, classifier, images, inputs


class AlexNet(object):
    def __init__(self, fluid):
        self.fluid = fluid

    def uniform(self, name, stdv):
        return self.fluid.param_attr.ParamAttr(
            initializer=self.fluid.initializer.Uniform(-stdv, stdv), name=name)

    def conv(self, input, index, filters, size, **kwargs):
        stdv = 1.0 / math.sqrt(input.shape[1] * size * size)
        return self.fluid.layers.conv2d(
            input=input, num_filters=filters, filter_size=size, act="relu", bias_attr=self.uniform(
                "conv%d_offset" % index, stdv), param_attr=self.uniform("conv%d_weights" % index, stdv), **kwargs)

    def net(self, input, class_dim):
        layers = self.fluid.layers
        pool = self.conv(input, 1, 6, 11, stride=4, padding=2, groups=1)
        pool = layers.pool2d(input=pool, pool_size=3, pool_stride=2, pool_padding=0, pool_type="max")
        for i, (filters, size) in enumerate([(19, 5), (38, 3), (25, 3)], 2):
            pool = self.conv(pool, i, filters, size, padding=size // 2)
        pool = layers.pool2d(input=pool, pool_size=3, pool_stride=2, pool_type="max")
        drop = layers.dropout(x=pool, dropout_prob=0.0)
        stdv = 1.0 / math.sqrt(drop.shape[1] * drop.shape[2] * drop.shape[3] * 1.0)
        fc = layers.fc(input=drop, size=40, act="relu", param_attr=self.uniform("fc6_weights", stdv),
                       bias_attr=self.uniform("fc6_offset", stdv))
        return layers.fc(input=fc, size=class_dim, param_attr=self.uniform("fc8_weights", stdv),
                         bias_attr=self.uniform("fc8_offset", stdv))


@net("alexnet")
def alexnet(fluid):
    image, label = inputs(fluid, 64)
    out = AlexNet(fluid).net(image, CLASSES)
    optimizer = fluid.optimizer.Momentum(
        learning_rate=fluid.layers.piecewise_decay(boundaries=[1, 2], values=[0.1, 0.01, 0.001]), momentum=0.9,
        regularization=fluid.regularizer.L2Decay(1e-4))
    return classifier(fluid, "alexnet", out, label, optimizer, 64)


def vgg_bn_drop(fluid, input, class_dim):
    def conv_block(ipt, num_filter, groups, dropouts):
        return fluid.nets.img_conv_group(
            input=ipt, pool_size=2, pool_stride=2, conv_num_filter=[num_filter] * groups, conv_filter_size=3,
            conv_act="relu", conv_with_batchnorm=True, conv_batchnorm_drop_rate=dropouts, pool_type="max")

    conv1 = conv_block(input, 6, 2, [0.0, 0])
    conv2 = conv_block(conv1, 12, 2, [0.0, 0])
    conv3 = conv_block(conv2, 25, 3, [0.0, 0.0, 0])
    drop = fluid.layers.dropout(x=conv3, dropout_prob=0.0)
    fc1 = fluid.layers.fc(input=drop, size=51, act=None)
    bn = fluid.layers.batch_norm(input=fc1, act="relu", data_layout="NHWC")
    drop2 = fluid.layers.dropout(x=bn, dropout_prob=0.0)
    fc2 = fluid.layers.fc(input=drop2, size=51, act=None)
    return fluid.layers.fc(input=fc2, size=class_dim, act="softmax")


@net("vgg")
def vgg(fluid):
    image, label = inputs(fluid, 32)
    predict = vgg_bn_drop(fluid, image, CLASSES)
    cost = fluid.layers.cross_entropy(input=predict, label=label)
    avg_cost = fluid.layers.mean(cost)
    batch_size_tensor = fluid.layers.create_tensor(dtype="int64")
    batch_acc = fluid.layers.accuracy(input=predict, label=label, total=batch_size_tensor)
    inference_program = fluid.default_main_program().clone(for_test=True)
    fluid.optimizer.Adam(learning_rate=0.001).minimize(avg_cost)
    return {"feed": images("vgg", 32, batch=8), "fetch": [avg_cost, batch_acc, batch_size_tensor],
            "test": inference_program, "test_fetch": [avg_cost, batch_acc, predict]}


class SqueezeNet(object):
    def __init__(self, fluid):
        self.fluid = fluid

    def make_fire_conv(self, input, num_filters, filter_size, padding=0, name=None):
        ParamAttr = self.fluid.param_attr.ParamAttr
        return self.fluid.layers.conv2d(
            input, num_filters=num_filters, filter_size=filter_size, padding=padding, act="relu",
            param_attr=ParamAttr(name=name + "_weights"), bias_attr=ParamAttr(name=name + "_offset"))

    def make_fire(self, input, squeeze, expand1x1, expand3x3, name=None):
        conv = self.make_fire_conv(input, squeeze, 1, name=name + "_squeeze1x1")
        conv_path1 = self.make_fire_conv(conv, expand1x1, 1, name=name + "_expand1x1")
        conv_path2 = self.make_fire_conv(conv, expand3x3, 3, 1, name=name + "_expand3x3")
        return self.fluid.layers.concat([conv_path1, conv_path2], axis=1)

    def net(self, input, class_dim):
        layers, ParamAttr = self.fluid.layers, self.fluid.ParamAttr
        conv = layers.conv2d(input, num_filters=9, filter_size=7, stride=2, act="relu",
                             param_attr=ParamAttr(name="conv1_weights"), bias_attr=ParamAttr(name="conv1_offset"))
        conv = layers.pool2d(conv, pool_size=3, pool_stride=2, pool_type="max")
        for i, width in enumerate((2, 2, 3)):
            conv = self.make_fire(conv, width, width * 4, width * 4, name="fire%d" % (i + 2))
        conv = layers.pool2d(conv, pool_size=3, pool_stride=2, pool_type="max")
        conv = self.make_fire(conv, 6, 25, 25, name="fire9")
        conv = layers.dropout(conv, dropout_prob=0.0)
        conv = layers.conv2d(conv, num_filters=class_dim, filter_size=1, act="relu",
                             param_attr=ParamAttr(name="conv10_weights"), bias_attr=ParamAttr(name="conv10_offset"))
        conv = layers.pool2d(conv, pool_type="avg", global_pooling=True)
        return layers.flatten(conv)


@net("squeezenet")
def squeezenet(fluid):
    image, label = inputs(fluid, 64)
    out = SqueezeNet(fluid).net(image, CLASSES)
    rate = fluid.layers.cosine_decay(learning_rate=0.05, step_each_epoch=2, epochs=3)
    optimizer = fluid.optimizer.Momentum(rate, momentum=0.9, regularization=fluid.regularizer.L2Decay(3e-4))
    return classifier(fluid, "squeezenet", out, label, optimizer, 64)


class GoogLeNet(object):
    def __init__(self, fluid):
        self.fluid = fluid

    def xavier(self, channels, filter_size, name):
        stdv = (3.0 / (filter_size ** 2 * channels)) ** 0.5
        return self.fluid.ParamAttr(initializer=self.fluid.initializer.Uniform(-stdv, stdv), name=name + "_weights")

    def conv_layer(self, input, num_filters, filter_size, stride=1, groups=1, act=None, name=None):
        return self.fluid.layers.conv2d(
            input=input, num_filters=num_filters, filter_size=filter_size, stride=stride,
            padding=(filter_size - 1) // 2, groups=groups, act=act,
            param_attr=self.xavier(input.shape[1], filter_size, name), bias_attr=False, name=name)

    def inception(self, input, filter1, filter3R, filter3, filter5R, filter5, proj, name=None):
        layers = self.fluid.layers
        conv1 = self.conv_layer(input, filter1, 1, name="inception_" + name + "_1x1")
        conv3r = self.conv_layer(input, filter3R, 1, name="inception_" + name + "_3x3_reduce")
        conv3 = self.conv_layer(conv3r, filter3, 3, name="inception_" + name + "_3x3")
        conv5r = self.conv_layer(input, filter5R, 1, name="inception_" + name + "_5x5_reduce")
        conv5 = self.conv_layer(conv5r, filter5, 5, name="inception_" + name + "_5x5")
        pool = layers.pool2d(input=input, pool_size=3, pool_stride=1, pool_padding=1, pool_type="max")
        convprj = self.conv_layer(pool, proj, 1, name="inception_" + name + "_3x3_proj")
        cat = layers.concat(input=[conv1, conv3, conv5, convprj], axis=1)
        return layers.relu(cat)

    def head(self, input, class_dim, name):
        layers = self.fluid.layers
        pool = layers.pool2d(input=input, pool_size=5, pool_stride=3, pool_type="avg")
        conv = self.conv_layer(pool, 12, 1, name="conv_" + name)
        fc = layers.fc(input=conv, size=40, act="relu", param_attr=self.xavier(2048, 1, "fc_" + name))
        drop = layers.dropout(x=fc, dropout_prob=0.0)
        return layers.fc(input=drop, size=class_dim, param_attr=self.xavier(1024, 1, "out_" + name),
                         bias_attr=self.fluid.ParamAttr(name="out_%s_offset" % name))

    def net(self, input, class_dim):
        layers = self.fluid.layers
        conv = self.conv_layer(input, 6, 7, 2, name="conv1")
        pool = layers.pool2d(input=conv, pool_size=3, pool_type="max", pool_stride=2)
        conv = self.conv_layer(pool, 19, 3, name="conv2_3x3")
        ince3a = self.inception(conv, 6, 9, 12, 1, 3, 3, "ince3a")
        out1 = self.head(ince3a, class_dim, "o1")
        pool3 = layers.pool2d(input=ince3a, pool_size=3, pool_type="max", pool_stride=2)
        ince4a = self.inception(pool3, 19, 9, 20, 1, 4, 6, "ince4a")
        pool5 = layers.pool2d(input=ince4a, pool_size=7, pool_type="avg", pool_stride=7)
        dropout = layers.dropout(x=pool5, dropout_prob=0.0)
        out = layers.fc(input=dropout, size=class_dim, param_attr=self.xavier(1024, 1, "out"),
                        bias_attr=self.fluid.ParamAttr(name="out_offset"))
        return out, out1


@net("googlenet")
def googlenet(fluid):
    image, label = inputs(fluid, 64)
    out, out1 = GoogLeNet(fluid).net(image, CLASSES)
    optimizer = fluid.optimizer.Momentum(
        learning_rate=fluid.layers.polynomial_decay(0.01, 3, end_learning_rate=1e-4, power=0.5), momentum=0.9,
        use_nesterov=True, regularization=fluid.regularizer.L1DecayRegularizer(1e-4))
    return classifier(fluid, "googlenet", out, label, optimizer, 64, extra=[(out1, 0.3)])
