"""Gradients of products with broadcasting: sums that are too large for a cache are added up in parts, in the same order
as those of a few samples."""
import numpy as np
import pytest
from op_case import seeded

import anabranch.fluid as fluid

ROWS = 40

# extents after the leading one of X and Y, axis
SHAPES = [((24, 1, 16), (1, 20, 16), -1), ((1, 20, 16), (24, 1, 16), -1), ((130, 48), (130, 1), -1),
          ((130, 48), (130,), 0), ((4096,), (1,), -1), ((6, 300, 3), (1, 300, 1), -1)]


def gradients(op, shapes, axis, feed, threads=1):
    """Of X and Y, from the given gradient of the result."""
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()), fluid.unique_name.guard():
        x, y = (fluid.data(name, [None, *shape], "float32") for name, shape in zip("xy", shapes))
        x.stop_gradient = y.stop_gradient = False
        out = getattr(fluid.layers, op)(x, y, axis=axis)
        loss = fluid.layers.reduce_sum(out * fluid.data("dout", [None, *feed["dout"].shape[1:]], "float32"))
        fluid.backward.append_backward(loss)
    execution = fluid.ExecutionStrategy()
    execution.num_threads = threads
    program = fluid.CompiledProgram(main).with_data_parallel(loss_name=loss.name, exec_strategy=execution,
                                                             places=[fluid.CPUPlace()])
    return fluid.Executor(fluid.CPUPlace()).run(program, feed=feed, fetch_list=["x@GRAD", "y@GRAD"])


def drawn(shapes):
    draw = seeded(5)
    x, y = (draw.uniform(0.5, 2, (ROWS, *shape)).astype("float32") for shape in shapes)
    whole = y if y.ndim == x.ndim else y.reshape(y.shape + (1,) * (x.ndim - y.ndim))
    return {"x": x, "y": y, "dout": draw.normal(0, 1, np.broadcast(x, whole).shape).astype("float32")}


@pytest.mark.parametrize("op", ["elementwise_mul", "elementwise_div"])
@pytest.mark.parametrize("x,y,axis", SHAPES)
def test_many_samples_give_the_bits_of_each(op, x, y, axis):
    feed = drawn((x, y))
    assert feed["dout"].size > 65536 or axis == 0
    together = gradients(op, (x, y), axis, feed)
    for a, b in zip(together, gradients(op, (x, y), axis, feed, threads=5)):
        np.testing.assert_array_equal(a, b)
    for i in range(0, ROWS, 2):
        alone = gradients(op, (x, y), axis, {k: v[i:i + 2] for k, v in feed.items()})
        for a, b in zip(together, alone):
            np.testing.assert_array_equal(a[i:i + 2], b)
