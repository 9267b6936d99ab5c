"""Inputs, layers named by scopes, losses and metrics of semantic segmentation, as public code spells them."""
import contextlib

import numpy as np
from harness import drawn

CLASSES = 5
IGNORED = 255


def scenes(name, size, batch=2):
    """step -> images, labels with ignored pixels, and the mask of the others."""
    def feed(step):
        rng = drawn(name, step)
        label = rng.randint(0, CLASSES, (batch, 1, size, size))
        label[rng.uniform(size=label.shape) < 0.1] = IGNORED
        return {"image": rng.normal(0, 1, (batch, 3, size, size)).astype("float32"), "label": label.astype("int32"),
                "mask": (label != IGNORED).astype("int32")}
    return feed


def inputs(fluid, size):
    return (fluid.data(name="image", shape=[None, 3, size, size], dtype="float32"),
            fluid.data(name="label", shape=[None, 1, size, size], dtype="int32"),
            fluid.data(name="mask", shape=[None, 1, size, size], dtype="int32"))


class Scopes(object):
    """Names of parameters by nested scopes, as ported models have them."""

    def __init__(self, fluid):
        self.fluid, self.name_scope = fluid, ""

    @contextlib.contextmanager
    def scope(self, name):
        bk, self.name_scope = self.name_scope, self.name_scope + name + "/"
        yield
        self.name_scope = bk

    def conv(self, input, filters, size, stride=1, dilation=1, groups=1, act=None, bias=False, deconv=False):
        layers, ParamAttr = self.fluid.layers, self.fluid.ParamAttr
        name = self.name_scope
        param_attr = ParamAttr(name=name + "weights", regularizer=None,
                               initializer=self.fluid.initializer.TruncatedNormal(loc=0.0, scale=0.06))
        bias_attr = ParamAttr(name=name + "biases", regularizer=None,
                              initializer=self.fluid.initializer.ConstantInitializer(value=0.0)) if bias else False
        if deconv:
            return layers.conv2d_transpose(input, filters, filter_size=size, stride=stride, padding=0,
                                           param_attr=param_attr, bias_attr=bias_attr)
        return layers.conv2d(input, filters, size, stride=stride, padding=dilation * (size - 1) // 2,
                             dilation=dilation, groups=groups, act=act, param_attr=param_attr, bias_attr=bias_attr)

    def bn(self, input, act=None):
        name = self.name_scope + "BatchNorm/"
        return self.fluid.layers.batch_norm(
            input, act=act, is_test=False, epsilon=1e-5, momentum=0.99,
            param_attr=self.fluid.ParamAttr(name=name + "gamma", regularizer=self.fluid.regularizer.L2Decay(0.0)),
            bias_attr=self.fluid.ParamAttr(name=name + "beta", regularizer=self.fluid.regularizer.L2Decay(0.0)),
            moving_mean_name=name + "moving_mean", moving_variance_name=name + "moving_variance")

    def gn(self, input, groups=4, act=None):
        return self.fluid.layers.group_norm(
            input, groups=groups, act=act, param_attr=self.name_scope + "gn/gamma",
            bias_attr=self.name_scope + "gn/beta")

    def conv_bn(self, input, filters, size, stride=1, dilation=1, groups=1, name="conv"):
        with self.scope(name):
            return self.fluid.layers.relu(self.bn(self.conv(input, filters, size, stride, dilation, groups)))

    def separable(self, input, filters, stride, dilation=1, name="separable_conv"):
        with self.scope(name):
            x = self.conv_bn(input, input.shape[1], 3, stride, dilation, input.shape[1], name="depthwise")
            return self.conv_bn(x, filters, 1, name="pointwise")


def pixel_loss(fluid, logit, label, mask, weight=None):
    """Mean over the pixels that are not ignored; logits move to the end, because the loss has no axis here."""
    layers = fluid.layers
    label = layers.elementwise_min(label, layers.assign(np.array([CLASSES - 1], "int32")))
    logit = layers.transpose(logit, [0, 2, 3, 1])
    logit = layers.reshape(logit, [-1, CLASSES])
    label = layers.cast(layers.reshape(label, [-1, 1]), "int64")
    mask = layers.cast(layers.reshape(mask, [-1, 1]), "float32")
    if weight is None:
        loss, probs = layers.softmax_with_cross_entropy(logit, label, ignore_index=IGNORED, return_softmax=True)
    else:
        probs = layers.softmax(logit)
        label_one_hot = layers.one_hot(label, depth=CLASSES)
        loss = layers.cross_entropy(probs, label_one_hot * layers.assign(weight), soft_label=True,
                                    ignore_index=IGNORED)
    loss = loss * mask
    avg_loss = layers.mean(loss) / layers.mean(mask)
    label.stop_gradient = True
    mask.stop_gradient = True
    return avg_loss, probs


def iou(fluid, logit, label, mask):
    layers = fluid.layers
    pred = layers.argmax(layers.transpose(logit, [0, 2, 3, 1]), axis=3)
    pred = layers.cast(layers.reshape(pred, [-1, 1]), "int32")
    valid = layers.where(layers.cast(layers.reshape(mask, [-1]), "bool"))
    pred = layers.gather(pred, valid)
    label = layers.gather(layers.reshape(label, [-1, 1]), valid)
    return layers.mean_iou(pred, label, CLASSES)


def segmenter(fluid, name, size, logit, loss, label, mask, optimizer):
    miou, wrong, correct = iou(fluid, logit, label, mask)
    test_program = fluid.default_main_program().clone(for_test=True)
    optimizer.minimize(loss)
    return {"feed": scenes(name, size), "fetch": [loss, miou, wrong, correct], "test": test_program,
            "test_fetch": [loss, logit]}
