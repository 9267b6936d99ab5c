"""Image classification without shortcuts: AlexNet, VGG, SqueezeNet, GoogLeNet."""
from harness import drawn, net

CLASSES = 10


def images(name, size, batch=4, classes=CLASSES):
    def feed(step):
        rng = drawn(name, step)
        return {"image": rng.normal(0, 1, (batch, 3, size, size)).astype("float32"),
                "label": rng.randint(0, classes, (batch, 1)).astype("int64")}
    return feed


def inputs(fluid, size):
    image = fluid.data(name="image", shape=[None, 3, size, size], dtype="float32")
    label = fluid.data(name="label", shape=[None, 1], dtype="int64")
    return image, label


class AlexNet(object):
    def __init__(self, fluid):
        self.fluid = fluid

    def uniform(self, name, stdv):
        return self.fluid.param_attr.ParamAttr(
            initializer=self.fluid.initializer.Uniform(-stdv, stdv), name=name)

    def net(self, input, class_dim):
        import math
        layers = self.fluid.layers
        stdv = 1.0 / math.sqrt(input.shape[1] * 11 * 11)
        conv = layers.conv2d(input=input, num_filters=6, filter_size=11, stride=4, padding=2, groups=1, act="relu",
                             param_attr=self.uniform("conv1_weights", stdv),
                             bias_attr=self.uniform("conv1_offset", stdv))
        pool = layers.pool2d(input=conv, pool_size=3, pool_stride=2, pool_padding=0, pool_type="max")
        for i, (filters, size) in enumerate([(19, 5), (38, 3), (25, 3)], 2):
            stdv = 1.0 / math.sqrt(pool.shape[1] * size * size)
            pool = layers.conv2d(input=pool, num_filters=filters, filter_size=size, padding=size // 2, act="relu",
                                 param_attr=self.uniform("conv%d_weights" % i, stdv),
                                 bias_attr=self.uniform("conv%d_offset" % i, stdv))
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
    cost, pred = fluid.layers.softmax_with_cross_entropy(out, label, return_softmax=True)
    avg_cost = fluid.layers.mean(x=cost)
    acc_top1 = fluid.layers.accuracy(input=pred, label=label, k=1)
    acc_top5 = fluid.layers.accuracy(input=pred, label=label, k=5)
    test_program = fluid.default_main_program().clone(for_test=True)
    optimizer = fluid.optimizer.Momentum(
        learning_rate=fluid.layers.piecewise_decay(boundaries=[1, 2], values=[0.1, 0.01, 0.001]), momentum=0.9,
        regularization=fluid.regularizer.L2Decay(1e-4))
    optimizer.minimize(avg_cost)
    return {"feed": images("alexnet", 64), "fetch": [avg_cost, acc_top1, acc_top5], "test": test_program,
            "test_fetch": [avg_cost, pred]}
