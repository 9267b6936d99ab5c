"""Stall reports of workers with replicas name the replica and the server that it waits for."""
import re
import signal
import time

import parameter_servers
import pytest
from cluster_processes import networked
from killed_clusters import Cluster

import anabranch.fluid as fluid

WAIT = re.compile(r"#\d+ (\w+) .*  (on replica \d|for all replicas)\n"
                  r"    waits for the server at ([\w.:]+): no answer to (?:exchange|reduce) for [\d.]+ s")


def test_another_worker_that_does_not_come(capfd):
    """All replicas wait at the first server, for the number of rows of the other worker."""
    def train(trainer, run):
        for step in range(2):
            if (trainer, step) == (1, 1):
                time.sleep(3.5)
            run(parameter_servers.batch(step, (trainer * 8, trainer * 8 + 8), True))

    before = fluid.get_flags("FLAGS_stall_report_s")
    fluid.set_flags({"FLAGS_stall_report_s": 1})
    try:
        cluster = parameter_servers.Cluster(2, 2, "sgd", True, replicas=2)
        cluster.run(train)
    finally:
        fluid.set_flags(before)
    report = capfd.readouterr().err
    assert set(WAIT.findall(report)) == {("trainer_weight", "for all replicas", cluster.endpoints[0])}, report


@pytest.mark.slow(20)
@pytest.mark.skipif(not networked(), reason="built without gRPC")
@pytest.mark.parametrize("mode, expected", [
    ("sync", {("send_barrier", "for all replicas"), ("recv", "for all replicas")}),
    ("async", {("send", "on replica 0"), ("send", "on replica 1"), ("recv", "for all replicas")})])
def test_a_server_that_does_not_answer(tmp_path, monkeypatch, mode, expected):
    """In sync training all replicas wait in one exchange."""
    monkeypatch.setenv("FLAGS_stall_report_s", "1")
    cluster = Cluster(tmp_path, mode, 1, 2, 1)
    log = tmp_path / "worker0.log"
    found = {}
    try:
        for stops in range(1, 21):
            before = cluster.steps(0)
            cluster.wait(lambda more=before + 2: cluster.steps(0) > more)
            cluster.signal(("server", 0), signal.SIGSTOP)
            cluster.wait(lambda n=stops: log.read_text().count("anabranch: this step has run for") >= n, 30)
            cluster.signal(("server", 0), signal.SIGCONT)
            found = {(op, whose): endpoint for op, whose, endpoint in WAIT.findall(log.read_text())}
            if {whose for _, whose in found} >= {whose for op, whose in expected if op.startswith("send")}:
                break
        assert set(found) <= expected and set(found.values()) == {cluster.endpoints[0]}, log.read_text()
        assert {whose for _, whose in found} >= {whose for op, whose in expected if op.startswith("send")}
        cluster.end()
    finally:
        cluster.close()
