"""NumPy arrays as attributes of operators: same values as lists, without Python code that runs once per number."""
import sys

import numpy as np
import pytest

import anabranch.fluid as fluid
from anabranch.fluid.framework.operator import attr_value

layers = fluid.layers
ROWS = 5000


@pytest.fixture(autouse=True)
def fresh_programs():
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard(), \
            fluid.scope_guard(fluid.Scope()):
        yield


def numbers(dtype, shape=(ROWS, 4)):
    return np.random.RandomState(0).randint(0, 2 if dtype == "bool" else 100, shape).astype(dtype)


def calls_of(function):
    """Number of Python and C functions that ``function`` calls."""
    count = [0]

    def note(frame, event, arg):
        count[0] += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count[0]


def filled_by_an_initializer(dtype):
    start = fluid.initializer.NumpyArrayInitializer(numbers(dtype))
    return lambda: layers.create_parameter([ROWS, 4], dtype, default_initializer=start)


def assigned(dtype):
    values = numbers(dtype)
    return lambda: layers.assign(values)


def enlarging(dtype):
    return lambda: layers.create_parameter([20, 10, 10, 10], dtype,
                                           default_initializer=fluid.initializer.Bilinear())


def appended(dtype, values):
    block = fluid.default_main_program().global_block()
    out = block.create_var(name="out", shape=[ROWS, 4], dtype=dtype)
    slot = "fp32_values" if dtype == "float32" else dtype + "_values"
    return lambda: block.append_op(type="assign_value", outputs={"Out": [out]},
                                   attrs={"dtype": out.dtype, "shape": [ROWS, 4], slot: values})


@pytest.mark.parametrize("make", [
    lambda: filled_by_an_initializer("float32"), lambda: filled_by_an_initializer("int32"),
    lambda: assigned("float32"), lambda: assigned("int32"), lambda: assigned("int64"), lambda: assigned("bool"),
    lambda: enlarging("float32"), lambda: appended("float32", numbers("float32")),
    lambda: appended("int64", numbers("int64").ravel().tolist()),
    lambda: appended("float32", tuple(numbers("float32").ravel().tolist())),
], ids=["initializer float32", "initializer int32", "assign float32", "assign int32", "assign int64", "assign bool",
        "bilinear", "append_op of an array", "append_op of a list", "append_op of a tuple"])
def test_no_call_per_number(make):
    assert calls_of(make()) < ROWS


@pytest.mark.parametrize("dtype", ["float32", "int32", "int64", "bool"])
@pytest.mark.parametrize("form", [
    lambda a: a, lambda a: a.T, lambda a: a[::2, ::-1], lambda a: a[0, 0].reshape([1]),
    lambda a: np.asfortranarray(a), lambda a: np.broadcast_to(a[:1], (3, a.shape[1])),
], ids=["whole", "transposed", "sliced", "one", "columns first", "broadcast"])
def test_assigned_values(dtype, form):
    values = form(numbers(dtype, (6, 4)))
    got, = fluid.Executor().run(fetch_list=[layers.assign(values)])
    assert got.dtype == values.dtype
    np.testing.assert_array_equal(got, values)


def test_initial_values_of_a_transposed_array():
    values = np.random.RandomState(0).rand(4, 6).astype("float32").T
    w = layers.create_parameter([6, 4], "float32",
                                default_initializer=fluid.initializer.NumpyArrayInitializer(values))
    executor = fluid.Executor()
    executor.run(fluid.default_startup_program())
    np.testing.assert_array_equal(executor.run(fetch_list=[layers.scale(w, 1.0)])[0], values)


def test_an_array_that_changes_later_leaves_the_program_alone():
    values = np.ones([2, 2], "float32")
    out = layers.assign(values)
    values[:] = 7
    np.testing.assert_array_equal(fluid.Executor().run(fetch_list=[out])[0], np.ones([2, 2]))


def test_lists_with_other_elements_are_still_converted():
    block = fluid.default_main_program().global_block()
    mixed = attr_value([np.float32(0.5), 1, block, np.array([2, 3])])
    assert mixed[:2] == [0.5, 1] and mixed[2].idx == 0 and mixed[3] == [2, 3]
    assert list(attr_value((1, 2.5, True, "a"))) == [1, 2.5, True, "a"]
