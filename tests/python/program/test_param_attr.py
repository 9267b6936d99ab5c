"""ParamAttr in all its short forms, LayerHelper, weight normalization."""
import numpy as np
import pytest

import anabranch.fluid as fluid
from anabranch.fluid.layer_helper import LayerHelper


@pytest.fixture(autouse=True)
def fresh():
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard(), \
            fluid.scope_guard(fluid.Scope()):
        yield


def parameters():
    return [p.name for p in fluid.default_main_program().all_parameters()]


@pytest.mark.parametrize("attr, name", [
    (None, "fc_0.w_0"), ("mine", "mine"), (fluid.ParamAttr(name="its"), "its"),
    (fluid.initializer.Constant(2.0), "fc_0.w_0"), (fluid.regularizer.L2Decay(0.1), "fc_0.w_0"), (True, "fc_0.w_0"),
])
def test_short_forms(attr, name):
    fluid.layers.fc(fluid.data("x", [None, 4]), 2, param_attr=attr)
    assert parameters() == [name, "fc_0.b_0"]


def test_forms_that_raise():
    for bad in (3.5, object(), {"name": "w"}):
        with pytest.raises(TypeError):
            fluid.layers.fc(fluid.data("x", [None, 4]), 2, param_attr=bad)
    with pytest.raises(TypeError):
        fluid.ParamAttr(name=3)
    with pytest.raises(ValueError):
        fluid.ParamAttr(name="")


def test_several_inputs():
    x = fluid.data("x", [None, 4])
    fluid.layers.fc([x, x], 2, param_attr=["a", "b"], bias_attr=False)
    assert parameters() == ["a", "b"]
    with pytest.raises(ValueError):
        fluid.layers.fc([x, x], 2, param_attr=["a", "b", "c"])


def test_attributes_reach_the_parameter():
    attr = fluid.ParamAttr(name="w", learning_rate=0.5, trainable=False, regularizer=fluid.regularizer.L2Decay(0.1))
    fluid.layers.fc(fluid.data("x", [None, 4]), 2, param_attr=attr)
    w = fluid.default_main_program().global_block().var("w")
    assert w.optimize_attr == {"learning_rate": 0.5} and not w.trainable and w.regularizer is attr.regularizer


def test_helper():
    x = fluid.data("x", [None, 4])
    helper = LayerHelper("thing", input=x, act="relu")
    assert helper.name == "thing_0" and helper.input() is x and helper.input_dtype() == x.dtype
    out = helper.append_activation(x)
    assert out.name == "thing_0.tmp_0" and out.shape == (-1, 4)
    with pytest.raises(ValueError):
        LayerHelper("thing", act="nothing_like_it").append_activation(x)
    with pytest.raises(TypeError):
        LayerHelper("thing", act=3).append_activation(x)
    made, new = helper.create_or_get_global_variable("g", shape=[1], dtype="float32")
    again, old = helper.create_or_get_global_variable("g")
    assert made is again and new and not old
    with pytest.raises(ValueError):
        helper.get_parameter("g")


@pytest.mark.parametrize("dim", [None, 0, 1])
def test_weight_norm_starts_as_its_initializer_and_trains(dim):
    value = np.arange(1, 7, dtype="float32").reshape(3, 2)
    attr = fluid.WeightNormParamAttr(dim=dim, name="w", initializer=fluid.initializer.NumpyArrayInitializer(value))
    y = fluid.layers.fc(fluid.data("x", [None, 3]), 2, param_attr=attr, bias_attr=False)
    loss = fluid.layers.mean(y)
    fluid.optimizer.SGD(0.1).minimize(loss)
    assert parameters() == ["w_g", "w_v"]
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    x = np.arange(6, dtype="float32").reshape(2, 3)
    losses = [exe.run(feed={"x": x}, fetch_list=[loss, y]) for _ in range(3)]
    np.testing.assert_allclose(losses[0][1], x.dot(value), rtol=1e-5)
    # After two steps; recorded from Fluid 1.8.5.
    np.testing.assert_allclose(losses[2][0], {None: 28.178383, 0: 28.177849, 1: 28.177343}[dim], rtol=1e-5)
