"""Convolutions that multiply rows of channels over the batch: of small images, large filters, and channels that fill no
blocks. Results are those of float64, with the same bits on every number of threads; those of an image do not depend on
the batch."""
import numpy as np
import pytest
from op_case import seeded

import anabranch.fluid as fluid

# name: batch, channels, filters, (height, width), window, and further arguments
SHAPES = {"rows of four": (32, 128, 256, (4, 4), 3, dict(padding=1)),
          "one pixel": (24, 144, 96, (1, 1), 3, dict(padding=1)),
          "two pixels, of which a wide window sees all": (16, 64, 80, (2, 1), 5, dict(padding=2)),
          "channels that fill no vector": (9, 20, 50, (12, 12), 5, {}),
          "channels that fill no vector, padded": (7, 50, 20, (6, 5), 3, dict(padding=1)),
          "strides": (13, 64, 48, (7, 7), 3, dict(padding=1, stride=2)),
          "strides that skip pixels": (8, 100, 34, (9, 8), 2, dict(stride=3)),
          "different strides and paddings": (10, 48, 36, (5, 8), (3, 5), dict(padding=[1, 0, 2, 3], stride=(2, 1))),
          "dilated": (12, 96, 64, (6, 6), 3, dict(padding=2, dilation=2)),
          "a window of one pixel": (16, 512, 256, (2, 2), 1, {}),
          "a window of one pixel with strides": (12, 52, 300, (4, 4), 1, dict(stride=2)),
          "a prime batch": (31, 64, 64, (4, 4), 3, dict(padding=1)),
          "one sample": (1, 256, 272, (3, 3), 3, dict(padding=1))}
GRADIENTS = ["x@GRAD", "filter@GRAD"]


def built(dtype, name, transposed=False, last=False):
    """A program with a convolution, its output, and the shape of the gradient that is fed."""
    n, channels, filters, size, window, more = SHAPES[name]
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    layer = fluid.layers.conv2d_transpose if transposed else fluid.layers.conv2d
    if transposed:
        more = dict(more, filter_size=window)
    else:
        more = dict(more, filter_size=window, data_format="NHWC" if last else "NCHW")
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [None] + (list(size) + [channels] if last else [channels] + list(size)), dtype)
        x.stop_gradient = False
        out = layer(x, num_filters=filters, bias_attr=False, param_attr=fluid.ParamAttr("filter"), **more)
        weights = fluid.data("dout", [None] + list(out.shape[1:]), dtype)
        loss = fluid.layers.reduce_sum(out * weights)
        fluid.backward.append_backward(loss)
    fluid.Executor().run(startup, scope=scope)
    kernel = main.global_block().var("filter")
    value = seeded(3).normal(0, 1, kernel.shape).astype(dtype)
    scope.find_var("filter").get_tensor().set(value, fluid.CPUPlace())
    return main, scope, out, loss


def results(dtype, name, threads=1, batch=None, **how):
    """The output, and the gradients of image and filter, over the first `batch` samples."""
    main, scope, out, loss = built(dtype, name, **how)
    n = SHAPES[name][0]
    draw = seeded(4)
    feed = {}
    for key in ("x", "dout"):
        shape = [n] + list(main.global_block().var(key).shape[1:])
        feed[key] = draw.normal(0, 1, shape).astype(dtype)[:batch]
    strategy = fluid.ExecutionStrategy()
    strategy.num_threads = threads
    program = fluid.CompiledProgram(main).with_data_parallel(loss_name=loss.name, exec_strategy=strategy,
                                                             places=[fluid.CPUPlace()])
    return fluid.Executor().run(program, feed=feed, fetch_list=[out] + GRADIENTS, scope=scope)


def near(found, exact):
    for a, e in zip(found, exact):
        np.testing.assert_allclose(a, e, rtol=1e-4, atol=1e-5 * np.abs(e).max())


@pytest.mark.parametrize("name", SHAPES)
def test_float32_gives_what_float64_gives_on_any_number_of_threads(name):
    one = results("float32", name)
    near(one, results("float64", name))
    for threads in (2, 7):
        for a, b in zip(one, results("float32", name, threads)):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", SHAPES)
def test_the_output_for_an_image_does_not_depend_on_the_batch(name):
    n = SHAPES[name][0]
    whole = results("float32", name)[0]
    for batch in {1, n // 2 + 1}:
        np.testing.assert_array_equal(results("float32", name, batch=batch)[0], whole[:batch])


@pytest.mark.parametrize("name", ["rows of four", "channels that fill no vector", "strides", "a window of one pixel"])
def test_channels_last(name):
    near(results("float32", name, last=True), results("float64", name, last=True))


@pytest.mark.parametrize("name", ["rows of four", "channels that fill no vector, padded", "strides", "dilated"])
def test_transposed(name):
    near(results("float32", name, transposed=True), results("float64", name, transposed=True))


def net(dtype):
    """Four steps of a net whose convolutions stay in the layout of the kernels, with bias, shortcut and relu after
    them."""
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [None, 32, 4, 6], dtype)
        first = fluid.layers.conv2d(x, 96, 3, padding=1, act="relu", param_attr="a")
        inner = fluid.layers.conv2d(first, 96, 3, padding=1, param_attr="b")
        added = fluid.layers.relu(fluid.layers.elementwise_add(inner, first))
        last = fluid.layers.conv2d(added, 64, 3, stride=2, padding=1, act="relu", param_attr="c")
        loss = fluid.layers.reduce_mean(last * last)
        fluid.optimizer.SGD(0.1).minimize(loss)
    exe = fluid.Executor()
    exe.run(startup, scope=scope)
    draw = seeded(7)
    for name in "abc":
        shape = main.global_block().var(name).shape
        scope.find_var(name).get_tensor().set(draw.normal(0, 0.05, shape).astype(dtype), fluid.CPUPlace())
    feed = {"x": seeded(5).normal(0, 1, (11, 32, 4, 6)).astype(dtype)}
    return [exe.run(main, feed, [loss, last], scope=scope) for _ in range(4)]


def test_a_net_in_the_layout_of_the_kernels():
    for single, double in zip(net("float32"), net("float64")):
        near(single, double)


def test_other_samples_and_padding_are_not_read():
    """An image of NaN reaches neither its neighbors in the batch nor their gradients."""
    main, scope, out, _ = built("float32", "rows of four")
    n = SHAPES["rows of four"][0]
    draw = seeded(4)
    feed = {k: draw.normal(0, 1, [n] + list(main.global_block().var(k).shape[1:])).astype("float32")
            for k in ("x", "dout")}
    feed["x"][5] = feed["dout"][5] = np.nan
    for found in fluid.Executor().run(main, feed, [out, "x@GRAD"], scope=scope):
        assert np.isnan(found[5]).all()
        assert np.isfinite(np.delete(found, 5, 0)).all()
