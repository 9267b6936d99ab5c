"""Optimizers: names and first values of what they keep, order of the last part of a step, refused arguments."""
import numpy
import pytest

import anabranch.fluid as fluid


@pytest.fixture(autouse=True)
def fresh_programs():
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
        yield


def loss_of_net():
    x = fluid.data("x", [None, 4], "float32")
    return fluid.layers.mean(fluid.layers.fc(x, 1))


def first_values():
    """{variable: value} of the constants that the startup program fills."""
    ops = fluid.default_startup_program().global_block().ops
    return {op.output("Out")[0]: round(op.attr("value"), 6) for op in ops if op.type == "fill_constant"}


@pytest.mark.parametrize("optimizer, state", [
    (lambda o: o.SGD(0.5), {}),
    (lambda o: o.Momentum(0.5, 0.9), {"velocity_0": 0.0}),
    (lambda o: o.LarsMomentum(0.5, 0.9), {"velocity_0": 0.0}),
    (lambda o: o.Adagrad(0.5, initial_accumulator_value=0.25), {"moment_0": 0.25}),
    (lambda o: o.DecayedAdagrad(0.5), {"moment_0": 0.0}),
    (lambda o: o.Adadelta(0.5), {"_avg_squared_grad_0": 0.0, "_avg_squared_update_0": 0.0}),
    (lambda o: o.RMSProp(0.5), {"momentum_0": 0.0, "mean_square_0": 0.0, "mean_grad_0": 0.0}),
    (lambda o: o.Ftrl(0.5), {"squared_0": 0.0, "linear_0": 0.0}),
    (lambda o: o.Adam(0.5, beta1=0.75, beta2=0.875),
     {"moment1_0": 0.0, "moment2_0": 0.0, "beta1_pow_acc_0": 0.75, "beta2_pow_acc_0": 0.875}),
    (lambda o: o.Adamax(0.5, beta1=0.75), {"moment_0": 0.0, "inf_norm_0": 0.0, "beta1_pow_acc_0": 0.75}),
    (lambda o: o.Lamb(0.5, beta1=0.75, beta2=0.875),
     {"moment1_0": 0.0, "moment2_0": 0.0, "beta1_pow_acc_0": 0.75, "beta2_pow_acc_0": 0.875}),
])
def test_state(optimizer, state):
    optimizer = optimizer(fluid.optimizer)
    optimizer.minimize(loss_of_net())
    expected = {"fc_0.b_0": 0.0, "learning_rate_0": 0.5}
    expected.update({"%s_%s" % (p, s): v for p in ("fc_0.w_0", "fc_0.b_0") for s, v in state.items()})
    assert first_values() == expected
    names = set(expected) - {"fc_0.b_0", "learning_rate_0"}
    assert set(optimizer.get_opti_var_name_list()) == set(optimizer.state_dict()) == names
    block = fluid.default_main_program().global_block()
    assert all(block.var(name).persistable for name in names | {"learning_rate_0"})


def test_named_optimizer_names_its_state():
    fluid.optimizer.Momentum(0.1, 0.9, name="slow").minimize(loss_of_net())
    assert "fc_0.w_0_slow_velocity_0" in first_values()


def test_clip_comes_before_regularization_and_update():
    optimizer = fluid.optimizer.SGD(0.1, regularization=fluid.regularizer.L2Decay(0.1),
                                    grad_clip=fluid.clip.GradientClipByValue(1.0))
    ops, pairs = optimizer.minimize(loss_of_net())
    types = [op.type for op in fluid.default_main_program().global_block().ops]
    assert types[types.index("clip"):] == ["clip", "clip", "scale", "sum", "scale", "sum", "sgd", "sgd"]
    assert [op.type for op in ops] == ["sgd", "sgd"]
    assert [g.name for _, g in pairs] == ["fc_0.w_0@GRAD", "fc_0.b_0@GRAD"]


def test_parameters_stay_trainable():
    loss = loss_of_net()
    fluid.optimizer.Adam(0.1).minimize(loss)
    block = fluid.default_main_program().global_block()
    assert not any(block.var(name).stop_gradient for name in ("fc_0.w_0", "fc_0.b_0"))
    assert len(fluid.optimizer.SGD(0.1).minimize(loss)[0]) == 2


def test_rate_of_a_parameter_is_scaled():
    x = fluid.data("x", [None, 4], "float32")
    h = fluid.layers.fc(x, 1, param_attr=fluid.ParamAttr(learning_rate=0.5))
    ops, _ = fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(h))
    assert [op.type for op in ops] == ["sgd", "scale", "sgd"]
    assert ops[2].input("LearningRate") == ops[1].output("Out") and ops[1].attr("scale") == 0.5


def test_one_rate_a_program():
    optimizer = fluid.optimizer.SGD(0.1)
    optimizer.minimize(loss_of_net())
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        optimizer.minimize(loss_of_net())
        assert "learning_rate_1" in first_values()


@pytest.mark.parametrize("make, error", [
    (lambda o: o.SGD(1), TypeError), (lambda o: o.SGD("0.1"), TypeError), (lambda o: o.SGD(None), AssertionError),
    (lambda o: o.SGD(), TypeError), (lambda o: o.Momentum(0.1, None), AssertionError),
    (lambda o: o.Adam(beta1=None), AssertionError), (lambda o: o.SGD(0.1, grad_clip=1.0), TypeError),
    (lambda o: o.SGD(0.1).minimize(numpy.ones(1)), AssertionError),
    (lambda o: o.SGD(0.1).minimize(fluid.data("y", [None, 2], "float32")), AssertionError),
])
def test_bad_arguments(make, error):
    with pytest.raises(error) as caught:
        make(fluid.optimizer)
    assert len(str(caught.value)) > 20


def test_an_error_clip_clips_the_sum_of_a_gradient_and_not_its_parts():
    x = fluid.data("x", [None, 4])
    hidden = fluid.layers.fc(x, 3, act="relu")
    loss = fluid.layers.mean(fluid.layers.fc([hidden, fluid.layers.fc(hidden, 2)], 1))
    hidden._set_error_clip(fluid.clip.ErrorClipByValue(max=0.02, min=-0.01))
    fluid.optimizer.SGD(0.1).minimize(loss)
    clips = [op for op in fluid.default_main_program().global_block().ops if op.type == "clip"]
    assert [op.input("X") for op in clips] == [[hidden.name + "@GRAD"]]


ACCUMULATORS = {
    "SGD": {}, "Momentum": {"_velocity_acc_str": "velocity"}, "LarsMomentum": {"_velocity_acc_str": "velocity"},
    "Adagrad": {"_moment_acc_str": "moment"}, "DecayedAdagrad": {"_moment_acc_str": "moment"},
    "Adadelta": {"_avg_squared_grad_acc_str": "_avg_squared_grad",
                 "_avg_squared_update_acc_str": "_avg_squared_update"},
    "RMSProp": {"_momentum_acc_str": "momentum", "_mean_square_acc_str": "mean_square",
                "_mean_grad_acc_str": "mean_grad"},
    "Ftrl": {"_squared_acc_str": "squared", "_linear_acc_str": "linear"},
    "Adam": {"_moment1_acc_str": "moment1", "_moment2_acc_str": "moment2", "_beta1_pow_acc_str": "beta1_pow_acc",
             "_beta2_pow_acc_str": "beta2_pow_acc"},
    "Adamax": {"_moment_acc_str": "moment", "_inf_norm_acc_str": "inf_norm", "_beta1_pow_acc_str": "beta1_pow_acc"},
    "Lamb": {"_moment1_acc_str": "moment1", "_moment2_acc_str": "moment2", "_beta1_pow_acc_str": "beta1_pow_acc",
             "_beta2_pow_acc_str": "beta2_pow_acc"},
    "Dpsgd": {},
}


@pytest.mark.parametrize("name", sorted(ACCUMULATORS))
def test_types_and_names_of_accumulators(name):
    arguments = {"momentum": 0.9} if "Momentum" in name else {}
    optimizer = getattr(fluid.optimizer, name)(0.5, **arguments)
    operators, pairs = optimizer.minimize(loss_of_net())
    assert optimizer.type == operators[0].type
    assert {k: getattr(optimizer, k) for k in dir(optimizer) if k.endswith("_acc_str")} == ACCUMULATORS[name]
    assert {k: sorted(v) for k, v in optimizer._accumulators.items()} == {
        k: ["fc_0.b_0", "fc_0.w_0"] for k in ACCUMULATORS[name].values()}


class Averaged(fluid.optimizer.Optimizer):
    """An optimizer as scripts write them: the steps of Momentum, and a decay of the parameters at the end."""

    def __init__(self, rate, **arguments):
        super().__init__(learning_rate=rate, **arguments)
        self.type = "averaged"

    def _create_accumulators(self, block, parameters):
        for parameter in parameters:
            self._add_accumulator("average", parameter)

    def _append_optimize_op(self, block, param_and_grad):
        average = self._get_accumulator("average", param_and_grad[0])
        return block.append_op(
            type="momentum", inputs={"Param": param_and_grad[0], "Grad": param_and_grad[1], "Velocity": average,
                                     "LearningRate": self._create_param_lr(param_and_grad)},
            outputs={"ParamOut": param_and_grad[0], "VelocityOut": average}, attrs={"mu": 0.9}, stop_gradient=True)

    def _finish_update(self, block, params_grads):
        for parameter, _ in params_grads:
            block.append_op(type="scale", inputs={"X": parameter}, outputs={"Out": parameter}, attrs={"scale": 0.5})


def test_an_optimizer_of_a_script():
    x = fluid.data("x", [None, 2])
    factor = fluid.ParamAttr(initializer=fluid.initializer.Constant(1.0), learning_rate=0.5)
    loss = fluid.layers.mean(fluid.layers.fc(x, 1, param_attr=factor, bias_attr=False))
    optimizer = Averaged(0.5)
    optimizer.minimize(loss)
    assert optimizer.type == "averaged"
    exe = fluid.Executor()
    with fluid.scope_guard(fluid.Scope()):
        exe.run(fluid.default_startup_program())
        exe.run(feed={"x": numpy.ones([1, 2], "float32")}, fetch_list=[loss])
        found = numpy.array(fluid.global_scope().find_var("fc_0.w_0").get_tensor())
    assert found.tolist() == [[0.375], [0.375]]  # (1 - 0.5 * 0.5) / 2
