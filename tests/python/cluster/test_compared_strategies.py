"""``anabranch strategies``: clusters of a script under each strategy, for some steps."""
import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
import replica_worker
from cluster_processes import EXAMPLE, networked
from repository import ROOT
from worker_replicas import local_losses

from anabranch.tuning import sampled, strategies

ROW = re.compile(r"^(sync|half_async|async|geo) +([\d,]+) +([\d.]+) +([\d.]+)$", re.M)


def compare(*args):
    environment = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python"))
    return subprocess.run([sys.executable, "-m", "anabranch", "strategies", *args], capture_output=True, text=True,
                          env=environment, timeout=200)


@pytest.mark.skipif(not networked(), reason="built without gRPC")
def test_all_strategies_of_the_example():
    done = compare("--rounds", "1", "--steps", "60", "--geo-every", "20", EXAMPLE, "--strategy", "async")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("60 steps of each worker, 2 servers, 2 workers, best of 1 round\n\nstrategy ")
    rows = {name: (int(speed.replace(",", "")), float(share), float(auc))
            for name, speed, share, auc in ROW.findall(done.stdout)}
    assert set(rows) == set(strategies.STRATEGIES), done.stdout + done.stderr
    assert max(share for _, share, _ in rows.values()) == 1.0
    assert all(speed > 100 and 0.5 < auc < 1 for speed, _, auc in rows.values()), rows
    assert "AUC" in done.stdout.splitlines()[2]


SCRIPT = """
import sys
import numpy
import anabranch.fluid as fluid
from anabranch.fluid.incubate.fleet.base import role_maker
from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
fleet.init(role_maker.PaddleCloudRoleMaker())
x, y = fluid.data("x", [None, 3]), fluid.data("y", [None, 1])
loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y))
optimizer = fleet.distributed_optimizer(fluid.optimizer.SGD(0.1))
if "--geo-fails" in sys.argv and type(fleet._transpile_config).__name__ == "GeoStrategy":
    sys.exit("no geo today")
optimizer.minimize(loss)
if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
    sys.exit()
exe = fluid.Executor()
fleet.init_worker()
exe.run(fleet.startup_program)
random = numpy.random.RandomState(fleet.worker_index())
for step in range(20):
    rows = random.normal(size=(32, 3)).astype("float32")
    value, = exe.run(fleet.main_program, feed={"x": rows, "y": rows.sum(1, keepdims=True)}, fetch_list=[loss])
    print("score: %.1f" % step)
fleet.stop_worker()
"""


@pytest.mark.skipif(not networked(), reason="built without gRPC")
def test_a_loss_a_printed_number_and_a_strategy_that_fails(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    # The script ends by itself after 20 steps.
    done = compare("--rounds", "1", "--workers", "1", "--servers", "1", "--only", "sync,geo", str(script),
                   "--geo-fails")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("20 steps") and done.stdout.splitlines()[2].split()[-1] == "loss"
    (name, _, _, loss), = ROW.findall(done.stdout)
    assert name == "sync" and float(loss) < 1
    assert "geo failed: launch: " in done.stdout and "no geo today" in done.stdout
    done = compare("--rounds", "1", "--workers", "1", "--servers", "1", "--only", "geo", "--steps", "10", "--metric",
                   r"score: ([\d.]+)", str(script))
    assert ROW.findall(done.stdout)[0][3] == "8.0000", done.stdout + done.stderr  # the tenth step does not return
    done = compare("--rounds", "1", "--only", "geo", str(script), "--geo-fails")
    assert done.returncode == 1 and "no geo today" in done.stderr


@pytest.mark.skipif(not networked(), reason="built without gRPC")
def test_a_script_without_fleet_is_refused(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import numpy\nimport anabranch.fluid as fluid\nx = fluid.data('x', [None, 2])\n"
                      "loss = fluid.layers.mean(fluid.layers.fc(x, 1))\nfluid.optimizer.SGD(0.1).minimize(loss)\n"
                      "exe = fluid.Executor()\nexe.run(fluid.default_startup_program())\n"
                      "for _ in range(9):\n    exe.run(feed={'x': numpy.ones((2, 2), 'float32')})\n")
    done = compare("--rounds", "1", "--workers", "1", "--servers", "1", "--steps", "5", str(script))
    assert done.returncode == 1 and "script.py does not call fleet.distributed_optimizer" in done.stderr, done.stderr


def test_strategies_that_fail_alike_share_a_message():
    log = "launch: server %d ended with 1. The end of its log:\n  File a.py, line 1\nValueError: act is bad\n  help"
    failed = {"sync": log % 0, "async": log % 1, "geo": "launch: no port"}
    assert strategies._by_reason(failed) == [(["sync", "async"], log % 0), (["geo"], "launch: no port")]


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("feed", ["dict", "list", "loader", "started", "py_reader"])
def test_rows_and_losses_of_all_replicas_count(tmp_path, feed, replicas):
    """Two warm steps of 20, in a worker with its servers in one process."""
    environment = dict(os.environ, CPU_NUM=str(replicas), PYTHONPATH=os.pathsep.join(sys.path), PADDLE_TRAINER_ID="0",
                       **{sampled.STRATEGY: "sync", sampled.STEPS: "20", sampled.GEO_EVERY: "5",
                          sampled.RESULT: str(tmp_path / "measured")})
    subprocess.run([sys.executable, "-m", sampled.__name__, replica_worker.__file__, "--strategy", "async", "--feed",
                    feed], check=True, env=environment, timeout=120)
    measured = json.loads((tmp_path / "measured.0").read_text())
    assert (measured["steps"], measured["rows"]) == (20, 18 * replicas * replica_worker.ROWS)
    assert measured["loss"] == pytest.approx(np.mean(local_losses(replicas)[16:20]), rel=1e-5)


@pytest.mark.slow(15)
@pytest.mark.skipif(not networked(), reason="built without gRPC")
def test_workers_with_replicas(monkeypatch):
    monkeypatch.setenv("CPU_NUM", "2")
    done = compare("--rounds", "1", "--steps", "20", "--geo-every", "4", replica_worker.__file__, "--feed", "py_reader")
    assert {name for name, *_ in ROW.findall(done.stdout)} == set(strategies.STRATEGIES), done.stdout + done.stderr


@pytest.mark.parametrize("args, word", [
    (["--only", "sync,fast"], "sync, half_async, async, geo, got 'fast'"), (["--steps", "1"], "--steps at least 2"),
    (["--metric", "("], "a regular expression"), (["--metric", "a"], "one group, around the number, got 0")])
def test_bad_arguments_are_named(args, word, capsys):
    with pytest.raises(SystemExit):
        strategies.main([*args, "x.py"])
    assert word in capsys.readouterr().err
