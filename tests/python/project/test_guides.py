"""docs/guides.md, "what the guides say and what runs": a test for each row."""
import os
import re
import subprocess
import sys
import warnings

import numpy
import pytest
from repository import ROOT

import anabranch.fluid as fluid

#: Row -> the test of it.
ROWS = {
    "`CPU_NUM` is not set": "cpu_num_unset", "`num_threads` 0": "threads",
    "`num_iteration_per_drop_scope`": "iterations_per_drop", "`num_iteration_per_run`": "iterations_per_run",
    "fetched variables": "fetched_variables", "`use_cuda=True` without a GPU": "use_cuda",
    "`share_vars_from`": "share_vars_from", "feed of several replicas": "feeds",
    "several replicas: fetched loss": "fetched_loss", "`reduce_strategy` on CPU": "reduce",
    "weight of a replica's gradient (`gradient_scale_strategy`)": "gradient_scale",
    "`memory_optimize`, `fluid.memory_optimize(program)`": "memory",
    "startup program": "startup", "strategies after the first run": "final"}
X = numpy.arange(12, dtype="float32").reshape(6, 2) / 10


@pytest.fixture(autouse=True)
def fresh():
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        with fluid.unique_name.guard():
            yield


def net():
    x = fluid.data("x", [None, 2])
    hidden = fluid.layers.fc(x, 3, param_attr=fluid.initializer.Constant(0.5))
    loss = fluid.layers.mean(hidden)
    fluid.optimizer.SGD(0.1).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return exe, loss, hidden


def parallel(loss, replicas=2, execution=None, **fields):
    strategy = fluid.BuildStrategy()
    for name, value in fields.items():
        setattr(strategy, name, value)
    return fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(
        loss_name=loss.name, build_strategy=strategy, exec_strategy=execution, places=fluid.cpu_places(replicas))


def weight():
    return numpy.array(fluid.global_scope().find_var("fc_0.w_0").get_tensor())


def test_each_row_has_a_test():
    with open(os.path.join(ROOT, "docs", "guides.md")) as file:
        rows = re.findall(r"^\| (.*?) \|", file.read(), re.M)
    assert rows[1:] == list(ROWS)
    assert all("test_" + name in globals() for name in ROWS.values())


def places(**environment):
    code = "import os, anabranch.fluid as f; print(len(f.cpu_places()), len(f.cpu_places()), os.environ['CPU_NUM'])"
    env = {k: v for k, v in os.environ.items() if k not in ("CPU_NUM", "FLAGS_cpu_num_default")}
    env.update(environment, PYTHONPATH=os.path.join(ROOT, "python"))
    return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60)


def test_cpu_num_unset():
    done = places()
    assert done.stdout.split() == ["1", "1", "1"]
    assert done.stderr.count("CPU_NUM is not set") == ((os.cpu_count() or 1) > 1)
    cores = str(len(os.sched_getaffinity(0)))
    done = places(FLAGS_cpu_num_default="cores")
    assert (done.stdout.split(), done.stderr) == ([cores] * 3, "")
    assert places(FLAGS_cpu_num_default="cores", CPU_NUM="3").stdout.split() == ["3"] * 3
    done = places(FLAGS_cpu_num_default="many")
    assert done.returncode == 1 and 'FLAGS_cpu_num_default must be "cores" or empty' in done.stderr


def test_threads():
    found = []
    exe, loss, _ = net()
    start = weight()
    for threads in (0, 1, 4):
        fluid.global_scope().find_var("fc_0.w_0").get_tensor().set(start, fluid.CPUPlace())
        execution = fluid.ExecutionStrategy()
        execution.num_threads = threads
        program = parallel(loss, execution=execution)
        exe.run(program, feed={"x": X}, fetch_list=[loss])
        found.append(weight().tobytes())
    assert found[0] == found[1] == found[2] != start.tobytes()


def test_iterations_per_drop():
    execution = fluid.ExecutionStrategy()
    assert execution.num_iteration_per_drop_scope == 100
    execution.num_iteration_per_drop_scope = 1
    exe, loss, _ = net()
    program = parallel(loss, execution=execution)
    losses = [exe.run(program, feed={"x": X}, fetch_list=[loss])[0].mean() for _ in range(3)]
    assert losses[0] > losses[1] > losses[2]
    with pytest.raises(ValueError, match="num_iteration_per_drop_scope"):
        execution = fluid.ExecutionStrategy()
        execution.num_iteration_per_drop_scope = 0


def test_iterations_per_run():
    exe, loss, _ = net()
    execution = fluid.ExecutionStrategy()
    assert execution.num_iteration_per_run == 1
    execution.num_iteration_per_run = 3
    single = [exe.run(feed={"x": X}, fetch_list=[loss])[0] for _ in range(3)]
    exe.run(fluid.default_startup_program())
    three, = exe.run(parallel(loss, 1, execution), feed={"x": X}, fetch_list=[loss])
    numpy.testing.assert_allclose(three, single[2], rtol=1e-6)


def test_fetched_variables():
    exe, loss, hidden = net()
    assert not loss.persistable and not hidden.persistable
    for program in (fluid.default_main_program(), parallel(loss)):
        assert exe.run(program, feed={"x": X}, fetch_list=[hidden])[0].shape == (6, 3)


def test_use_cuda():
    if fluid.core.get_cuda_device_count():
        pytest.skip("there is a device")
    with pytest.raises(fluid.core.EnforceNotMet, match="anabranch run|cuda: "):
        fluid.ParallelExecutor(use_cuda=True)  # what `anabranch run` does is in test_run.py and test_old_scripts.py


def test_share_vars_from(monkeypatch):
    monkeypatch.setenv("CPU_NUM", "2")
    x = fluid.data("x", [None, 2])
    loss = fluid.layers.mean(fluid.layers.fc(x, 3))
    test = fluid.default_main_program().clone(for_test=True)
    fluid.optimizer.SGD(0.1).minimize(loss)
    fluid.Executor(fluid.CPUPlace()).run(fluid.default_startup_program())
    train_exe = fluid.ParallelExecutor(use_cuda=False, loss_name=loss.name)
    test_exe = fluid.ParallelExecutor(use_cuda=False, main_program=test, share_vars_from=train_exe)
    before = test_exe.run([loss.name], feed={"x": X})[0].mean()
    train_exe.run([loss.name], feed={"x": X})
    assert test_exe.run([loss.name], feed={"x": X})[0].mean() < before


def test_feeds():
    exe, loss, _ = net()
    program, start = parallel(loss), weight()
    exe.run(program, feed={"x": X}, fetch_list=[loss])
    cut = weight()
    fluid.global_scope().find_var("fc_0.w_0").get_tensor().set(start, fluid.CPUPlace())
    exe.run(program, feed=[{"x": X[:3]}, {"x": X[3:]}], fetch_list=[loss])
    numpy.testing.assert_array_equal(weight(), cut)
    with pytest.raises(ValueError, match="2"):
        exe.run(program, feed=[{"x": X}], fetch_list=[loss])
    assert exe.run(program, feed={"x": X[:1]}, fetch_list=[loss])[0].shape == (1,)


def test_fetched_loss():
    exe, loss, _ = net()
    program = parallel(loss)
    assert exe.run(program, feed={"x": X}, fetch_list=[loss])[0].shape == (2,)
    apart = exe.run(program, feed={"x": X}, fetch_list=[loss], return_merged=False)[0]
    assert [numpy.shape(part) for part in apart] == [(1,), (1,)]


def test_reduce():
    exe, loss, _ = net()
    start, found = weight(), []
    for kind in ("AllReduce", "Reduce"):
        fluid.global_scope().find_var("fc_0.w_0").get_tensor().set(start, fluid.CPUPlace())
        exe.run(parallel(loss, reduce_strategy=getattr(fluid.BuildStrategy.ReduceStrategy, kind)), feed={"x": X},
                fetch_list=[loss])
        found.append(weight().tobytes())
    assert found[0] == found[1] != start.tobytes()


def test_gradient_scale():
    exe, loss, _ = net()
    assert fluid.BuildStrategy().gradient_scale_strategy == fluid.BuildStrategy.GradientScaleStrategy.CoeffNumDevice
    start = weight()
    exe.run(feed={"x": X[:5]}, fetch_list=[loss])
    serial = weight()
    fluid.global_scope().find_var("fc_0.w_0").get_tensor().set(start, fluid.CPUPlace())
    exe.run(parallel(loss), feed={"x": X[:5]}, fetch_list=[loss])
    numpy.testing.assert_allclose(weight(), serial, rtol=1e-6)


def test_memory():
    exe, loss, _ = net()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fluid.memory_optimize(fluid.default_main_program())
    assert "does nothing" in str(caught[-1].message)
    start, found = weight(), set()
    for value in (None, True, False):
        fluid.global_scope().find_var("fc_0.w_0").get_tensor().set(start, fluid.CPUPlace())
        program = parallel(loss, memory_optimize=value)
        exe.run(program, feed={"x": X}, fetch_list=[loss])
        found.add((weight().tobytes(), re.sub(r"[\d.]+ ms", "", str(program.explain()))))
    assert len(found) == 1 and weight().tobytes() != start.tobytes()


@pytest.mark.parametrize("value", [None, True, False])
def test_temporaries_share_memory(value):
    """Twenty layers one after another need the memory of a few."""
    x = fluid.data("x", [None, 1000])
    layer = x
    for _ in range(20):
        layer = fluid.layers.fc(layer, 1000, bias_attr=False, param_attr=fluid.ParamAttr("w"))
    out = fluid.layers.mean(layer)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    before = fluid.memory_report()["activations"]
    strategy = fluid.BuildStrategy()
    strategy.memory_optimize = value
    program = fluid.CompiledProgram(fluid.default_main_program(), strategy)
    exe.run(program, feed={"x": numpy.ones((250, 1000), "float32")}, fetch_list=[out])
    one = 250 * 1000 * 4
    assert one <= fluid.memory_report()["activations"] - before <= 6 * one


def test_startup():
    exe, loss, _ = net()
    start = weight()
    exe.run(feed={"x": X}, fetch_list=[loss])
    assert weight().tobytes() != start.tobytes()
    exe.run(fluid.default_startup_program())
    assert weight().tobytes() == start.tobytes()


def test_final():
    exe, loss, _ = net()
    strategy = fluid.BuildStrategy()
    program = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(
        loss_name=loss.name, build_strategy=strategy, places=fluid.cpu_places(2))
    exe.run(program, feed={"x": X}, fetch_list=[loss])
    with pytest.raises(fluid.core.EnforceNotMet, match="finalized"):
        strategy.enable_inplace = False
