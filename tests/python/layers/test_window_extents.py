"""Windows that are longer than the padded image, by less than one stride: Fluid 1.8.5 divides towards zero, so one
window is left. The values are those of PaddlePaddle 1.8.5 for X = sin(1.37 i), filters of sin(1.37 i + 5)."""
import numpy as np
import pytest

import anabranch.fluid as fluid

layers = fluid.layers


def waves(*shape, start=0):
    return np.sin(np.arange(np.prod(shape)) * 1.37 + start).reshape(shape).astype("float32")


def filters(*shape):
    return fluid.ParamAttr(initializer=fluid.initializer.NumpyArrayInitializer(waves(*shape, start=5)))


def conv(x, window, **more):
    make = layers.conv2d if len(x.shape) == 4 else layers.conv3d
    weight = filters(2, x.shape[1], *[window] * (len(x.shape) - 2))
    return make(x, 2, window, param_attr=weight, bias_attr=False, **more)


def by_channel(x, window, **more):
    channels = x.shape[1]
    return layers.conv2d(x, channels, window, groups=channels, bias_attr=False,
                         param_attr=filters(channels, 1, window, window), **more)


def average(x, window, **more):
    make = layers.pool2d if len(x.shape) == 4 else layers.pool3d
    return make(x, window, "avg", **more)


def largest(x, window, **more):
    make = layers.pool2d if len(x.shape) == 4 else layers.pool3d
    return make(x, window, "max", **more)


def indexed(x, window, stride):
    helper = fluid.layer_helper.LayerHelper("max_pool2d_with_index")
    out, mask = (helper.create_variable_for_type_inference(t) for t in ("float32", "int32"))
    helper.append_op(type="max_pool2d_with_index", inputs={"X": [x]}, outputs={"Out": [out], "Mask": [mask]},
                     attrs={"ksize": [window] * 2, "strides": [stride] * 2, "paddings": [0, 0]})
    return out


def deformed(x, window, **more):
    still = layers.fill_constant([1, 2 * window * window, 1, 1], "float32", 0.25)
    whole = layers.fill_constant([1, window * window, 1, 1], "float32", 1.0)
    return layers.deformable_conv(x, still, whole, 2, window, im2col_step=1, bias_attr=False,
                                  param_attr=filters(2, 1, window, window), **more)


# name: layer, shape of X, shape of its output, values of the output, sum of |d sum(out * out) / dX|
CASES = {
    "average": (lambda x: average(x, 3, pool_stride=2), (1, 2, 2, 2), (1, 2, 1, 1), [0.136702, 0.146666], 0.566736),
    "average of whole windows": (lambda x: average(x, 3, pool_stride=2, exclusive=False), (1, 2, 2, 2),
                                 (1, 2, 1, 1), [0.0607565, 0.0651849], 0.111948),
    "average, rounded up": (lambda x: average(x, 4, pool_stride=2, ceil_mode=True), (1, 1, 2, 3),
                            (1, 1, 1, 1), [0.0606974], 0.121395),
    "average, padded": (lambda x: average(x, 7, pool_stride=2, pool_padding=1, ceil_mode=True), (1, 1, 3, 9),
                        (1, 1, 1, 3), [0.010017, 0.190419, -0.181024], 0.198831),
    "average of a volume": (lambda x: average(x, 3, pool_stride=2), (1, 1, 2, 2, 4),
                            (1, 1, 1, 1, 1), [0.0490198], 0.0980397),
    "maximum": (lambda x: largest(x, 8, pool_stride=8), (1, 1, 7, 7), (1, 1, 1, 1), [0.99992], 1.99984),
    "maximum, channels last": (lambda x: largest(x, 3, pool_stride=2, data_format="NHWC"), (1, 2, 2, 3),
                               (1, 1, 1, 3), [0.93376, 0.979908, 0.595561], 5.01846),
    "maximum, VALID": (lambda x: largest(x, 3, pool_stride=2, pool_padding="VALID"), (1, 1, 2, 5),
                       (1, 1, 1, 2), [0.979908, 0.390885], 2.74159),
    "maximum, not square": (lambda x: largest(x, [3, 2], pool_stride=[2, 1]), (1, 1, 2, 5),
                            (1, 1, 1, 4), [0.979908, 0.979908, 0.390885, -0.234176], 5.16975),
    "maximum of a volume": (lambda x: largest(x, 3, pool_stride=2), (1, 1, 2, 2, 4),
                            (1, 1, 1, 1, 1), [0.979908], 1.95982),
    "maximum with its index": (lambda x: indexed(x, 3, 2), (1, 2, 2, 2), (1, 2, 1, 1), [0.979908, 0.93376], 3.82734),
    "conv": (lambda x: conv(x, 3, stride=2), (1, 1, 2, 5),
             (1, 2, 1, 2), [-0.0648258, -0.188866, -0.045622, -0.108831], 2.41475),
    "conv, stride 3": (lambda x: conv(x, 4, stride=3), (1, 2, 2, 2), (1, 2, 1, 1), [0.235822, 0.174906], 4.19607),
    "conv, dilated": (lambda x: conv(x, 3, stride=2, dilation=2), (1, 1, 4, 5),
                      (1, 2, 1, 1), [-0.032079, -0.0359588], 0.536401),
    "conv, padded": (lambda x: conv(x, 5, stride=2, padding=[1, 1, 0, 2]), (1, 1, 2, 2),
                     (1, 2, 1, 1), [-0.236316, 0.492097], 3.49975),
    "conv, by channel": (lambda x: by_channel(x, 3, stride=2), (1, 2, 2, 2),
                         (1, 2, 1, 1), [0.922858, 1.24772], 10.1005),
    "conv of volumes": (lambda x: conv(x, 3, stride=2), (1, 1, 2, 2, 2),
                        (1, 2, 1, 1, 1), [2.17058, 1.11226], 31.1207),
    "columns": (lambda x: layers.unfold(x, 3, 2), (1, 1, 2, 2),
                (1, 9, 1), [0, 0.979908, 0, 0.390885, -0.823984, 0, 0, 0, 0], 4.38955),
    "columns, dilated": (lambda x: layers.unfold(x, 2, 2, 0, 4), (1, 1, 4, 5),
                         (1, 4, 1), [0, -0.719572, 0, 0], 1.43914),
    "deformed": (lambda x: deformed(x, 3, stride=2), (1, 1, 2, 2), (1, 2, 1, 1), [0.260796, 0.108388], 0.88566),
    "rows": (lambda x: layers.reshape(layers.im2sequence(x, 3, 2), [1, 9]), (1, 1, 2, 2),
             (1, 9), [0, 0.979908, 0, 0.390885, -0.823984, 0, 0, 0, 0], 4.38955),
}

REFUSED = {
    "one stride longer": (lambda x: conv(x, 4, stride=2), (1, 1, 2, 2)),
    "stride of 1": (lambda x: largest(x, 3, pool_stride=1), (1, 1, 2, 2)),
    "two strides longer, rounded up": (lambda x: average(x, 5, pool_stride=2, ceil_mode=True), (1, 1, 1, 6)),
    "dilated": (lambda x: conv(x, 3, dilation=2), (1, 1, 4, 5)),
    "volume": (lambda x: conv(x, 4, stride=2), (1, 1, 2, 2, 2)),
    "columns": (lambda x: layers.unfold(x, 4, 2), (1, 1, 2, 2)),
    "deformed": (lambda x: deformed(x, 3), (1, 1, 2, 2)),
}


def results(make, shape):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.scope_guard(fluid.Scope()):
        x = fluid.data("x", list(shape))
        x.stop_gradient = False
        out = make(x)
        gradient, = fluid.gradients([layers.reduce_sum(out * out)], [x])
        exe = fluid.Executor()
        if startup.global_block().ops:
            exe.run(startup)
        run = exe.run(main, feed={"x": waves(*shape)}, fetch_list=[out, gradient], return_numpy=False)
        return [out.shape, *map(np.array, run)]


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_window_that_is_longer_by_less_than_a_stride(name):
    make, shape, extents, values, slope = CASES[name]
    declared, out, gradient = results(make, shape)
    assert declared == out.shape == extents
    np.testing.assert_allclose(out.ravel(), values, rtol=1e-4, atol=1e-5)
    assert np.abs(gradient).sum() == pytest.approx(slope, rel=1e-4)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_window_that_is_a_stride_longer_is_refused(name):
    make, shape = REFUSED[name]
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        with pytest.raises(ValueError, match="the window must be less than one stride"):
            make(fluid.data("x", list(shape)))
