"""Units of recurrent layers: parameters by name, hooks, units inside; values are those of Fluid 1.8.5."""
import numpy as np
import pytest

import anabranch.fluid as fluid
from anabranch.fluid import layers
from anabranch.fluid.contrib.layers import BasicGRUUnit, BasicLSTMUnit


def test_parameters_of_a_unit_by_name():
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
        x, unit, inner = fluid.data("x", [2, 4]), BasicLSTMUnit("g", 4), BasicGRUUnit("k", 2)
        assert unit.parameters() == [] and unit.clear_gradients() is None
        assert unit.create_variable("v", persistable=True, dtype="float32").name == "g/BasicLSTMUnit_0.v"
        unit(x, x, x)
        assert unit.add_sublayer("s", inner) is inner
        inner(x, fluid.data("h", [2, 2]))
        names = ["_weight", "_bias", "s._gate_weight", "s._candidate_weight", "s._gate_bias", "s._candidate_bias"]
        assert list(unit.state_dict()) == [name for name, _ in unit.named_parameters()] == names
        assert [name for name, _ in unit.named_parameters("p")][-1] == "p.s._candidate_bias"
        assert list(unit.state_dict(include_sublayers=False, structured_name_prefix="q.")) == ["q._weight", "q._bias"]
        assert (len(unit.parameters(False)), len(unit.parameters()), unit.sublayers()) == (2, 6, [inner])
        assert [name for name, _ in unit.named_sublayers("p", include_self=True)] == ["p", "p.s"]
        assert unit.create_parameter([2, 3], is_bias=True).name == "g/BasicLSTMUnit_0.b_1"
        assert unit.create_parameter([2, 3], attr=False) is None and unit.add_parameter("n", None) is None
        more = unit.add_parameter("z", unit.create_parameter([2, 3]))
        assert list(unit.state_dict(include_sublayers=False)) == ["_weight", "_bias", "z"] and more.shape == (2, 3)


def test_values_of_a_unit_are_set():
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        x, unit = fluid.data("x", [2, 4]), BasicLSTMUnit("g", 4)
        unit(x, x, x)
        fluid.Executor().run(fluid.default_startup_program())
        weight, bias = unit.parameters()
        unit.set_dict({"_weight": np.ones((8, 16), "float32"), "_bias": np.arange(16, dtype="float32")})
        assert np.array(fluid.global_scope().find_var(bias.name).get_tensor()).tolist() == list(range(16))
        unit.load_dict({weight.name: np.ones((8, 16), "float32"), bias.name: np.ones(16, "float32")},
                       use_structured_name=False)
        assert np.array(fluid.global_scope().find_var(bias.name).get_tensor()).tolist() == [1] * 16
        with pytest.raises(RuntimeError, match="_bias"):
            unit.set_dict({"_weight": np.ones((8, 16), "float32")})


def test_hooks_of_a_unit():
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x, h, unit, seen = fluid.data("x", [2, 4]), fluid.data("h", [2, 4]), BasicGRUUnit("g", 4), []
        before = unit.register_forward_pre_hook(lambda of, inputs: seen.append(inputs))
        swapped = unit.register_forward_pre_hook(lambda of, inputs: (inputs[1], inputs[0]))
        after = unit.register_forward_post_hook(lambda of, inputs, output: [inputs, output])
        inputs, output = unit(x, h)
        assert seen == [(x, h)] and inputs == (h, x) and output.shape == (2, 4)
        for hook in (before, swapped, after, after):
            hook.remove()
        assert unit(x, h).shape == (2, 4) and len(seen) == 1


@pytest.mark.parametrize("use, error", [
    (lambda unit: unit.train(), NotImplementedError), (lambda unit: unit.eval(), NotImplementedError),
    (lambda unit: unit.backward(), ValueError), (lambda unit: unit.clear_gradients(), AssertionError),
    (lambda unit: unit.add_parameter("a", 4), TypeError), (lambda unit: unit.add_sublayer("a", 4), AssertionError)])
def test_what_a_unit_refuses(use, error):
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        unit = BasicGRUUnit("g", 4)
        unit(fluid.data("x", [2, 4]), fluid.data("h", [2, 4]))
    with pytest.raises(error, match="BasicGRUUnit"):
        use(unit)


@pytest.mark.parametrize("cell", [layers.GRUCell, layers.LSTMCell, lambda n, **a: BasicGRUUnit("g", n, **a),
                                  lambda n, **a: BasicLSTMUnit("g", n, **a)])
@pytest.mark.parametrize("argument", ["gate_activation", "activation"])
@pytest.mark.parametrize("value", [np.ones(2), "relu", 3])
def test_an_activation_is_a_function(cell, argument, value):
    with fluid.program_guard(fluid.Program(), fluid.Program()), pytest.raises(TypeError) as caught:
        cell(4, **{argument: value})
    assert ": %s must be a function" % argument in str(caught.value)


@pytest.mark.parametrize("make", [layers.DynamicRNN, layers.StaticRNN, layers.IfElse, layers.Switch, layers.While])
@pytest.mark.parametrize("name", [2.0, [1.5], b"a"])
def test_a_name_is_a_text(make, name):
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        first = [layers.fill_constant([1], "bool", True)] if make in (layers.IfElse, layers.While) else []
        with pytest.raises(TypeError, match="name must be str or None, got " + type(name).__name__):
            make(*first, name=name)
