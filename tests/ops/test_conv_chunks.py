"""Convolutions over batches in several chunks: gradients of the filter, added up in the library's layout, and windows
of one pixel, whose images are rows."""
import numpy as np
import pytest
from op_case import seeded

import anabranch.fluid as fluid

# batch, channels, filters, (height, width), window, stride, groups
SHAPES = [(19, 64, 72, (4, 4), 3, 1, 1), (37, 48, 80, (2, 3), 3, 1, 1), (16, 96, 24, (16, 16), 1, 1, 1),
          (23, 3, 40, (20, 20), 7, 2, 1), (16, 20, 36, (7, 5), 1, 1, 1), (13, 64, 64, (9, 9), 3, 1, 64),
          (12, 30, 50, (14, 14), 1, 2, 1), (9, 64, 128, (6, 6), 1, 1, 4),
          (19, 144, 24, (10, 12), 1, 1, 1), (3, 24, 144, (28, 28), 1, 1, 1)]


def trained(dtype, shape, threads):
    """The output, and the gradients of image and filter."""
    n, channels, filters, size, window, stride, groups = shape
    draw = seeded(4)
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [n, channels] + list(size), dtype)
        x.stop_gradient = False
        out = fluid.layers.conv2d(x, filters, window, stride, window // 2, groups=groups, bias_attr=False,
                                  param_attr=fluid.ParamAttr("filter"))
        weights = fluid.data("dout", list(out.shape), dtype)
        loss = fluid.layers.reduce_sum(out * weights)
        fluid.backward.append_backward(loss)
    execution, build = fluid.ExecutionStrategy(), fluid.BuildStrategy()
    execution.num_threads = threads
    build.gradient_scale_strategy = fluid.BuildStrategy.GradientScaleStrategy.Customized
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup, scope=scope)
    values = [draw.normal(0, 1, v.shape).astype(dtype) for v in (x, out)]
    kernel = main.global_block().var("filter")
    scope.find_var("filter").get_tensor().set(draw.normal(0, 1, kernel.shape).astype(dtype), fluid.CPUPlace())
    program = fluid.CompiledProgram(main).with_data_parallel(
        loss_name=loss.name, build_strategy=build, exec_strategy=execution, places=[fluid.CPUPlace()])
    feed = dict(zip(("x", "dout"), values), **{loss.name + "@GRAD": np.ones(1, dtype)})
    return exe.run(program, feed=feed, fetch_list=[out, "x@GRAD", "filter@GRAD"], scope=scope)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_float32_gives_what_float64_gives_on_any_number_of_threads(shape):
    one, more, exact = (trained(dtype, shape, threads) for dtype, threads in
                        (("float32", 1), ("float32", 5), ("float64", 1)))
    for a, b, e in zip(one, more, exact):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_allclose(a, e, rtol=1e-4, atol=1e-5 * np.abs(e).max())
