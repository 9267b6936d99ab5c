"""fluid.profiler: what it takes, what it prints, what it writes; reports and traces."""
import json
import os
import re

import numpy
import pytest

import anabranch.fluid as fluid
from anabranch import _core, profiling
from anabranch.fluid import profiler


@pytest.fixture(autouse=True)
def off():
    for after in (False, True):          # earlier tests in this process may have left it on
        _core.stop_profiler()
        _core.reset_profiler()
        if not after:
            yield


@pytest.fixture
def model():
    """run(times, replicas=None): trains a small network."""
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x, y = fluid.data("x", [None, 64]), fluid.data("y", [None, 1])
        hidden = fluid.layers.fc(x, 32, act="relu")
        loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, 1), y))
        fluid.optimizer.SGD(0.01).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup, scope=scope)
    feed = {"x": numpy.ones((8, 64), "float32"), "y": numpy.ones((8, 1), "float32")}
    programs = {None: main}

    def run(times, replicas=None):
        if replicas not in programs:
            programs[replicas] = fluid.CompiledProgram(main).with_data_parallel(
                loss_name=loss.name, places=fluid.cpu_places(replicas))
        for _ in range(times):
            exe.run(programs[replicas], feed=feed, fetch_list=[loss], scope=scope)
    return run


# ---- arguments

@pytest.mark.parametrize("state", ["cpu", None, 0, ""])
def test_bad_state(state):
    with pytest.raises(ValueError, match="The state must be 'CPU' or 'GPU' or 'All'"):
        profiler.start_profiler(state)


def test_bad_option_and_key(model):
    with pytest.raises(ValueError, match="tracer option must be"):
        profiler.start_profiler("CPU", "Every")
    for key in ("bad", 5, ["total"]):
        with pytest.raises(ValueError, match="The sorted_key must be None or in"):
            with profiler.profiler("CPU", key):
                model(1)
        assert not _core.profiler_on(), "nothing starts with a bad argument"
    profiler.start_profiler("CPU")
    with pytest.raises(ValueError):
        profiler.stop_profiler("bad")
    with pytest.raises(TypeError):
        profiler.stop_profiler("total", None)
    assert _core.profiler_on()


def test_stop_without_start_and_start_twice(model, capsys):
    profiler.stop_profiler("bad")
    assert capsys.readouterr().out == ""
    profiler.start_profiler("CPU")
    model(2)
    profiler.start_profiler("no state is looked at while it is on")
    model(1)
    assert profiling.take().runs == 3


def test_cuda_profiler():
    with pytest.raises(ValueError, match="'kvp' or 'csv'"):
        with profiler.cuda_profiler("out", "xml"):
            pass
    with pytest.raises(NotImplementedError, match="no GPU"):
        with profiler.cuda_profiler("out"):
            pass


# ---- tables and files

def table(text):
    """First words of the lines of the event table -> numbers."""
    lines = text[text.index("\nEvent"):].splitlines()[2:]
    rows = {}
    for line in lines:
        if not line.strip():
            break
        words = line.split()
        rows[words[0]] = words[1:]
    return rows


@pytest.mark.parametrize("key, says", [(None, "event first end time"), ("calls", "number of calls"),
                                       ("total", "total time"), ("max", "maximum time"), ("min", "minimum time"),
                                       ("ave", "average time")])
def test_table(model, capsys, tmp_path, key, says):
    with profiler.profiler("CPU", key, str(tmp_path / "deep" / "profile")):
        model(3)
    text = capsys.readouterr().out
    assert "Profiling Report" in text and "Sorted by " + says in text and "Critical Path" in text
    rows = table(text)
    assert rows["sgd" if "sgd" in rows else "fused_sgd"]
    assert abs(sum(float(row[5].rstrip("%")) for row in rows.values()) - 100) < 1
    column = {"calls": 0, "total": 1, "min": 2, "max": 3, "ave": 4}.get(key)
    if column is not None:
        values = [float(row[column]) for row in rows.values()]
        assert values == sorted(values, reverse=True)
    assert max(map(len, text.splitlines())) <= 80, "fits a terminal of 80 columns"
    assert re.search(r"Total time: [\d.]+ (us|ms)   \(runs: 3\)", text) and "Time unit: us" in text
    assert os.path.getsize(str(tmp_path / "deep" / "profile")) > 100


def test_no_file_and_bad_folder(model, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with profiler.profiler("All", profile_path=""):
        model(1)
    assert not os.listdir(str(tmp_path))
    (tmp_path / "file").write_text("")
    with pytest.raises(RuntimeError, match="cannot write"):
        with profiler.profiler("CPU", profile_path=str(tmp_path / "file" / "profile")):
            model(1)
    assert capsys.readouterr().out.count("Event Summary") == 2


def test_gpu_has_nothing_to_report(model, capsys):
    with profiler.profiler("GPU", profile_path=""):
        model(1)
    assert "Place: CUDA" in capsys.readouterr().out


def test_error_in_the_block_comes_out(model, capsys):
    with pytest.raises(KeyError):
        with profiler.profiler("CPU", profile_path=""):
            model(1)
            raise KeyError("mine")
    assert not _core.profiler_on() and "Event Summary" in capsys.readouterr().out


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(data):
    """(number, value) of a protobuf message."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        value, at = varint(data, at)
        if key & 7 == 2:
            value, at = data[at:at + value], at + value
        yield key >> 3, value


def test_files(model, tmp_path, capsys):
    path = str(tmp_path / "profile")
    with profiler.profiler("CPU", "total", path):
        model(2, replicas=2)
    with open(path, "rb") as f:
        message = list(fields(f.read()))
    events = [dict(fields(value)) for number, value in message if number == 1]
    assert {b"mul_grad", b"feed", b"fetch", b"run"} <= {e[1] for e in events} or \
        {b"fused_fc_grad", b"feed", b"fetch", b"run"} <= {e[1] for e in events}
    assert all(e[2] <= e[3] for e in events)
    assert dict(message)[2] <= min(e[2] for e in events)
    with open(path + ".json") as f:
        trace = json.load(f)["traceEvents"]
    assert {e["ph"] for e in trace} == {"M", "X"}
    done = [e for e in trace if e["ph"] == "X"]
    assert {e["tid"] for e in done} == {e["tid"] for e in trace if e["name"] == "thread_name"}
    assert sum(e["name"] == "run" for e in done) == 2
    assert any("made at" in e["args"].get("op", "") for e in done)


# ---- reports

def test_report_counts_every_node_once_a_run(model):
    profiler.start_profiler("CPU")
    model(4, replicas=3)
    report = profiling.take()
    plan = report.main_plan()
    assert report.runs == 4 and all(node["calls"] == 4 for node in plan["nodes"])
    assert {node["replica"] for node in plan["nodes"]} == {0, 1, 2}
    products = [node for node in plan["nodes"] if node["flops"]]
    assert sum(node["flops"] for node in products) == 4 * 2 * (8 * 64 * 32 * 2 + 8 * 32 * 3)
    assert 0 < report.computing_ns <= report.run_ns
    assert set(report.rows()) > {"feed", "fetch"}
    assert all(0 <= row.of_ceiling for row in report.rows("node").values())


def test_critical_path_follows_the_program(model):
    profiler.start_profiler("CPU")
    model(3)
    report = profiling.take()
    path = report.critical_path()
    assert sum(ns for _, ns in path) <= sum(n["total_ns"] // n["calls"] for n in report.main_plan()["nodes"])
    assert path[-1][0]["type"].endswith("sgd")


def test_reset_forgets_and_goes_on(model):
    profiler.start_profiler("CPU")
    model(2)
    profiler.reset_profiler()
    assert profiling.take().runs == 0
    model(1)
    assert profiling.take().runs == 1


def test_detail(model, capsys):
    for option, expected in (("OpDetail", "mul_grad"), ("AllOpDetail", "->")):
        with profiler.profiler("CPU", None, "", option):
            model(1)
        text = capsys.readouterr().out
        assert expected in text or "fused_fc_grad" in text
        assert "square_error_cost" in text or "-> " in text


def test_a_failed_run_is_recorded_up_to_its_error(model):
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        x = fluid.data("x", [None, 2], "int64")
        table = fluid.layers.fill_constant([4, 3], "float32", 1.0)
        fluid.layers.gather(table, fluid.layers.reshape(x, [-1]))
    profiler.start_profiler("CPU")
    with pytest.raises(fluid.core.EnforceNotMet):
        fluid.Executor().run(main, feed={"x": numpy.array([[1, 9]])}, fetch_list=[], scope=fluid.Scope())
    model(1)
    assert profiling.take().runs == 2


def loops(iterations):
    main, layers = fluid.Program(), fluid.layers
    with fluid.program_guard(main, fluid.Program()):
        i, n = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", iterations)
        x = layers.fill_constant([2, 2], "float32", 1.0)
        out = layers.while_loop(lambda i, x: layers.less_than(i, n),
                                lambda i, x: [layers.increment(i), layers.matmul(x, x)], [i, x])[1]
    return main, out


@pytest.mark.parametrize("iterations", [3, 9000])
def test_operators_in_loops_are_counted(iterations):
    """Of a long loop the trace keeps the first events, the tables count all."""
    main, out = loops(iterations)
    exe = fluid.Executor()
    exe.run(main, fetch_list=[out])
    profiler.start_profiler("CPU")
    exe.run(main, fetch_list=[out])
    report = profiling.take()
    nodes = report.main_plan()["nodes"]
    inner = {node["type"]: node for node in nodes if node["inner"]}
    assert inner["matmul"]["calls"] == iterations and "test_profiler.py" in inner["matmul"]["place"]
    loop = next(node for node in nodes if node["type"] == "while")
    assert loop["calls"] == 1 and not loop["inner"]
    assert sum(node["total_ns"] for node in inner.values()) <= loop["total_ns"]
    assert all(not node["inner"] for node, _ in report.critical_path())
    events = json.loads(report.profile.chrome_trace())["traceEvents"]
    seen = [e["args"]["iteration"] for e in events if e["name"] == "matmul"]
    assert seen == sorted(seen) and seen[0] == 0 and len(seen) <= iterations
    assert (report.profile.dropped_events > 0) == (iterations > 3)
    assert iterations > 3 or seen == [0, 1, 2]
