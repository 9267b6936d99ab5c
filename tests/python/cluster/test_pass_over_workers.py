"""``PassResult.over_workers``: the metrics of all workers are those of one process that reads all rows."""
import json
import os
import subprocess
import sys
import warnings

import measured_worker
import numpy as np
import pytest
from collective_processes import finish, pytestmark, start  # noqa: F401 - skips without gRPC and Gloo
from repository import PYTHON, SUPPORT

import anabranch.fluid as fluid
from anabranch.fluid.reading.pass_result import PassResult

SCRIPT = os.path.join(SUPPORT, "measured_worker.py")
ROWS = (203, 18, 75, 1)     # of each worker: their last batches differ


def files(folder, count):
    """The file of each worker, and one with all rows."""
    for worker, rows in enumerate(ROWS[:count]):
        with open(measured_worker.write(folder / ("part-%d" % worker), worker, rows), "a") as file:
            file.write("malformed\n" * worker)
    text = "".join((folder / ("part-%d" % worker)).read_text() for worker in range(count))
    (folder / "whole").write_text(text)
    return str(folder / "whole")


def pairs(scores, y):
    up, down = scores[y == 1], scores[y == 0]
    return np.mean((up[:, None] > down) + 0.5 * (up[:, None] == down))


def expected(path):
    """Loss, mean prediction and AUC (by all pairs of bins) of a file, and the ranked metrics, without the engine."""
    rows = np.array([line.split() for line in open(path) if line != "malformed\n"], "float64")
    x, y = rows[:, 1:4], rows[:, 5].astype(int)
    score = (x @ measured_worker.WEIGHTS).reshape(-1)
    chance = 1 / (1 + np.exp(-score))
    users = [(chance[rows[:, 7] == user], y[rows[:, 7] == user]) for user in np.unique(rows[:, 7])]
    users = [user for user in users if 0 < user[1].mean() < 1]
    mean = y.mean()
    loss = np.mean(np.log1p(np.exp(-np.abs(score))) + np.maximum(score, 0) - score * y)
    return {"loss": loss, "chance": chance.mean(),
            "auc": pairs(np.floor(chance.astype("float32") * np.float32(4095)), y), "ranked_auc": pairs(chance, y),
            "ranked_ne": loss / -(mean * np.log(mean) + (1 - mean) * np.log(1 - mean)),
            "ranked_calibration": chance.sum() / y.sum(),
            "ranked_gauc": np.average([pairs(*user) for user in users], weights=[len(user[1]) for user in users])}


def check(results, count, whole):
    assert [result[0] for result in results] == list(ROWS[:count])
    assert all(result[1:] == results[0][1:] for result in results)
    _, metrics, rows, batches, bad = results[0]
    assert metrics == pytest.approx(expected(whole), abs=1e-6)
    assert (rows, bad) == (sum(ROWS[:count]), sum(range(count)))
    assert batches == sum(-(-rows // measured_worker.BATCH) for rows in ROWS[:count])
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        alone = measured_worker.infer(whole)
    assert metrics == pytest.approx(alone.metrics, abs=1e-6)


def said(text):
    return json.loads(next(line for line in text.splitlines() if line.startswith("RESULT "))[7:])


@pytest.mark.parametrize("count", [2, 4])
def test_collective_workers(count, tmp_path):
    whole = files(tmp_path, count)
    done = finish(start(count, SCRIPT, str(tmp_path), "collective"))
    assert [code for code, _ in done] == [0] * count, done
    check([said(text) for _, text in done], count, whole)


def test_workers_with_servers(tmp_path):
    whole = files(tmp_path, 3)
    logs = tmp_path / "logs"
    done = subprocess.run([sys.executable, "-m", "anabranch", "launch", "--servers", "2", "--workers", "3", "--log-dir",
                           str(logs), SCRIPT, str(tmp_path), "servers"], capture_output=True, text=True, timeout=100,
                          env=dict(os.environ, PYTHONPATH=os.pathsep.join([PYTHON, SUPPORT])), cwd=tmp_path)
    assert done.returncode == 0, done
    texts = [path.read_text() for path in sorted(logs.iterdir())]
    results = sorted((said(text) for text in texts if "RESULT " in text), key=lambda one: ROWS.index(one[0]))
    check(results, 3, whole)


def test_mistakes():
    result = PassResult({"loss": 0.5}, {"rows": 2, "batches": 1, "seconds": 1.0}, 0)
    with pytest.raises(TypeError, match="fleet must be a fleet object, got int"):
        result.over_workers(3)
    from anabranch.fluid.incubate.fleet.collective import Collective
    with pytest.raises(RuntimeError, match="call fleet.init first"):
        result.over_workers(Collective())


def test_workers_with_other_metrics_are_an_error(monkeypatch):
    from anabranch import _cluster
    from anabranch.fluid.incubate.fleet.base import role_maker
    from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
    fleet.init(role_maker.UserDefinedRoleMaker(0, role_maker.Role.WORKER, 2, ["127.0.0.1:6174"]))
    monkeypatch.setattr(_cluster, "all_gather", lambda role, value: [value, [[["auc", 4096, False]], ""]])
    result = PassResult({"loss": 0.5}, {"rows": 2, "batches": 1, "seconds": 1.0}, 0)
    with pytest.raises(ValueError, match="same metrics, got .*'loss'.* and .*'auc', 4096.* from worker 1"):
        result.over_workers(fleet)


@pytest.mark.parametrize("lines, warned", [(("a", "a"), True), (("a", "b"), False), (("", ""), False)])
def test_workers_that_read_the_same_files(lines, warned, monkeypatch):
    from anabranch import _cluster
    from anabranch.fluid.incubate.fleet.base import role_maker
    from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
    fleet.init(role_maker.UserDefinedRoleMaker(0, role_maker.Role.WORKER, 2, ["127.0.0.1:6174"]))
    monkeypatch.setattr(_cluster, "all_gather", lambda role, value: [value, [value[0], lines[1]]])
    monkeypatch.setattr(_cluster, "all_reduce", lambda role, value, how: value)
    result = PassResult({"loss": 0.5}, {"rows": 2, "batches": 1, "seconds": 1.0}, 0, read=lines[0])
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result.over_workers(fleet)
    said_so = [str(one.message).startswith("over_workers: workers have read the same lines") for one in found]
    assert said_so == [True] * warned


def test_a_pass_knows_its_lines(tmp_path):
    data = fluid.DatasetFactory().create_dataset()
    assert data._lines_of_a_pass() == ""
    data.set_filelist([str(tmp_path / "a"), str(tmp_path / "b")])
    known = data._lines_of_a_pass()
    data.set_filelist([str(tmp_path / "b"), str(tmp_path / "." / "a")])
    assert data._lines_of_a_pass() == known
    data.set_share(0, 0.5)
    assert data._lines_of_a_pass() != known
    data.set_pipe_command("sort")
    assert data._lines_of_a_pass() == ""
