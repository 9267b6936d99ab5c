"""Convolutions of few channels work in vectors of pixels, and those with windows of one pixel are matrix products: near
the exact sums, and the same bits for every batch and number of threads."""
import numpy as np
import pytest

import anabranch.fluid as fluid

SHAPES = {"whole vectors": (1, 24, 20, 5, {}), "two vectors and a half": (5, 20, 7, 3, {}),
          "padded": (3, 15, 50, 3, {"padding": 1}), "dilated": (6, 18, 11, 3, {"padding": 2, "dilation": 2}),
          "strides of rows": (2, 17, 9, (3, 2), {"stride": (2, 1), "padding": (1, 0)}),
          "many samples and channels": (17, 16, 60, 3, {"padding": 1}),
          "windows of one pixel": (144, 15, 72, 1, {}), "many windows of one pixel": (24, 40, 96, 1, {}),
          "as deep as a product may be": (160, 9, 48, 1, {})}


def outputs(name, dtype, feeds, threads=1):
    """Results of a convolution with bias and relu, for each of the feeds."""
    channels, size, filters, window, more = SHAPES[name]
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        x = fluid.data("x", [None, channels, size, size], dtype)
        out = fluid.layers.conv2d(x, filters, window, act="relu", param_attr="filter", bias_attr="bias", **more)
        exe = fluid.Executor()
        exe.run(startup)
        draw = np.random.RandomState(1)
        for parameter in ("filter", "bias"):
            tensor = fluid.global_scope().find_var(parameter).get_tensor()
            tensor.set(draw.normal(size=tensor.shape()).astype(dtype), fluid.CPUPlace())
        strategy = fluid.ExecutionStrategy()
        strategy.num_threads = threads
        program = fluid.CompiledProgram(main).with_data_parallel(exec_strategy=strategy, places=fluid.cpu_places(1))
        return [exe.run(program, {"x": feed.astype(dtype)}, [out])[0] for feed in feeds]


@pytest.fixture(params=SHAPES)
def name(request):
    return request.param


def images(name, rows):
    channels, size = SHAPES[name][:2]
    return np.random.RandomState(0).normal(size=(rows, channels, size, size)).astype("float32")


def test_near_the_exact_sums(name):
    x = images(name, 3)
    single, = outputs(name, "float32", [x])
    double, = outputs(name, "float64", [x])
    np.testing.assert_allclose(single, double, rtol=1e-5, atol=1e-5)


def test_bits_do_not_depend_on_the_batch_and_the_threads(name):
    x = images(name, 9)
    whole, first, rest = outputs(name, "float32", [x, x[:1], x[1:]])
    np.testing.assert_array_equal(np.concatenate([first, rest]), whole)
    for threads in (2, 5):
        other, = outputs(name, "float32", [x], threads)
        np.testing.assert_array_equal(other, whole)


def test_nothing_around_an_image_is_read():
    """A row ends where the next image starts: the values there, even NaN, are in none of the sums."""
    x = images("two vectors and a half", 3)
    clean, = outputs("two vectors and a half", "float32", [x])
    x[1] = np.nan
    dirty, = outputs("two vectors and a half", "float32", [x])
    np.testing.assert_array_equal(dirty[[0, 2]], clean[[0, 2]])
    assert np.isnan(dirty[1]).any()
