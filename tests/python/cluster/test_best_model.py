"""Early stopping and the best model are decisions of all workers: one script, alone, with replicas and launched."""
import json
import os
import subprocess
import sys

import best_worker
import numpy as np
import pytest
from cluster_processes import networked
from repository import PYTHON, SUPPORT

import anabranch
import anabranch.fluid as fluid
from anabranch import _cluster
from anabranch.callbacks import BestModel, Callback
from anabranch.fluid.incubate.fleet.base import role_maker
from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet

SCRIPT = os.path.join(SUPPORT, "best_worker.py")
HOW = {"alone": (1, []), "replicas": (2, []),
       "cluster": (1, ["-m", "anabranch", "launch", "--servers", "2", "--workers", "2", "--log-dir", "logs"])}


def ran(folder, how, table):
    """The results of the workers of one way of running the script."""
    folder.mkdir()
    for part in range(2):
        best_worker.write(folder / ("valid-%d" % part), 5 + part, 90 + 31 * part)
    replicas, start = HOW[how]
    environment = dict(os.environ, CPU_NUM=str(replicas), PYTHONPATH=os.pathsep.join([PYTHON, SUPPORT]))
    done = subprocess.run([sys.executable, *start, SCRIPT, str(folder), table], capture_output=True, text=True,
                          timeout=100, cwd=folder, env=environment)
    assert done.returncode == 0, done
    logs = [path.read_text() for path in (folder / "logs").iterdir()] if start else [done.stdout]
    found = [json.loads(line[7:]) for text in logs for line in text.splitlines() if line.startswith("RESULT ")]
    return sorted(found, key=lambda one: one["worker"])


def files(folder):
    return {path.name: path.read_bytes() for path in sorted((folder / "model").iterdir())}


def answers(folder):
    """The answers of the exported model for each row of its table."""
    x = best_worker.drawn(9, best_worker.ITEMS)[1]
    ids = np.arange(best_worker.ITEMS).reshape(-1, 1)
    return anabranch.Predictor(str(folder / "model")).run({"ids": ids, "x": x})[0]


@pytest.mark.skipif(not networked(), reason="built without gRPC")
@pytest.mark.parametrize("table", ["sparse", "growable"])
def test_one_script(table, tmp_path):
    results = {how: ran(tmp_path / how, how, table) for how in HOW}
    (alone,), (replicas,), (first, second) = results.values()
    assert {**first, "worker": 1} == second                 # one decision, by the same metrics
    decisions = [(one["best"], len(one["epochs"])) for one in (alone, replicas, first)]
    assert decisions == [decisions[0]] * 3 and 0 < first["best"] < len(first["epochs"]) - 1 < best_worker.EPOCHS - 1
    assert replicas["stopped"] == first["stopped"]
    for mine, others, apart in zip(replicas["epochs"], first["epochs"], alone["epochs"]):
        assert [mine[name] for name in ("auc", "gauc")] == [others[name] for name in ("auc", "gauc")]
        assert mine == pytest.approx(others, abs=1e-7)      # the loss is a mean of batches, which are others here
        assert apart == pytest.approx(others, abs=1e-5)     # a product over 32 rows is rounded in another order
    left, right = files(tmp_path / "replicas"), files(tmp_path / "cluster")
    assert set(left) == set(right) == set(files(tmp_path / "alone")) >= {"__model__", "table", "fc_0.w_0"}
    same = {name for name in left if left[name] == right[name]}
    assert left.keys() - same <= ({"table"} if table == "growable" else set())      # rows in another order
    assert np.array_equal(answers(tmp_path / "replicas"), answers(tmp_path / "cluster"))
    np.testing.assert_allclose(answers(tmp_path / "alone"), answers(tmp_path / "cluster"), atol=1e-5)


def test_workers_agree(monkeypatch):
    """The values of all workers become their mean before callbacks see them, and one worker stops all."""
    told = []

    def all_gather(role, value):
        told.append(dict(value) if isinstance(value, dict) else value)
        if isinstance(value, dict):
            return [value, {"loss": 0.25, "same": 0.1}, {"loss": 0.5, "same": 0.1}]
        return [value, "worker 1 had enough", None]
    monkeypatch.setattr(_cluster, "all_gather", all_gather)
    fleet.init(role_maker.UserDefinedRoleMaker(0, role_maker.Role.WORKER, 3, ["127.0.0.1:6174"]))
    seen = []

    class See(Callback):
        def epoch_end(self, loop):
            seen.append(dict(loop.values))
    loop = anabranch.Loop([See()], show=False, fleet=fleet)
    for _ in loop.epochs(5):
        for _ in loop.steps([1, 2]):
            pass
        loop.log_epoch(loss=0.75, same=0.1)
    assert told == [{"loss": 0.75, "same": 0.1}, None] and seen == [{"loss": 0.5, "same": 0.1}]
    assert (loop.epoch, loop.stopped) == (0, "worker 1 had enough")


def test_workers_complete_their_steps(monkeypatch):
    """A worker that ended its steps alone would leave the others waiting for its gradients."""
    monkeypatch.setattr(_cluster, "all_gather", lambda role, value: [value, value])
    fleet.init(role_maker.UserDefinedRoleMaker(0, role_maker.Role.WORKER, 2, ["127.0.0.1:6174"]))
    loop, steps = anabranch.Loop(show=False, fleet=fleet), []
    for _ in loop.epochs(5):
        for step in loop.steps(range(4)):
            steps.append(step)
            loop.stop("enough")
    assert steps == [0, 1, 2, 3]


def test_mistakes(monkeypatch, tmp_path):
    with pytest.raises(TypeError, match="Loop: fleet must be a fleet object, got int"):
        anabranch.Loop(fleet=3)
    monkeypatch.setattr(_cluster, "all_gather", lambda role, value: [value, {"auc": 0.5}])
    fleet.init(role_maker.UserDefinedRoleMaker(0, role_maker.Role.WORKER, 2, ["127.0.0.1:6174"]))
    loop = anabranch.Loop(show=False, fleet=fleet)
    with pytest.raises(ValueError, match="must log the same values, got loss, and auc from worker 1"):
        for _ in loop.epochs(1):
            loop.log_epoch(loss=0.5)
    best = BestModel(str(tmp_path / "best"), "loss", fluid.Program())
    with pytest.raises(RuntimeError, match="loss had no value that is a number in any epoch"):
        best.save_inference_model(str(tmp_path / "model"), [], [], fluid.Executor())


def test_other_workers_learn_that_the_first_one_failed(monkeypatch):
    monkeypatch.setattr(_cluster, "all_gather", lambda role, value: ["the disk is full", value])
    fleet.init(role_maker.UserDefinedRoleMaker(1, role_maker.Role.WORKER, 2, ["127.0.0.1:6174"]))
    with pytest.raises(RuntimeError, match="BestModel: the first worker failed: the disk is full"):
        _cluster.by_first_worker(fleet._role(), "BestModel", lambda: pytest.fail("another worker writes"))
