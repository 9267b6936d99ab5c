"""Programs on devices, which the CPU plays (plugins/simdevice): the same numbers, with copies where they are needed."""
import os
import subprocess
import sys

import forks
import pytest
from device_runs import NET, pytestmark, run  # noqa: F401


@pytest.mark.parametrize("order", ["random", "earliest", "latest", "starved"])
def test_training_gives_the_bits_of_the_cpu_in_every_order_of_queues(order):
    run("""
    (losses, params), (expected, cpu) = train(fluid.CUDAPlace(0)), train(fluid.CPUPlace())
    assert max(abs(a - b) for a, b in zip(losses, expected)) < 1e-5, (losses, expected)
    assert losses[-1] < losses[0] / 2
    for name in cpu:
        assert np.abs(params[name] - cpu[name]).max() < 1e-6, name
    """, simdevice_order=order)


def test_a_step_that_passes_refuse_says_once_that_the_cpu_runs_it():
    said = run("""
    main, startup, _, loss = net()
    exe, scope = fluid.Executor(fluid.CUDAPlace(0)), fluid.Scope()
    with fluid.scope_guard(scope):
        exe.run(startup)
        on_device, = exe.run(main, feed=batch(0), fetch_list=[loss])
        bias = scope.find_var("fc_0.b_0").get_tensor()
        bias.set(np.zeros((16, 8), "float32"), fluid.CPUPlace())  # elementwise_add takes it; it is declared [8]
        for step in range(1, 4):
            exe.run(main, feed=batch(step), fetch_list=[loss])
        assert "passes are disabled for this step" in list(exe._bound.values())[-1].bound.engine.explain()
    """)
    told = [line for line in said.splitlines() if "runs on the CPU, not on CUDAPlace(0)" in line]
    assert len(told) == 1 and "the step that fetches mean_0.tmp_0" in told[0] and "ShapeMismatch: " in told[0], said


@pytest.mark.parametrize("lanes", [0, 1])
def test_ten_seeds_of_the_queues_give_equal_bits(lanes):
    text = "print(train(fluid.CUDAPlace(0))[0])"
    assert len({run(text, simdevice_seed=seed, simdevice_lanes=lanes) for seed in range(10)}) == 1


def test_explain_names_what_is_copied():
    said = run("""
    main, startup, _, loss = net()
    exe = fluid.Executor(fluid.CUDAPlace(0))
    exe.run(startup)
    compiled = fluid.CompiledProgram(main)
    exe.run(compiled, feed=batch(0), fetch_list=[loss])
    print(compiled.explain())
    """)
    assert "place_on_devices" in said and "run on a device" in said and "copies" in said


def test_parameters_stay_on_the_device_and_are_read_and_set_from_outside():
    run("""
    main, startup, hidden, loss = net()
    exe = fluid.Executor(fluid.CUDAPlace(0))
    exe.run(startup)
    before = exe.run(main, feed=batch(0), fetch_list=[loss])[0]
    w = fluid.global_scope().find_var("fc_0.w_0").get_tensor()
    assert w._place() == fluid.CUDAPlace(0)
    w.set(np.zeros((13, 8), "float32"), fluid.CPUPlace())
    bias = np.array(fluid.global_scope().find_var("fc_0.b_0").get_tensor())
    got, = exe.run(main, feed=batch(0), fetch_list=[hidden])
    assert bias.any() and (got == np.maximum(bias, 0)).all()
    assert w._place() == fluid.CUDAPlace(0)
    """)


def test_a_nan_is_named():
    said = run("""
    main, startup, _, loss = net()
    exe = fluid.Executor(fluid.CUDAPlace(0))
    exe.run(startup)
    feed = batch(0)
    feed["x"][3, 4] = np.nan
    try:
        exe.run(main, feed=feed, fetch_list=[loss])
    except fluid.core.EnforceNotMet as e:
        print(e)
    """, check_nan_inf=1)
    assert "FLAGS_check_nan_inf" in said and "mul" in said


def test_there_are_as_many_devices_as_the_plug_in_says():
    said = run("""
    print(fluid.CUDAPlace(2), fluid.CUDAPlace(1) == fluid.CUDAPlace(1))
    try:
        fluid.CUDAPlace(3)
    except ValueError as e:
        print(e)
    """, simdevice_devices=3)
    assert "CUDAPlace(2) True" in said and "id must be from 0 to 2, got 3" in said


PARALLEL = """
def train_parallel(places, reduce, steps=12, optimizer=None):
    main, startup, _, loss = net()
    exe, scope = fluid.Executor(places[0]), fluid.Scope()
    build = fluid.BuildStrategy()
    build.reduce_strategy = getattr(fluid.BuildStrategy.ReduceStrategy, reduce)
    with fluid.scope_guard(scope):
        exe.run(startup)
        compiled = fluid.CompiledProgram(main).with_data_parallel(loss.name, build, places=places)
        losses = [exe.run(compiled, feed=batch(k), fetch_list=[loss])[0].mean().item() for k in range(steps)]
        params = {p.name: np.array(scope.find_var(p.name).get_tensor()) for p in main.all_parameters()}
    return losses, params
"""


@pytest.mark.parametrize("count", [2, 4, 8])
@pytest.mark.parametrize("reduce", ["AllReduce", "Reduce"])
def test_replicas_on_devices_train_as_those_of_the_cpu(count, reduce):
    run(PARALLEL + """
count, reduce = %d, %r
losses, params = train_parallel(fluid.cuda_places(), reduce)
assert len(fluid.cuda_places()) == count
expected, cpu = train_parallel(fluid.cpu_places(count), reduce)
assert max(abs(a - b) for a, b in zip(losses, expected)) < 1e-4, (losses, expected)
for name in cpu:
    assert np.abs(params[name] - cpu[name]).max() < 1e-5, name
""" % (count, reduce), simdevice_devices=count)


def test_all_reduce_and_reduce_give_equal_bits_for_ten_seeds():
    text = PARALLEL + "print(train_parallel(fluid.cuda_places(), %r))"
    said = {run(text % reduce, simdevice_devices=3, simdevice_seed=seed)
            for reduce in ("AllReduce", "Reduce") for seed in range(5)}
    assert len(said) == 1


def test_what_is_injected_into_any_node_is_told_and_the_next_run_goes_on():
    run("""
    from anabranch import _core
    main, startup, _, loss = net()
    exe = fluid.Executor(fluid.CUDAPlace(0))
    exe.run(startup)
    first, = exe.run(main, feed=batch(0), fetch_list=[loss])
    engine = [kept.bound.engine for kept in exe._bound.values() if kept.program is main][0]
    nodes = int(engine.explain().split()[0])
    assert nodes > 15
    for node in range(nodes):
        def probe(op, replica, at, node=node):
            if at == node:
                raise RuntimeError("injected at %d" % node)
        engine.set_probe(probe)
        try:
            exe.run(main, feed=batch(0), fetch_list=[loss])
            raise SystemExit("node %d ran" % node)
        except RuntimeError as e:
            assert "injected at %d" % node in str(e), e
    engine.set_probe(None)
    last, = exe.run(main, feed=batch(0), fetch_list=[loss])
    assert last < first
    """)


@pytest.mark.parametrize("devices", [1, 2])
@pytest.mark.parametrize("name", ["nets", "shapes", "blocks", "values", "in_flight", "workers", "wrong"])
def test_a_scenario_has_the_same_bits_in_two_orders(name, devices):
    text = "import scenarios, training; print(training.digest(scenarios.SCENARIOS[%r](%d)))" % (name, devices)
    assert len({run(text, simdevice_devices=devices, simdevice_order=order) for order in ("random", "latest")}) == 1


def test_a_process_that_was_not_forked_ends_as_others_do():
    environment = dict(os.environ, PYTHONPATH=forks.package_in_use(), FLAGS_device_plugin="simdevice")
    done = subprocess.run([sys.executable, "-c", NET + "print(train(fluid.CUDAPlace(0), 2)[0])"], env=environment,
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and not done.stderr, done.stdout + done.stderr
