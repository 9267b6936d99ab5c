"""Every schedule of learning rates: its value in each step, as its formula says, and that the update uses it."""
import math

import numpy as np
import pytest

import anabranch.fluid as fluid

layers = fluid.layers
CPU = fluid.CPUPlace()
STEPS = 12


def polynomial(s, rate=0.1, steps=5, end=0.01, power=2.0, cycle=False):
    if cycle:
        steps *= max(1, math.ceil(s / steps))
    return (rate - end) * (1 - min(s, steps) / steps) ** power + end


#: name: (schedule, value in step s = 0, 1, ...)
SCHEDULES = {
    "noam": (lambda: layers.noam_decay(64, 4, 2.0),
             lambda s: 2.0 * 64 ** -0.5 * min((s + 1) ** -0.5, (s + 1) * 4 ** -1.5)),
    "exponential": (lambda: layers.exponential_decay(0.1, 3, 0.5), lambda s: 0.1 * 0.5 ** (s / 3)),
    "exponential staircase": (lambda: layers.exponential_decay(0.1, 3, 0.5, staircase=True),
                              lambda s: 0.1 * 0.5 ** (s // 3)),
    "natural_exp": (lambda: layers.natural_exp_decay(0.1, 3, 0.5), lambda s: 0.1 * math.exp(-0.5 * s / 3)),
    "natural_exp staircase": (lambda: layers.natural_exp_decay(0.1, 3, 0.5, staircase=True),
                              lambda s: 0.1 * math.exp(-0.5 * (s // 3))),
    "inverse_time": (lambda: layers.inverse_time_decay(0.1, 3, 0.5), lambda s: 0.1 / (1 + 0.5 * s / 3)),
    "inverse_time staircase": (lambda: layers.inverse_time_decay(0.1, 3, 0.5, staircase=True),
                               lambda s: 0.1 / (1 + 0.5 * (s // 3))),
    "polynomial": (lambda: layers.polynomial_decay(0.1, 5, 0.01, 2.0), polynomial),
    "polynomial cycle": (lambda: layers.polynomial_decay(0.1, 5, 0.01, 2.0, cycle=True),
                         lambda s: polynomial(s, cycle=True)),
    "piecewise": (lambda: layers.piecewise_decay([3, 7], [0.1, 0.05, 0.02]),
                  lambda s: 0.1 if s < 3 else 0.05 if s < 7 else 0.02),
    "cosine": (lambda: layers.cosine_decay(0.1, 2, 6), lambda s: 0.05 * (math.cos(s // 2 * math.pi / 6) + 1)),
    "warmup of a number": (lambda: layers.linear_lr_warmup(0.1, 4, 0.01, 0.09),
                           lambda s: 0.01 + 0.08 * s / 4 if s < 4 else 0.1),
    "warmup of a schedule": (lambda: layers.linear_lr_warmup(layers.piecewise_decay([6], [0.1, 0.02]), 4, 0.0, 0.1),
                             lambda s: 0.1 * s / 4 if s < 4 else 0.1 if s < 6 else 0.02),
}


def train(schedule, replicas):
    """The rate in each step, and the only weight after it; its gradient is 1 in every step."""
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [None, 1], "float32")
        loss = layers.mean(layers.fc(x, 1, param_attr="w", bias_attr=False))
        rate = schedule()
        fluid.optimizer.SGD(rate).minimize(loss)
    exe = fluid.Executor(CPU)
    exe.run(startup, scope=scope)
    weights = [np.array(scope.find_var("w").get_tensor()).item()]
    target, rates = main, []
    if replicas:
        target = fluid.CompiledProgram(main).with_data_parallel(loss.name, places=[CPU] * replicas)
    for _ in range(STEPS):
        got, = exe.run(target, feed={"x": np.ones((4, 1), "float32")}, fetch_list=[rate], scope=scope)
        assert got.size == max(1, replicas) and np.all(got == got.flat[0])
        rates.append(got.flat[0])
        weights.append(np.array(scope.find_var("w").get_tensor()).item())
    return np.array(rates), np.array(weights)


@pytest.mark.parametrize("replicas", [0, 2])
@pytest.mark.parametrize("name", SCHEDULES)
def test_values_in_every_step(name, replicas):
    schedule, formula = SCHEDULES[name]
    rates, weights = train(schedule, replicas)
    np.testing.assert_allclose(rates, [formula(s) for s in range(STEPS)], rtol=2e-6)
    np.testing.assert_allclose(weights[:-1] - weights[1:], rates, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("exact, found", [("", [0.3, 0.3, 0.2, 0.2]), ("1.8.5", [0.3, 0.2, 0.1, 0.1])])
def test_test_programs_advance_the_schedule_in_exact_mode_only(exact, found):
    """Two clones, before and after minimize; one of them runs after each step."""
    fluid.set_flags({"FLAGS_fluid_exact": exact})
    try:
        main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
        with fluid.program_guard(main, startup), fluid.unique_name.guard():
            loss = layers.mean(layers.fc(fluid.data("x", [None, 1], "float32"), 1))
            rate = layers.piecewise_decay([2, 4], [0.3, 0.2, 0.1])
            clones = [main.clone(for_test=True)]
            fluid.optimizer.SGD(rate).minimize(loss)
            clones.append(main.clone(for_test=True))
        exe, feed, rates = fluid.Executor(CPU), {"x": np.ones((2, 1), "float32")}, []
        exe.run(startup, scope=scope)
        for step in range(4):
            rates.append(exe.run(main, feed=feed, fetch_list=[rate], scope=scope)[0].item())
            exe.run(clones[step % 2], feed=feed, fetch_list=[loss.name], scope=scope)
        assert rates == pytest.approx(found)
        assert not [op for op in clones[1].global_block().ops if op.type == "sgd"]
    finally:
        fluid.set_flags({"FLAGS_fluid_exact": ""})


def test_all_schedules_are_here():
    tried = {name.split()[0] for name in SCHEDULES}
    names = set(layers.learning_rate_scheduler.__all__)
    assert names == {n + "_decay" for n in tried - {"warmup"}} | {"linear_lr_warmup"}
