"""NumPy's integers, floats and truth values mean the same as Python's in every argument of a layer."""
import numpy as np
import pytest

import anabranch.fluid as fluid

layers = fluid.layers
ROWS = np.sin(np.arange(24) * 1.37).reshape(4, 6).astype("float32")
IMAGES = np.sin(np.arange(72) * 1.37).reshape(1, 2, 6, 6).astype("float32")

# Each layer gets i (whole numbers), f (floats), b (truth values) of the kind that is tested.
CASES = {
    "reshape": lambda x, i, f, b: layers.reshape(x, [i(3), i(8)]),
    "reduce_sum": lambda x, i, f, b: layers.reduce_sum(x, i(1)),
    "reduce_mean": lambda x, i, f, b: layers.reduce_mean(x, [i(1)], keep_dim=b(True)),
    "index": lambda x, i, f, b: x[i(1)],
    "slice of a slice": lambda x, i, f, b: x[i(1):i(3), i(2)],
    "slice": lambda x, i, f, b: layers.slice(x, (i(0), i(1)), (i(1), i(2)), [i(3), i(5)]),
    "expand": lambda x, i, f, b: layers.expand(x, [i(2), i(1)]),
    "pad": lambda x, i, f, b: layers.pad(x, [i(0), i(1), i(1), i(0)], f(0.5)),
    "scale": lambda x, i, f, b: layers.scale(x, f(2.0), f(0.5), b(False)),
    "matmul": lambda x, i, f, b: layers.matmul(x, x, b(False), b(True), f(0.5)),
    "cumsum": lambda x, i, f, b: layers.cumsum(x, i(1), b(True)),
    "fill_constant": lambda x, i, f, b: layers.fill_constant([i(2), i(3)], "float32", f(0.5)),
    "flags": lambda x, i, f, b: layers.cast(layers.fill_constant([i(2)], "bool", b(True)), "float32"),
    "dropout": lambda x, i, f, b: layers.dropout(x, f(0.5), is_test=b(True)),
    "fc": lambda x, i, f, b: layers.fc(x, i(3), i(1), param_attr=fluid.initializer.Constant(f(0.5))),
    "split": lambda x, i, f, b: layers.split(x, [i(2), i(4)], i(1))[1],
    "leaky_relu": lambda x, i, f, b: layers.leaky_relu(x, f(0.25)),
    "conv2d": lambda x, i, f, b: layers.conv2d(x, i(2), [i(3), i(3)], (i(1), i(2)), i(1), [i(1), i(1)], i(1),
                                               param_attr=fluid.initializer.Constant(0.1)),
    "pool2d": lambda x, i, f, b: layers.pool2d(x, [i(2), i(2)], "avg", (i(2), i(2)), [i(0), i(0)], b(False)),
    "batch_norm": lambda x, i, f, b: layers.batch_norm(x, is_test=b(False), momentum=f(0.5), epsilon=f(0.0001)),
    "unfold": lambda x, i, f, b: layers.unfold(x, [i(3), i(3)], i(1), i(0), i(1)),
}

KINDS = {
    "64 bits": (np.int64, np.float64, np.bool_),
    "32 bits": (np.int32, np.float32, np.bool_),
    "arrays without axes": (np.array, np.array, np.array),
}


def value(make, kind):
    main, startup = fluid.Program(), fluid.Program()
    fed = IMAGES if make in (CASES["conv2d"], CASES["pool2d"], CASES["batch_norm"], CASES["unfold"]) else ROWS
    with fluid.program_guard(main, startup), fluid.scope_guard(fluid.Scope()):
        out = make(fluid.data("x", list(fed.shape)), *kind)
        exe = fluid.Executor()
        if startup.global_block().ops:
            exe.run(startup)
        return exe.run(main, feed={"x": fed}, fetch_list=[out])[0]


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("name", sorted(CASES))
def test_numbers_of_numpy_mean_the_same(name, kind):
    expected = value(CASES[name], (int, float, bool))
    got = value(CASES[name], KINDS[kind])
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got, expected)


def test_attributes_of_an_operator_without_a_layer():
    program = fluid.Program()
    block = program.global_block()
    block.create_var(name="y", dtype="float32")
    block.append_op(type="fill_constant", outputs={"Out": ["y"]},
                    attrs={"shape": [np.int64(2)], "dtype": 5, "value": np.array(0.5), "force_cpu": np.bool_(True)})
    np.testing.assert_array_equal(fluid.Executor().run(program, fetch_list=["y"])[0], [0.5, 0.5])


def test_an_array_stays_an_array_where_one_is_copied():
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        with pytest.raises(Exception, match="assign"):
            layers.assign(np.float32(1.0))


@pytest.mark.parametrize("declared", [-1, 2, 3])
def test_lstm_compares_the_batch_of_its_states_at_the_run(declared):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.scope_guard(fluid.Scope()):
        x = fluid.data("x", [4, declared, 3])
        state = layers.fill_constant([1, 2, 5], "float32", 0.1)
        out, _, _ = layers.lstm(x, state, state, 4, 5, 1)
        exe = fluid.Executor()
        exe.run(startup)
        if declared != 3:
            assert exe.run(main, feed={"x": np.ones((4, 2, 3), "float32")}, fetch_list=[out])[0].shape == (4, 2, 5)
        with pytest.raises(ValueError, match=r"cudnn_lstm: InitH must be \[1, 3, 5\], got \[1, 2, 5\]" if declared != 2
                           else "the shape of fed variable"):
            exe.run(main, feed={"x": np.ones((4, 3, 3), "float32")}, fetch_list=[out])
