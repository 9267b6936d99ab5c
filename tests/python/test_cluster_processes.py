"""The example with parameter servers, as threads of one process and as processes that talk over the network."""
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import anabranch.fluid as fluid
from anabranch import _core

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
EXAMPLE = os.path.join(ROOT, "examples", "06_parameter_servers.py")
TOLD = re.compile(r"worker (\d) of (\d): loss ([\d.]+) at first, ([\d.]+) at last")


def networked():
    plugin = os.path.join(os.path.dirname(os.path.realpath(_core.__file__)), "anabranch_grpc.so")
    return os.path.exists(plugin)


def run(strategy, folder, *command):
    environment = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python"), ANABRANCH_STRATEGY=strategy,
                       ANABRANCH_MODEL=str(folder))
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, env=environment, timeout=120)


def check(text, workers):
    found = TOLD.findall(text)
    assert len(found) == workers, text
    for _, of, _first, last in found:
        assert int(of) == workers
        assert float(last) < 0.8 * 0.693, found  # a worker may begin when another has trained


def check_saved(folder):
    saved = sorted(os.listdir(folder))
    assert {"table", "fc_0.w_0", "fc_1.b_0"} <= set(saved)
    program = fluid.Program()
    var = program.global_block().create_var(name="table", dtype="float32", shape=[2000, 8], persistable=True)
    with fluid.scope_guard(fluid.Scope()):
        fluid.io.load_vars(None, str(folder), program, vars=[var])
        assert np.abs(np.array(fluid.global_scope().find_var("table").get_tensor())).max() > 0.05


@pytest.mark.parametrize("strategy", ["sync", "half_async", "async", "geo"])
def test_in_one_process(tmp_path, strategy):
    done = run(strategy, tmp_path / "model", EXAMPLE)
    assert done.returncode == 0, done.stderr
    check(done.stdout, 1)
    check_saved(tmp_path / "model")


@pytest.mark.skipif(not networked(), reason="built without gRPC")
@pytest.mark.parametrize("strategy", ["sync", "half_async", "async", "geo"])
def test_as_processes(tmp_path, strategy):
    logs = tmp_path / "logs"
    done = run(strategy, tmp_path / "model", "-m", "anabranch.launch", "--servers", "2", "--workers", "2", "--log-dir",
               str(logs), EXAMPLE)
    assert done.returncode == 0, done.stdout + done.stderr
    check("".join(path.read_text() for path in sorted(logs.iterdir())), 2)
    check_saved(tmp_path / "model")
