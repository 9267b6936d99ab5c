"""Servers of sync workers with two replicas are killed with SIGKILL: losses have the bits of a run without kills."""
import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest
import replica_worker
from cluster_processes import free_port, networked
from repository import ROOT

STEPS = 60


def trained(folder, kills):
    """Losses of both workers; both servers are killed in turn."""
    endpoints = sorted({free_port() for _ in range(8)})[:2]
    environment = dict(
        os.environ, CPU_NUM="2", PYTHONPATH=os.path.join(ROOT, "python"), PADDLE_TRAINERS_NUM="2",
        PADDLE_PSERVERS_IP_PORT_LIST=",".join(endpoints), FLAGS_ps_state_dir=str(folder), FLAGS_ps_durability="1",
        FLAGS_ps_snapshot_every="7", FLAGS_rpc_deadline="60000")
    command = [sys.executable, replica_worker.__file__, "--progress", "--steps", str(STEPS)]

    def server(endpoint):
        host, port = endpoint.split(":")
        return subprocess.Popen(command, env=dict(environment, TRAINING_ROLE="PSERVER", POD_IP=host, PADDLE_PORT=port))

    servers = [server(endpoint) for endpoint in endpoints]
    workers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(
        environment, TRAINING_ROLE="TRAINER", PADDLE_TRAINER_ID=str(i))) for i in range(2)]
    chance, lines, killed = random.Random(kills), [], 0
    try:
        for line in workers[0].stdout:
            lines.append(line)
            if killed < kills and len(lines) > (killed + 1) * (STEPS - 10) // (kills + 1):
                time.sleep(chance.random() * 0.02)
                victim = killed % 2
                servers[victim].send_signal(signal.SIGKILL)
                servers[victim].wait()
                servers[victim] = server(endpoints[victim])
                killed += 1
        assert [process.wait(60) for process in workers + servers] == [0] * 4
    finally:
        for process in workers + servers:
            process.kill()
    assert killed == kills
    return [json.loads(text.splitlines()[-1])["losses"] for text in ("".join(lines), workers[1].stdout.read())]


@pytest.mark.slow(20)
@pytest.mark.timeout(300)
@pytest.mark.skipif(not networked(), reason="built without gRPC")
def test_losses_have_the_bits_of_a_run_without_kills(tmp_path):
    expected = trained(tmp_path / "whole", 0)
    assert len(expected[0]) == len(expected[1]) == STEPS
    assert trained(tmp_path / "killed", int(os.environ.get("ANABRANCH_KILLS", "24")) // 6) == expected
