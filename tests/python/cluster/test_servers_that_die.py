"""A server is killed with SIGKILL in the middle of training and started again: each update is there once."""
import os
import random
import signal
import subprocess
import sys
import time

import numpy
import pytest
from cluster_processes import SCRIPT, free_port, networked
from repository import ROOT

STEPS = 120


@pytest.mark.skipif(not networked(), reason="built without gRPC")
@pytest.mark.parametrize("mode, level", [("async", 1), ("async", 2), ("sync", 1)])
def test_each_update_is_there_once(tmp_path, mode, level):
    script, endpoint = tmp_path / "script.py", free_port()
    script.write_text(SCRIPT)
    environment = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python"), FLAGS_ps_state_dir=str(tmp_path / "state"),
                       FLAGS_ps_durability=str(level), FLAGS_ps_snapshot_every="7", FLAGS_rpc_deadline="60000")

    log = open(tmp_path / "servers.log", "w+")

    def start(role, *more):
        out = subprocess.PIPE if role == "worker" else log
        return subprocess.Popen([sys.executable, str(script), role + "_" + mode, endpoint, str(STEPS), *more],
                                env=environment, stdout=out, stderr=subprocess.STDOUT, text=True)

    chance = random.Random(level)
    server, worker = start("server"), start("worker", str(tmp_path / "model"))
    deaths, next_death = 0, 10
    lines = []
    for line in worker.stdout:
        lines.append(line)
        if not line.strip().isdigit() or int(line) < next_death or deaths == 3:
            continue
        time.sleep(chance.random() * 0.02)
        server.send_signal(signal.SIGKILL)
        server.wait()
        server, deaths, next_death = start("server"), deaths + 1, next_death + 25
    ended = worker.wait(60)
    log.seek(0)
    assert ended == 0, "".join(lines) + log.read()
    assert deaths == 3
    assert server.wait(30) == 0, log.read()
    log.close()
    saved = (tmp_path / "model" / "w").read_bytes()
    assert numpy.frombuffer(saved[-16:], "float32").tolist() == [STEPS] * 4, lines[-3:]
