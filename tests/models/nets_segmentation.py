"""Semantic segmentation: U-Net, DeepLab v3+, PSPNet, ICNet."""
import numpy as np
from harness import net
from segmentation_parts import CLASSES, Scopes, inputs, pixel_loss, segmenter


@net("unet")
def unet(fluid):
    """Encoder and decoder joined by concatenation; the decoder enlarges by bilinear interpolation."""
    s, layers = Scopes(fluid), fluid.layers

    def double_conv(data, out_ch, name):
        with s.scope(name):
            return s.conv_bn(s.conv_bn(data, out_ch, 3, name="conv0"), out_ch, 3, name="conv1")

    def up(data, short_cut, out_ch, name):
        with s.scope(name):
            short_cut_shape = layers.shape(short_cut)
            data = layers.resize_bilinear(data, short_cut_shape[2:], align_corners=True)
            return double_conv(layers.concat([data, short_cut], axis=1), out_ch, "double")

    image, label, mask = inputs(fluid, 40)
    with s.scope("encode"):
        data, shorts = double_conv(image, 6, "block1"), []
        for i, width in enumerate([12, 25, 25]):
            shorts.append(data)
            data = double_conv(layers.pool2d(data, pool_size=2, pool_stride=2, pool_type="max"), width, "down%d" % i)
    with s.scope("decode"):
        for i, width in enumerate([12, 6, 6]):
            data = up(data, shorts.pop(), width, "up%d" % i)
    with s.scope("logit"):
        logit = s.conv(data, CLASSES, 3, bias=True)
    loss, _ = pixel_loss(fluid, logit, label, mask)
    rate = fluid.layers.polynomial_decay(0.01, 3, end_learning_rate=0, power=0.9)
    optimizer = fluid.optimizer.Adam(learning_rate=rate, beta1=0.9, beta2=0.99,
                                     regularization=fluid.regularizer.L2Decay(regularization_coeff=4e-5))
    return segmenter(fluid, "unet", 40, logit, loss, label, mask, optimizer)


@net("deeplab_v3p")
def deeplab_v3p(fluid):
    """Atrous convolutions in a pyramid with the mean of the image, and a decoder; the loss is weighted by class."""

    s, layers = Scopes(fluid), fluid.layers
    image, label, mask = inputs(fluid, 49)
    with s.scope("xception"):
        data = s.conv_bn(image, 4, 3, stride=2, name="entry_conv")
        shortcut = data = s.separable(data, 8, 2, name="entry")
        data = s.separable(data, 12, 2, name="middle")
    with s.scope("encoder"):
        image_avg = layers.reduce_mean(data, [2, 3], keep_dim=True)
        image_avg = s.conv_bn(image_avg, 6, 1, name="image_pool")
        image_avg = layers.resize_bilinear(image_avg, layers.shape(data)[2:])
        aspp = [s.conv_bn(data, 6, 1, name="aspp0")] + [
            s.separable(data, 6, 1, dilation, "aspp%d" % dilation) for dilation in (2, 3, 4)]
        data = layers.concat([image_avg] + aspp, axis=1)
        data = layers.dropout(s.conv_bn(data, 8, 1, name="concat"), 0.0)
    with s.scope("decoder"):
        decode_data = s.conv_bn(shortcut, 5, 1, name="concat")
        encode_data = layers.resize_bilinear(data, layers.shape(decode_data)[2:])
        data = layers.concat([encode_data, decode_data], axis=1)
        data = s.separable(data, 8, 1, name="separable_conv1")
    with s.scope("logit"):
        logit = s.conv(data, CLASSES, 1, bias=True)
        logit = layers.resize_bilinear(logit, layers.shape(image)[2:])
    weight = np.array([[0.5, 1.0, 1.5, 2.0, 1.0]], "float32")
    loss, _ = pixel_loss(fluid, logit, label, mask, weight)
    rate = fluid.layers.linear_lr_warmup(fluid.layers.polynomial_decay(0.05, 3, 0.0, 0.9), 1, 0.001, 0.05)
    optimizer = fluid.optimizer.Momentum(
        learning_rate=rate, momentum=0.9, regularization=fluid.regularizer.L2DecayRegularizer(4e-5))
    return segmenter(fluid, "deeplab_v3p", 49, logit, loss, label, mask, optimizer)


@net("pspnet")
def pspnet(fluid):
    """Pooling at four scales; an auxiliary loss from the layer before the last."""
    s, layers = Scopes(fluid), fluid.layers
    image, label, mask = inputs(fluid, 48)
    data = s.conv_bn(image, 6, 3, stride=2, name="conv1")
    data = layers.pool2d(data, pool_size=3, pool_stride=2, pool_padding=1)
    middle = data = s.conv_bn(data, 12, 3, name="res2")
    data = s.conv_bn(data, 16, 3, dilation=2, name="res3")
    with s.scope("psp"):
        cat_layers = []
        for size in (1, 2, 3, 6):
            pool_feat = layers.adaptive_pool2d(data, pool_size=[size, size], pool_type="avg",
                                               name="pspnet_pool_%d" % size)
            conv_feat = s.conv_bn(pool_feat, 4, 1, name="psp_conv" + str(size))
            cat_layers.append(layers.resize_bilinear(conv_feat, out_shape=layers.shape(data)[2:],
                                                     name="psp_interp%d" % size))
        psp = layers.concat([data] + cat_layers[::-1], axis=1)
        psp = s.conv_bn(psp, 8, 3, name="psp_conv_out")
    with s.scope("dropout"):
        psp = layers.dropout(psp, dropout_prob=0.0, name="dropout")
    with s.scope("logit"):
        logit = s.conv(psp, CLASSES, 1, bias=True)
        logit = layers.resize_bilinear(logit, layers.shape(image)[2:])
    with s.scope("aux"):
        aux = s.conv(middle, CLASSES, 1, bias=True)
        aux = layers.resize_nearest(aux, layers.shape(image)[2:])
    loss, _ = pixel_loss(fluid, logit, label, mask)
    aux_loss, _ = pixel_loss(fluid, aux, label, mask)
    loss = loss + aux_loss * 0.4
    optimizer = fluid.optimizer.SGD(fluid.layers.piecewise_decay([1, 2], [0.05, 0.02, 0.01]),
                                    regularization=fluid.regularizer.L2Decay(1e-4))
    return segmenter(fluid, "pspnet", 48, logit, loss, label, mask, optimizer)


@net("icnet")
def icnet(fluid):
    """Three branches of different resolution, each with a loss against the label at its size."""
    s, layers = Scopes(fluid), fluid.layers
    image, label, mask = inputs(fluid, 64)
    half = layers.resize_bilinear(image, out_shape=[32, 32])
    with s.scope("sub4"):
        low = s.conv(layers.pool2d(s.conv_bn(half, 6, 3, 2), 3, "avg", 2, 1), 8, 3, dilation=2)
        low = layers.relu(s.gn(low))
        pyramid = [layers.resize_bilinear(layers.pool2d(low, size, "avg", size), out_shape=low.shape[2:])
                   for size in (8, 4, 2)]
        low = layers.sum([low] + pyramid)
    with s.scope("sub2"):
        middle = s.conv_bn(half, 8, 3, 4)
    with s.scope("sub1"):
        high = s.conv_bn(s.conv_bn(image, 4, 3, 2, name="conv1"), 8, 3, 4, name="conv2")

    def cascade(small, large, name):
        with s.scope(name):
            small = layers.resize_bilinear(small, out_shape=large.shape[2:])
            small = s.bn(s.conv(small, 8, 3, dilation=2))
        with s.scope(name + "_proj"):
            large = s.bn(s.conv(large, 8, 1))
        return layers.relu(small + large)

    sub24 = cascade(low, middle, "sub24")
    sub124 = cascade(sub24, high, "sub12")
    loss = 0
    for name, data, weight in (("sub4_out", low, 0.16), ("sub24_out", sub24, 0.4), ("sub124_out", sub124, 1.0)):
        with s.scope(name):
            logit = s.conv(data, CLASSES, 1, bias=True)
            size = logit.shape[2]
            near = layers.cast(layers.resize_nearest(layers.cast(label, "float32"), out_shape=[size, size],
                                                     align_corners=False), "int32")
            near_mask = layers.cast(layers.resize_nearest(layers.cast(mask, "float32"), out_shape=[size, size],
                                                          align_corners=False), "int32")
            loss += weight * pixel_loss(fluid, logit, near, near_mask)[0]
    with s.scope("up"):
        logit = s.conv(sub124, CLASSES, 4, stride=8, deconv=True, bias=True)
        logit = layers.resize_bilinear(logit, out_shape=image.shape[2:])
    optimizer = fluid.optimizer.Momentum(0.02, momentum=0.9, regularization=fluid.regularizer.L2Decay(1e-4))
    return segmenter(fluid, "icnet", 64, logit, loss, label, mask, optimizer)
