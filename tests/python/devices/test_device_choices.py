"""Branches of a few cheap ops on a simulated device: ops that always run, and a choice of what they made."""
import pytest
from device_runs import pytestmark, run  # noqa: F401
from device_texts import NETS

SWITCH = """
import re

L = fluid.layers

def said(exe):
    return list(exe._bound.values())[-1].bound.engine.explain()

def by_value(make, place, values, **more):
    "What `make(x)` gives and says for each of the values that a program is fed."
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        fetched = make(fluid.data("x", [1]))
    exe, scope = fluid.Executor(place), fluid.Scope()
    with fluid.scope_guard(scope):
        exe.run(startup)
        got = [exe.run(main, feed={"x": np.array([v], "float32"), **more}, fetch_list=fetched) for v in values]
    return got, said(exe)

def equal(got, expected):
    for one, other in zip(got, expected):
        for a, b in zip(one, other):
            assert a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes(), (a, b)
"""


def test_dynamic_loss_scaling_stays_on_the_device():
    """The first steps overflow at first, then the scale grows again; blocks that the CPU runs give the same bits."""
    run(NETS + """
def text_of(**flags):
    fluid.set_flags(flags)
    made = []
    class Watched(fluid.Executor):
        def __init__(self, place):
            super().__init__(place)
            made.append(self)
    fluid.Executor, kept = Watched, fluid.Executor
    got = learn(images, batch_of_images, fluid.CUDAPlace(0), 8, init_loss_scaling=2.0 ** 26, decr_every_n_nan_or_inf=1,
                decr_ratio=0.25, incr_every_n_steps=3)
    fluid.Executor = kept
    return got, list(made[0]._bound.values())[-1].bound.engine.explain()
(losses, scales, skipped, _), text = text_of()
assert "straighten_blocks applied, 4 changes" in text, text
assert "; on the CPU: none" in text.replace("run on a device", ""), text
down = int(re.search(r"bytes to devices .* and (\\d+) from them", text)[1])
assert down == 8, text  # the loss and the scale that are fetched
assert "nodes on devices: " in text, text
assert skipped[0] and not skipped[-1] and (scales[1:] > scales[:-1]).any(), (skipped, scales)
(by_cpu, scales_by_cpu, skipped_by_cpu, _), text = text_of(FLAGS_disable_passes="straighten_blocks")
assert "conditional_block" in re.search("on the CPU: (.*)", text)[1], text
assert skipped == skipped_by_cpu and (scales == scales_by_cpu).all()
np.testing.assert_array_equal(losses, by_cpu)
""")


def test_a_schedule_with_branches_stays_on_devices():
    run("""
    L = fluid.layers
    def rates(place, devices=1):
        main, startup = fluid.Program(), fluid.Program()
        main.random_seed = startup.random_seed = 3
        with fluid.program_guard(main, startup), fluid.unique_name.guard():
            x = fluid.data("x", [None, 4])
            loss = L.mean(L.fc(x, 1))
            rate = L.linear_lr_warmup(L.piecewise_decay([6, 8], [0.1, 0.02, 0.004]), 4, 0.0, 0.1)
            fluid.optimizer.Momentum(rate, 0.9).minimize(loss)
        exe, scope = fluid.Executor(place), fluid.Scope()
        with fluid.scope_guard(scope):
            exe.run(startup)
            program = main
            if devices > 1:
                program = fluid.CompiledProgram(main).with_data_parallel(loss_name=loss.name)
            feed = {"x": np.ones([4, 4], "float32")}
            got = [exe.run(program, feed=feed, fetch_list=[rate])[0].ravel()[0] for _ in range(12)]
            weights = [np.array(scope.find_var(p.name).get_tensor()) for p in main.all_parameters()]
        text = program.explain() if devices > 1 else list(exe._bound.values())[-1].bound.engine.explain()
        return got, weights, text
    expected, weights, text = rates(fluid.CPUPlace())
    assert "straighten_blocks skipped: the program runs on the CPU" in text, text
    assert len(set(expected)) == 7, expected
    for devices in (1, 2):
        got, there, text = rates(fluid.CUDAPlace(0), devices)
        assert "straighten_blocks applied" in text and "conditional_block" not in text, text
        assert got == expected, (got, expected)
        for a, b in zip(there, weights):
            np.testing.assert_allclose(a, b, rtol=1e-6)
    """, simdevice_devices="2")


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "bool"])
def test_what_is_not_chosen_leaves_no_trace(dtype):
    """The branch that does not run would make infinities and NaN; branches inside of branches."""
    run(SWITCH + f"""
def make(x):
    state = L.create_global_var([3], 1, {dtype!r}, persistable=True, name="state")
    zero = L.fill_constant([1], "float32", 0.0)
    ratio = L.create_global_var([1], 5.0, "float32", persistable=True, name="ratio")
    positive = L.greater_than(x, zero)
    with L.Switch() as switch:
        with switch.case(positive):
            L.assign(L.elementwise_div(x, x - 1.0), ratio)
            with L.Switch() as inner:
                with inner.case(L.greater_than(x, zero + 2.0)):
                    L.assign(L.fill_constant([3], {dtype!r}, 0), state)
                with inner.default():
                    L.assign(L.fill_constant([3], {dtype!r}, 1), state)
        with switch.default():
            L.assign(L.sqrt(x), ratio)
    return [state, ratio, positive]
values = [-1.0, 3.0, -4.0, 1.0, 2.0, 0.0, 5.0]
expected, _ = by_value(make, fluid.CPUPlace(), values)
got, text = by_value(make, fluid.CUDAPlace(0), values)
assert "straighten_blocks applied, 2 changes" in text and "conditional_block" not in text, text
equal(got, expected)
assert np.isnan(got[0][1]).all() and np.isinf(got[3][1]).all() and got[5][1] == 0
assert [int(g[0][0]) for g in got] == [1, 0, 0, 1, 1, 1, 0]
""")


def test_what_would_not_have_run_is_not_found_infinite():
    run(SWITCH + """
def make(x):
    ratio = L.create_global_var([1], 5.0, "float32", persistable=True, name="ratio")
    with L.Switch() as switch:
        with switch.case(L.greater_than(x, L.fill_constant([1], "float32", 0.0))):
            L.assign(L.elementwise_div(x, x * x - 1.0), ratio)
    return [ratio]
assert by_value(make, fluid.CUDAPlace(0), [3.0, -1.0])[0][1] == [0.375]
fluid.set_flags({"FLAGS_check_nan_inf": True})
zero_over_zero = lambda x: [L.scale(v, 1.0) for v in make(x)]
got, text = by_value(zero_over_zero, fluid.CUDAPlace(0), [3.0, -1.0])
assert "straighten_blocks applied" in text and got[1][0] == 0.375
try:
    by_value(zero_over_zero, fluid.CUDAPlace(0), [1.0])
    raise SystemExit("nothing was found")
except fluid.core.EnforceNotMet as e:
    assert "ratio holds inf" in str(e) and "Switch" not in str(e).splitlines()[0], e
""")


@pytest.mark.parametrize("what, why", [
    ("L.assign(L.uniform_random([1]), out)", "it has the op uniform_random"),
    ("L.assign(L.scale(many, 2.0), out)", "many is not a tensor of a fixed shape"),
])
def test_other_blocks_stay_blocks_and_say_why(what, why):
    run(SWITCH + f"""
def make(x):
    out = L.create_global_var([1], 5.0, "float32", persistable=True, name="out")
    many = fluid.data("many", [None])
    with L.Switch() as switch:
        with switch.case(L.greater_than(x, L.fill_constant([1], "float32", 0.0))):
            {what}
    return [out]
(first, second), text = by_value(make, fluid.CUDAPlace(0), [-1.0, 1.0], many=np.zeros(1, "float32"))
assert "straighten_blocks applied, 0 changes" in text and "a block stays one: {why}" in text, text
assert "conditional_block" in re.search("on the CPU: (.*)", text)[1], text
assert first[0] == 5.0 and second[0] != 5.0, (first, second)
""")


def test_values_of_other_shapes_than_declared():
    """They are set from outside, so the program runs as it is written, and gives what it gives on the CPU."""
    run(SWITCH + """
def tripled(place):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [1])
        state = L.create_global_var([3], 1.0, "float32", persistable=True, name="state")
        with L.Switch() as switch:
            with switch.case(L.greater_than(x, L.fill_constant([1], "float32", 0.0))):
                L.assign(L.scale(state, 3.0), state)
    exe, scope, got = fluid.Executor(place), fluid.Scope(), []
    with fluid.scope_guard(scope):
        exe.run(startup)
        for step, x in enumerate([1.0, -1.0, 1.0, -1.0]):
            if step == 2:
                scope.var("state").get_tensor().set(np.arange(5, dtype="float32"), fluid.CPUPlace())
            got += [exe.run(main, feed={"x": np.array([x], "float32")}, fetch_list=[state])]
    return got
got, expected = tripled(fluid.CUDAPlace(0)), tripled(fluid.CPUPlace())
equal(got, expected)
assert got[3][0].tolist() == [0, 3, 6, 9, 12], got
""")


def test_a_block_that_makes_another_dtype_than_declared_stays_a_block():
    """The average's rate is float32, and as the original does it one of its cases gives it whole numbers."""
    run("""
def averaged(place):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [None, 3])
        loss = fluid.layers.mean(fluid.layers.fc(x, 2, param_attr=fluid.initializer.Constant(0.5)))
        fluid.optimizer.SGD(0.1).minimize(loss)
        steps = fluid.layers.autoincreased_step_counter()
        average = fluid.optimizer.ExponentialMovingAverage(0.9, thres_steps=steps)
        average.update()
    exe, scope = fluid.Executor(place), fluid.Scope()
    with fluid.scope_guard(scope):
        exe.run(startup)
        for _ in range(4):
            exe.run(main, feed={"x": np.ones((2, 3), "float32")}, fetch_list=[loss])
        text = list(exe._bound.values())[-1].bound.engine.explain()
        with average.apply(exe):
            return [np.array(scope.find_var(p.name).get_tensor()) for p in main.all_parameters()], text
(got, text), (expected, _) = averaged(fluid.CUDAPlace(0)), averaged(fluid.CPUPlace())
assert "a block stays one: assign makes another dtype than declared" in text, text
for a, b in zip(got, expected):
    np.testing.assert_allclose(a, b, rtol=1e-6)
""", fluid_exact="1.8.5")
