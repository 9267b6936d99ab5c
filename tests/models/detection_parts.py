"""Inputs and backbones of object detection, as public code spells them."""
import numpy as np
from harness import drawn

CLASSES = 4  # with the background, class 0


def boxes_in(rng, count, extent):
    """Random boxes [x1, y1, x2, y2], at least a fifth of the extent wide and high."""
    low = rng.uniform(0, 0.6, (count, 2))
    size = rng.uniform(0.2, 0.4, (count, 2))
    return (np.concatenate([low, low + size], 1) * extent).astype("float32")


def objects(name, step, batch=2, extent=1.0, most=4):
    """(rng, boxes, labels, lengths): some boxes in each image, back to back."""
    rng = drawn(name, step)
    lengths = [int(n) for n in rng.randint(1, most + 1, batch)]
    count = sum(lengths)
    return rng, boxes_in(rng, count, extent), rng.randint(1, CLASSES, (count, 1)), [lengths]


class Backbone(object):
    """A stack of convolutions; `affine` replaces batch normalization by fixed scales, as for batches of one image."""

    def __init__(self, fluid, affine=False):
        self.fluid, self.affine = fluid, affine

    def conv_norm(self, input, filters, size=3, stride=1, act="relu", name=None):
        layers, ParamAttr = self.fluid.layers, self.fluid.ParamAttr
        conv = layers.conv2d(
            input=input, num_filters=filters, filter_size=size, stride=stride, padding=(size - 1) // 2, act=None,
            param_attr=ParamAttr(name=name + "_weights", learning_rate=1.0), bias_attr=False, name=name)
        if not self.affine:
            bn_name = "bn_" + name
            return layers.batch_norm(
                conv, act=act, param_attr=ParamAttr(name=bn_name + "_scale"), bias_attr=ParamAttr(bn_name + "_offset"),
                moving_mean_name=bn_name + "_mean", moving_variance_name=bn_name + "_variance")
        scale = layers.create_parameter(shape=[conv.shape[1]], dtype=conv.dtype, attr=ParamAttr(
            name=name + "_scale", learning_rate=0.0), default_initializer=self.fluid.initializer.Constant(1.0))
        bias = layers.create_parameter(shape=[conv.shape[1]], dtype=conv.dtype, attr=ParamAttr(
            name=name + "_offset", learning_rate=0.0), default_initializer=self.fluid.initializer.Constant(0.0))
        scale.stop_gradient = True
        bias.stop_gradient = True
        return layers.affine_channel(conv, scale=scale, bias=bias, act=act)

    def stages(self, image, widths, strides=None):
        """The results of all stages; each but the first halves the resolution."""
        x, found = image, []
        for i, width in enumerate(widths):
            x = self.conv_norm(x, width, 3, 2, name="stage%d_a" % i)
            short = x
            x = self.conv_norm(x, width, 3, 1, act=None, name="stage%d_b" % i)
            x = self.fluid.layers.elementwise_add(short, x, act="relu")
            found.append(x)
        return found
