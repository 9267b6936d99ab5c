"""A branch trains the net around it: the gradients of ops outside of the branch are computed in the branch."""
import numpy as np
import pytest

import anabranch.fluid as fluid

layers, optimizer = fluid.layers, fluid.optimizer
STEPS = 4


def waves(shape, start):
    return (np.sin(np.arange(np.prod(shape)) * 1.37 + start) * 2).reshape(shape).astype("float32")


def losses(build):
    """What ``build(x, y, step)`` returns, of each step."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.scope_guard(fluid.Scope()), fluid.unique_name.guard():
        step = fluid.data("step", [1], "int32")
        fetched = build(fluid.data("x", [None, 4]), fluid.data("y", [None, 1]), step)
        exe = fluid.Executor()
        exe.run(startup)
        feeds = [{"x": waves((3, 4), k), "y": waves((3, 1), k + 9), "step": np.array([k], "int32")}
                 for k in range(STEPS)]
        return [float(exe.run(main, feed=feed, fetch_list=[fetched])[0].item()) for feed in feeds]


def filled(name, value):
    return fluid.ParamAttr(name, fluid.initializer.Constant(value))


def net(x, name="n"):
    hidden = layers.fc(x, 3, act="tanh", param_attr=filled(name + ".w", 0.1), bias_attr=filled(name + ".b", 0.2))
    return layers.fc(hidden, 1, param_attr=filled(name + ".v", 0.3), bias_attr=False)


def before(step, end):
    return layers.less_than(step, layers.fill_constant([1], "int32", end))


def trained(output, y, rule):
    loss = layers.mean(layers.square_error_cost(output, y))
    rule.minimize(loss)
    return loss


def test_each_of_two_branches_trains_the_net_before_them():
    def build(x, y, step):
        output, first, second = net(x), optimizer.Adam(0.1), optimizer.SGD(0.1)
        return layers.cond(before(step, 2), lambda: trained(output, y, first), lambda: trained(output, y, second))

    expected = [2.259803, 1.943008, 2.773947, 1.957403]  # of PaddlePaddle 1.8.5
    np.testing.assert_allclose(losses(build), expected, rtol=1e-5)


def test_a_generator_and_its_judge_are_trained_in_turn():
    def build(x, y, step):
        made, first, second = net(x), optimizer.Adam(0.05), optimizer.Adam(0.05)

        def judged(value):
            return layers.fc(value, 1, param_attr=filled("d.w", 0.4), bias_attr=filled("d.b", 0.1))

        fake, real = judged(made), judged(y)

        def judge():
            loss = layers.mean(layers.square(real - 1.0)) + layers.mean(layers.square(fake))
            second.minimize(loss, parameter_list=["d.w", "d.b"])
            return loss

        def generator():
            loss = layers.mean(layers.square(fake - 1.0))
            first.minimize(loss, parameter_list=["n.w", "n.b", "n.v"])
            return loss

        return layers.cond(before(step, 2), judge, generator)

    expected = [1.687276, 1.488958, 0.562713, 0.52152]  # of PaddlePaddle 1.8.5
    np.testing.assert_allclose(losses(build), expected, rtol=1e-5)


def around(x):
    output = net(x)
    return lambda: output


def also_inside(x):
    """The branch uses the parameters of the net again, and one more parameter."""
    output = net(x)
    return lambda: layers.fc(output, 1, param_attr=filled("s", 0.5), bias_attr=False) + net(x)


RULES = {
    "momentum": lambda: optimizer.Momentum(0.1, 0.9),
    "clipped": lambda: optimizer.SGD(0.1, grad_clip=fluid.clip.GradientClipByGlobalNorm(0.1),
                                     regularization=fluid.regularizer.L2Decay(0.1)),
}


@pytest.mark.parametrize("nested", [False, True], ids=["branch", "branch in a branch"])
@pytest.mark.parametrize("name", sorted(RULES))
@pytest.mark.parametrize("output", [around, also_inside])
def test_a_branch_that_always_runs_trains_like_the_program_without_it(output, name, nested):
    def branched(x, y, step):
        make, rule = output(x), RULES[name]()

        def branch():
            return trained(make(), y, rule)

        def outer():
            return layers.cond(before(step, STEPS), branch, lambda: layers.fill_constant([1], "float32", 0.0))

        return layers.cond(before(step, STEPS), outer if nested else branch,
                           lambda: layers.fill_constant([1], "float32", 0.0))

    def plain(x, y, step):
        return trained(output(x)(), y, RULES[name]())

    expected = losses(plain)
    assert len(set(expected)) == STEPS
    np.testing.assert_allclose(losses(branched), expected, rtol=1e-5)


def test_a_branch_reads_what_the_net_computed_before_it_overwrote_its_input():
    def build(x, y, step):
        kept = layers.scale(x, 1.0)
        output, rule = net(kept), optimizer.SGD(0.1)
        layers.assign(layers.zeros_like(x), kept)
        return layers.cond(before(step, STEPS), lambda: trained(output, y, rule), lambda: layers.mean(output))

    np.testing.assert_allclose(losses(build), losses(lambda x, y, step: trained(net(x), y, optimizer.SGD(0.1))),
                               rtol=1e-5)
