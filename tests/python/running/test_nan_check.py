"""FLAGS_check_nan_inf: the operator whose output holds NaN or infinity is named, for values of any kind."""
import numpy as np
import pytest

import anabranch.fluid as fluid


@pytest.fixture(autouse=True)
def checked():
    fluid.set_flags({"FLAGS_check_nan_inf": True})
    yield
    fluid.set_flags({"FLAGS_check_nan_inf": False})


def test_sparse_rows_themselves():
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        ids = fluid.data("ids", [None, 1], "int64")
        up = fluid.data("up", [None, 1, 4], "float32")
        table = main.global_block().create_parameter(name="table", shape=[10, 4], dtype="float32")
        grad = main.global_block().create_var(name="rows", type=fluid.core.VarDesc.VarType.SELECTED_ROWS)
        main.global_block().append_op(type="lookup_table_v2_grad",
                                      inputs={"W": [table], "Ids": [ids], "Out@GRAD": [up]},
                                      outputs={"W@GRAD": [grad]}, attrs={"is_sparse": True})
    exe = fluid.Executor()
    scope = fluid.Scope()
    scope.var("table").get_tensor().set(np.ones((10, 4), "float32"), fluid.CPUPlace())
    feed = {"ids": np.array([[3], [4]], "int64"), "up": np.ones((2, 1, 4), "float32")}
    exe.run(main, feed=feed, fetch_list=["rows"], scope=scope)
    feed["up"][1, 0, 2] = np.nan
    with pytest.raises(fluid.core.EnforceNotMet, match="rows holds nan at element 6 of the rows"):
        exe.run(main, feed=feed, fetch_list=["rows"], scope=scope)


def test_the_last_of_several_ops():
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        x = fluid.data("x", [3], "float64")
        y = fluid.layers.log(fluid.layers.scale(x, 2.0))
    feed = {"x": np.array([1.0, 2.0, 4.0])}
    np.testing.assert_allclose(fluid.Executor().run(main, feed=feed, fetch_list=[y])[0], np.log(2 * feed["x"]))
    feed["x"][1] = -1
    with pytest.raises(fluid.core.EnforceNotMet, match="log: .*%s holds -?nan at element 1" % y.name):
        fluid.Executor().run(main, feed=feed, fetch_list=[y])


def test_an_operator_in_the_iteration_of_a_loop():
    """0.5 / x, and x - 1 in each iteration: the division of the third one gives infinity."""
    main, layers = fluid.Program(), fluid.layers
    with fluid.program_guard(main, fluid.Program()):
        i, n = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 5)
        x, half = layers.fill_constant([1], "float32", 2.0), layers.fill_constant([1], "float32", 0.5)
        best = layers.fill_constant([1], "float32", 0.0)

        def body(i, x, best):
            return [layers.increment(i), layers.scale(x, bias=-1.0), layers.elementwise_div(half, x)]
        layers.while_loop(lambda i, x, best: layers.less_than(i, n), body, [i, x, best])
    with pytest.raises(fluid.core.EnforceNotMet, match="holds inf at element 0") as caught:
        fluid.Executor().run(main)
    text = str(caught.value)
    assert "elementwise_div" in text and "iteration 2 of the loop" in text and "test_nan_check.py" in text


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("as_tensor", [False, True])
def test_a_fed_value_that_holds_nan_is_named(compiled, as_tensor):
    """The operator that reads it is not to blame; without NaN in the feeds, no feed is mentioned."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.scope_guard(fluid.Scope()):
        x = fluid.data("x", [None, 3])
        y = fluid.layers.fc(x, 2, act="relu")
        exe = fluid.Executor()
        exe.run(startup)
        program = fluid.CompiledProgram(main) if compiled else main
        value = np.ones((2, 3), "float32")
        exe.run(program, feed={"x": value}, fetch_list=[y])
        value[1, 1] = np.nan
        fed = fluid.create_lod_tensor(value, [], fluid.CPUPlace()) if as_tensor else value
        with pytest.raises(ValueError, match=r'\n  fed    "x" holds nan at element 4 of \[2, 3\]; check the data'):
            exe.run(program, feed={"x": fed}, fetch_list=[y])
        with fluid.program_guard(main):
            z = fluid.layers.log(fluid.layers.scale(y, 0.0))
        with pytest.raises(ValueError, match="log_.* holds -inf") as caught:
            exe.run(main, feed={"x": np.ones((2, 3), "float32")}, fetch_list=[z])
        assert "  fed " not in str(caught.value)
