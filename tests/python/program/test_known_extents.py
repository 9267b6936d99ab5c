"""Known extents of a shape stay known next to Variables, as in 1.8.5."""
import numpy as np
import pytest

import anabranch.fluid as fluid

layers = fluid.layers


def rows_of(x):
    return layers.shape(x)[0:1]


MADE = {
    "fill_constant": (lambda x, n: layers.fill_constant([n, 4], "float32", 0.5), (-1, 4)),
    "zeros": (lambda x, n: layers.zeros([n, 4], "float32"), (-1, 4)),
    "full": (lambda x, n: layers.full([n, 4], 0.5), (-1, 4)),
    "expand": (lambda x, n: layers.expand(layers.fill_constant([1, 4], "float32", 0.5), [n, 1]), (-1, 4)),
    "slice": (lambda x, n: layers.slice(x, [0, 1], [0, 1], [n, 3]), (-1, 2)),
    "strided_slice": (lambda x, n: layers.strided_slice(x, [0, 1], [0, 0], [n, 4], [1, 2]), (-1, 2)),
    "a Variable as a step": (lambda x, n: layers.strided_slice(x, [0, 1], [0, 0], [2, 4], [n, 3]), (-1, 2)),
    "reshape": (lambda x, n: layers.reshape(x, [n, 2, 2]), (-1, 2, 2)),
    "concat": (lambda x, n: layers.concat([layers.zeros([n, 4], "float32"), x], 1), (-1, 8)),
    "split": (lambda x, n: layers.split(layers.concat([x, x], 1), [rows_of(layers.zeros([3, 1], "float32")), 5], 1)[1],
              (-1, 5)),
}


@pytest.mark.parametrize("name", sorted(MADE))
def test_known_extents_stay_known(name):
    make, shape = MADE[name]
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        x = fluid.data("x", [None, 4])
        made = make(x, rows_of(x))
    assert made.shape == shape
    got, = fluid.Executor().run(program, feed={"x": np.ones((3, 4), "float32")}, fetch_list=[made])
    assert len(got.shape) == len(shape) and all(e in (-1, g) for e, g in zip(shape, got.shape))


def test_a_layer_with_parameters_takes_such_a_variable():
    program, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(program, startup):
        x = fluid.data("x", [None, 4])
        out = layers.fc(layers.zeros([rows_of(x), 4], "float32"), 2)
    exe = fluid.Executor()
    exe.run(startup)
    assert exe.run(program, feed={"x": np.ones((3, 4), "float32")}, fetch_list=[out])[0].shape == (3, 2)
