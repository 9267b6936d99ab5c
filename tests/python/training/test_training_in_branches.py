"""Backward passes and updates inside branches and loops. The losses of four steps are those of PaddlePaddle 1.8.5."""
import numpy as np
import pytest

import anabranch.fluid as fluid

layers, optimizer = fluid.layers, fluid.optimizer


def waves(shape, start):
    return (np.sin(np.arange(np.prod(shape)) * 1.37 + start) * 2).reshape(shape).astype("float32")


def loss_of(x, y, name="w"):
    weight = fluid.ParamAttr(name, fluid.initializer.Constant(0.1))
    return layers.mean(layers.square_error_cost(layers.fc(x, 1, param_attr=weight, bias_attr=False), y))


def losses(build):
    """What ``build(x, y, step)`` returns, of four steps."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.scope_guard(fluid.Scope()), fluid.unique_name.guard():
        step = fluid.data("step", [1], "int32")
        fetched = build(fluid.data("x", [None, 4]), fluid.data("y", [None, 1]), step)
        exe = fluid.Executor()
        exe.run(startup)
        feeds = [{"x": waves((3, 4), k), "y": waves((3, 1), k + 9), "step": np.array([k], "int32")} for k in range(4)]
        return [float(v.item()) for feed in feeds for v in exe.run(main, feed=feed, fetch_list=fetched)]


def early(step):
    return layers.less_than(step, layers.fill_constant([1], "int32", 2))


def trained(x, y, rule, name="w"):
    loss = loss_of(x, y, name)
    rule.minimize(loss)
    return loss


RULES = {
    "sgd": (lambda: optimizer.SGD(0.1), [1.95266, 4.161997, 5.297423, 4.190518]),
    "momentum": (lambda: optimizer.Momentum(0.1, 0.9), [1.95266, 4.161997, 6.597576, 2.530927]),
    "adam": (lambda: optimizer.Adam(0.1), [1.95266, 2.82138, 2.965297, 1.183594]),
    "schedule": (lambda: optimizer.SGD(layers.exponential_decay(0.1, 2, 0.5)), [1.95266, 4.161997, 4.445232, 2.594583]),
    "decay": (lambda: optimizer.SGD(0.1, regularization=fluid.regularizer.L2Decay(0.1)),
              [1.95266, 4.161278, 5.300798, 4.221394]),
}


@pytest.mark.parametrize("name", sorted(RULES))
def test_a_branch_trains_its_own_loss(name):
    make, expected = RULES[name]

    def build(x, y, step):
        rule = make()
        return [layers.cond(early(step), lambda: trained(x, y, rule), lambda: loss_of(x, y))]

    np.testing.assert_allclose(losses(build), expected, rtol=1e-5)


def test_each_of_two_branches_has_its_own_rule():
    def build(x, y, step):
        first, second = optimizer.Adam(0.1), optimizer.SGD(0.01)
        return [layers.cond(early(step), lambda: trained(x, y, first), lambda: trained(x, y, second))]

    np.testing.assert_allclose(losses(build), [1.95266, 2.82138, 2.965297, 1.327431], rtol=1e-5)


def test_switch_case_trains_one_of_two_losses_of_the_program():
    def build(x, y, step):
        first, second = loss_of(x, y, "a"), loss_of(x, y, "b")
        adam, sgd = optimizer.Adam(0.1), optimizer.SGD(0.1)
        parity = layers.elementwise_mod(step, layers.fill_constant([1], "int32", 2))
        layers.switch_case(parity, {0: lambda: adam.minimize(first) and None, 1: lambda: sgd.minimize(second) and None})
        return [first, second]

    np.testing.assert_allclose(losses(build), [1.95266, 1.95266, 2.82138, 1.696147, 2.604403, 4.703646, 1.012426,
                                               5.135011], rtol=1e-5)


def test_backward_and_apply_gradients_in_a_branch():
    def build(x, y, step):
        def train():
            loss, rule = loss_of(x, y), optimizer.SGD(0.1)
            rule.apply_gradients(rule.backward(loss))
            return loss

        return [layers.cond(early(step), train, lambda: layers.fill_constant([1], "float32", 0.0))]

    np.testing.assert_allclose(losses(build), [1.95266, 4.161997, 0, 0], rtol=1e-5)


def test_a_conditional_block_trains():
    def build(x, y, step):
        rule, loss = optimizer.SGD(0.1), loss_of(x, y)
        block = layers.control_flow.ConditionalBlock([early(step)], is_scalar_condition=True)
        with block.block():
            rule.minimize(loss)
        return [loss]

    np.testing.assert_allclose(losses(build), RULES["sgd"][1], rtol=1e-5)


def test_a_loop_trains_in_each_iteration():
    def looped(x, y, step):
        rule = optimizer.SGD(0.1)
        count, seen = layers.fill_constant([1], "int64", 0), layers.create_global_var([1], 0.0, "float32", True)
        more = layers.less_than(count, layers.fill_constant([1], "int64", 3))
        loop = layers.While(more)
        with loop.block():
            layers.assign(trained(x, y, rule), seen)
            layers.increment(count, in_place=True)
            layers.less_than(count, layers.fill_constant([1], "int64", 3), cond=more)
        return [seen]

    weight, expected = np.full((4, 1), 0.1), []
    for k in range(4):
        x, y = waves((3, 4), k), waves((3, 1), k + 9)
        for _ in range(3):
            apart = x @ weight - y
            last = (apart ** 2).mean()
            weight = weight - 0.1 * 2 * x.T @ apart / 3
        expected.append(last)
    np.testing.assert_allclose(losses(looped), expected, rtol=1e-4)


def test_gradients_leave_their_branch():
    def build(x, y, step):
        def slope():
            (_, gradient), = fluid.backward.append_backward(loss_of(x, y))
            return layers.reduce_sum(gradient)

        def other():
            weight = layers.create_parameter([4, 1], "float32", "v")
            return layers.reduce_sum(fluid.gradients([layers.reduce_sum(x)], [x])[0]) + 0 * layers.reduce_sum(weight)

        x.stop_gradient = False
        return [layers.cond(early(step), slope, other)]

    x, y = waves((3, 4), 0), waves((3, 1), 9)
    got = losses(build)
    assert got[0] == pytest.approx(float((2 * x.T @ (x.sum(1, keepdims=True) * 0.1 - y) / 3).sum()), rel=1e-4)
    assert got[2:] == [12, 12]


def test_a_branch_with_a_clip_of_the_global_norm():
    def build(x, y, step):
        rule = optimizer.SGD(0.1, grad_clip=fluid.clip.GradientClipByGlobalNorm(0.1))
        return [layers.cond(early(step), lambda: trained(x, y, rule), lambda: loss_of(x, y))]

    weight = np.full((4, 1), 0.1)
    for k in range(2):
        x, y = waves((3, 4), k), waves((3, 1), k + 9)
        slope = 2 * x.T @ (x @ weight - y) / 3
        weight = weight - 0.1 * slope * 0.1 / max(0.1, np.sqrt((slope ** 2).sum()))
    x, y = waves((3, 4), 2), waves((3, 1), 11)
    assert losses(build)[2] == pytest.approx(float(((x @ weight - y) ** 2).mean()), rel=1e-4)


@pytest.mark.parametrize("scheduled", [False, True])
def test_a_rate_that_is_a_variable_is_known_before_minimize(scheduled):
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        rate = layers.noam_decay(16, 10) if scheduled else 0.1
        rule = optimizer.Adam(rate)
        assert rule._global_learning_rate() is (rate if scheduled else None)
        assert len(rule._learning_rate_map) == scheduled
        rule.minimize(loss_of(fluid.data("x", [None, 4]), fluid.data("y", [None, 1])))
        assert tuple(rule._global_learning_rate().shape) == (1,)


def test_the_condition_must_be_a_list_of_one_variable():
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        with pytest.raises(TypeError, match="ConditionalBlock: inputs must be a list of one Variable"):
            layers.control_flow.ConditionalBlock([])
