"""Passes never change what is accepted: shapes that only the ops of passes refuse run without them."""
import numpy as np
import pytest

import anabranch.fluid as fluid
from anabranch import _core

layers = fluid.layers
ROWS, WIDTH, COLUMNS = 3, 6, 4


class Layer:
    """A fully connected layer and its gradients, whose bias the user may set to anything that elementwise_add takes."""

    def __init__(self, replicas=1, debug="", trains=True):
        self.main, startup, self.scope = fluid.Program(), fluid.Program(), fluid.Scope()
        with fluid.program_guard(self.main, startup), fluid.unique_name.guard(), fluid.scope_guard(self.scope):
            x = fluid.data("x", [None, WIDTH], "float32")
            self.out = layers.fc(x, COLUMNS, act="relu", param_attr="w", bias_attr="b")
            self.loss = layers.mean(layers.square(self.out))
            if trains:
                fluid.optimizer.SGD(0.0).minimize(self.loss)
        self.exe = fluid.Executor(fluid.CPUPlace())
        self.exe.run(startup, scope=self.scope)
        build = fluid.BuildStrategy()
        build.debug_graphviz_path = debug
        self.target = fluid.CompiledProgram(self.main).with_data_parallel(
            loss_name=self.loss.name, build_strategy=build, places=[fluid.CPUPlace()] * replicas)
        self.w = np.array(self.scope.find_var("w").get_tensor())

    def set_bias(self, *shape):
        self.b = np.random.RandomState(1).normal(0, 1, shape).astype("float32")
        self.scope.find_var("b").get_tensor().set(self.b, fluid.CPUPlace())

    def run(self, rows=ROWS, fetch=None):
        x = np.random.RandomState(rows).normal(0, 1, (rows, WIDTH)).astype("float32")
        fetch = fetch or [self.out]
        got, = self.exe.run(self.target, feed={"x": x}, fetch_list=fetch, scope=self.scope)
        np.testing.assert_allclose(got, np.maximum(x @ self.w + self.b, 0), rtol=1e-5, atol=1e-6)
        return self.target.explain()


def is_disabled(told):
    disabled = [line for line in told.splitlines()
                if line.split()[0] == "fuse_fc" and "skipped: disabled for this step: " in line]
    assert bool(disabled) == ("passes are disabled for this step: they reject these shapes" in told)
    assert bool(disabled) or "fuse_fc          applied, " in told
    return bool(disabled)


@pytest.mark.parametrize("trains, why", [(False, "fused_fc: Bias must have"),
                                         (True, "b is declared [4], it holds [3, 4]")])
@pytest.mark.parametrize("replicas", [1, 2])
def test_what_a_fused_op_refuses_runs_without_it(replicas, trains, why):
    """Gradients of sums rely on it that values from outside look as declared."""
    layer = Layer(replicas, trains=trains)
    layer.set_bias(COLUMNS)
    assert not is_disabled(layer.run(ROWS * replicas))
    bias = np.array(layer.scope.find_var("b").get_tensor())
    np.testing.assert_array_equal(bias, layer.b)
    layer.b = np.tile(np.random.RandomState(2).normal(0, 1, (ROWS, COLUMNS)).astype("float32"), (replicas, 1))
    layer.scope.find_var("b").get_tensor().set(layer.b[:ROWS], fluid.CPUPlace())
    for _ in range(3):
        told = layer.run(ROWS * replicas)
        assert is_disabled(told) and "ShapeMismatch: " + why in told


@pytest.mark.parametrize("trains", [False, True])
def test_passes_come_back_with_shapes_that_fit(trains):
    layer = Layer(trains=trains)
    for shape, expected in [((COLUMNS,), False), ((ROWS, COLUMNS), True), ((COLUMNS,), False), ((ROWS, 1), True),
                            ((ROWS, COLUMNS), True), ((1,), trains), ((COLUMNS,), False)]:
        layer.set_bias(*shape)
        assert [is_disabled(layer.run()) for _ in range(2)] == [expected, expected], shape


def test_an_error_is_that_of_the_users_own_op():
    layer = Layer()
    layer.set_bias(ROWS, COLUMNS)
    assert is_disabled(layer.run())
    for _ in range(2):
        with pytest.raises(fluid.core.EnforceNotMet, match="ShapeMismatch: elementwise_add: X is") as refused:
            layer.run(ROWS + 1)
        assert "fused_fc" not in str(refused.value) and "while  inferring shapes" in str(refused.value)
    assert is_disabled(layer.run())
    layer.set_bias(COLUMNS)
    assert not is_disabled(layer.run(ROWS + 1))


def test_a_program_that_no_pass_has_changed_is_not_tried_twice():
    layer = Layer()
    layer.set_bias(ROWS + 1, COLUMNS)
    fluid.set_flags({"FLAGS_disable_passes": "all"})
    try:
        with pytest.raises(fluid.core.EnforceNotMet, match="elementwise_add"):
            layer.run()
        assert "disabled for this step" not in layer.target.explain()
    finally:
        fluid.set_flags({"FLAGS_disable_passes": ""})


def test_what_nodes_refuse_while_they_run_stays_refused():
    main, scope = fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, fluid.Program()), fluid.unique_name.guard():
        x = fluid.data("x", [None, WIDTH], "float32")
        rows = layers.gather(x, layers.reshape(layers.where(fluid.data("chosen", [None], "bool")), [-1]))
        w, b = (layers.create_parameter(s, "float32", n) for s, n in (([WIDTH, COLUMNS], "w"), ([COLUMNS], "b")))
        out = layers.relu(layers.elementwise_add(layers.mul(rows, w), b))
    for name, shape in ("w", (WIDTH, COLUMNS)), ("b", (2, COLUMNS)):
        scope.var(name).get_tensor().set(np.ones(shape, "float32"), fluid.CPUPlace())
    feed = {"x": np.ones((ROWS, WIDTH), "float32"), "chosen": np.array([True, False, True])}
    with pytest.raises(fluid.core.EnforceNotMet, match="fused_fc: Bias must have(.|\n)*state  persistable"):
        fluid.Executor().run(main, feed=feed, fetch_list=[out], scope=scope)


def test_graphs_of_both_are_drawn(tmp_path):
    layer = Layer(debug=str(tmp_path / "g"))
    layer.set_bias(ROWS, COLUMNS)
    assert is_disabled(layer.run())
    names = {p.name for p in tmp_path.iterdir()}
    assert {"g_00_replicated.dot", "g_disabled_00_replicated.dot"} <= names
    fused = [n for n in names if n.endswith("fuse_fc.dot")]
    assert fused and not any("disabled" in n for n in fused)


def test_passes_that_keep_ops_are_known():
    kept = {"remove_dead", "updates_last", "program_order"}
    layer = Layer()
    layer.set_bias(ROWS, COLUMNS)
    told = layer.run()
    disabled = {line.split()[0] for line in told.splitlines() if "skipped: disabled for this step" in line}
    assert disabled == {name for name, *_ in _core.pass_list()} - kept
