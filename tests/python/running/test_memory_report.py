"""fluid.memory_report: every byte has one owner."""
import gc
import os

import numpy
import pytest

import anabranch.fluid as fluid
from anabranch.fluid.memory import _Covered


def build(width):
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [None, width])
        loss = fluid.layers.mean(fluid.layers.fc(x, width, bias_attr=False, act="tanh"))
        fluid.optimizer.Adam(0.01).minimize(loss)
    return main, startup, scope, loss


@pytest.mark.parametrize("replicas, mode", [(None, None), (2, "AllReduce"), (2, "Reduce")])
def test_owners(replicas, mode):
    gc.collect()
    width, rows = 500, 64
    main, startup, scope, loss = build(width)
    before = fluid.memory_report(main, scope)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup, scope=scope)
    program = main
    if replicas:
        strategy = fluid.BuildStrategy()
        strategy.reduce_strategy = getattr(fluid.BuildStrategy.ReduceStrategy, mode)
        program = fluid.CompiledProgram(main).with_data_parallel(
            loss_name=loss.name, build_strategy=strategy, places=fluid.cpu_places(replicas))
    exe.run(program, feed={"x": numpy.ones((rows, width), "float32")}, fetch_list=[loss], scope=scope)
    after = fluid.memory_report(main, scope)
    grown = {owner: after[owner] - before[owner] for owner in after}
    matrix = width * width * 4
    assert grown["parameters"] == matrix, "replicas of one process share it"
    assert 2 * matrix <= grown["optimizer state"] <= 2 * matrix + 1024
    assert matrix <= grown["gradients"] <= 3 * matrix
    assert grown["activations"] >= 0 and grown["feeds"] == rows * width * 4
    owners = set(after) - {"total", "feeds"}
    assert sum(after[owner] for owner in owners) == after["total"]
    assert after.resident > after["total"] - before["total"] and after.peak >= after.resident
    largest = {entry["name"] for entry in after.variables if entry["bytes"] == matrix}
    assert {"fc_0.w_0", "fc_0.w_0_moment1_0", "fc_0.w_0_moment2_0", "fc_0.w_0@GRAD"} <= largest
    text = str(after)
    assert all(owner in text for owner in after) and "fc_0.w_0" in text
    assert after.to_dict()["variables"][0]["bytes"] >= after.to_dict()["variables"][-1]["bytes"]


def test_what_is_gone_is_not_counted():
    main, startup, scope, loss = build(300)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup, scope=scope)
    exe.run(main, feed={"x": numpy.ones((4, 300), "float32")}, scope=scope)
    held = fluid.memory_report(main, scope)
    exe.close()
    gc.collect()
    assert fluid.memory_report(main, scope)["gradients"] < held["gradients"]


def test_a_loaded_program_has_parameters(tmp_path):
    main, startup, scope, loss = build(100)
    exe = fluid.Executor(fluid.CPUPlace())
    folder = os.path.join(str(tmp_path), "model")
    with fluid.scope_guard(scope):
        exe.run(startup)
        fluid.io.save_inference_model(folder, ["x"], [loss], exe, main)
    other = fluid.Scope()
    with fluid.scope_guard(other):
        program, _, _ = fluid.io.load_inference_model(folder, exe)
    assert fluid.memory_report(program, other)["parameters"] >= 100 * 100 * 4


def test_overlapping_memory_is_counted_once():
    covered = _Covered()
    assert covered.add([(0, 10), (5, 20), (30, 40)]) == 30
    assert covered.add([(15, 35)]) == 10
    assert covered.add([(0, 40)]) == 0
    assert covered.add([(40, 41), (100, 110)]) == 11


def test_bad_arguments():
    with pytest.raises(TypeError):
        fluid.memory_report("program")
    with pytest.raises(TypeError):
        fluid.memory_report(scope=5)
