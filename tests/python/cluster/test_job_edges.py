"""The edges of a job: roles that are missing, over, refused or of another job; workers and servers that come back."""
import signal
import socket
import subprocess
import sys
import time

import pytest
from cluster_processes import networked
from edge_jobs import Job

pytestmark = pytest.mark.skipif(not networked(), reason="built without gRPC")

STRATEGIES = ("sync", "half_async", "async", "geo")


@pytest.fixture
def jobs(tmp_path):
    made = []

    def make(name="job", **settings):
        made.append(Job(tmp_path / name, **settings))
        return made[-1]
    yield make
    for job in made:
        job.end()


def failed(job, number=0, seconds=60):
    """The output of a worker that ends with an error."""
    code = job.processes["worker", number].wait(seconds)
    assert code != 0, job.text("worker", number)
    return job.text("worker", number)


# ---- deadlines

def test_a_worker_without_servers_ends_in_each_strategy(jobs):
    begun = {}
    for strategy in STRATEGIES:
        one = jobs(strategy, deadline_ms=3000, JOB_STRATEGY=strategy)
        one.start("worker")
        begun[strategy] = one
    at = time.monotonic()
    for one in begun.values():
        assert "no server listens at %s after 3 s" % one.endpoint in failed(one)
    assert time.monotonic() - at < 30


def test_a_server_that_stops_to_answer_is_named_in_each_strategy(jobs):
    running = [jobs(strategy, deadline_ms=4000, JOB_STRATEGY=strategy, JOB_STEPS="1000000")
               for strategy in STRATEGIES]
    for one in running:
        one.start("server")
        one.start("worker")
    for one in running:
        one.wait_for("step 9 ", "worker")
        one.processes["server", 0].send_signal(signal.SIGSTOP)
    for one in running:
        said = failed(one)
        assert "the server at %s has not answered a request (" % one.endpoint in said, said


def test_a_missing_worker_is_named_before_the_deadline(jobs):
    one = jobs(workers=2, deadline_ms=5000, JOB_STRATEGY="sync", JOB_STEPS="1000000")
    one.start("server")
    one.start("worker", 0)
    one.start("worker", 1)
    one.wait_for("step 9 ", "worker")
    one.processes["worker", 1].kill()
    said = failed(one)
    assert "has waited 4 s for trainer 1 (last heard" in said, said


# ---- workers of another job

@pytest.mark.parametrize("setting, value, said", [
    ("PADDLE_TRAINERS_NUM", "4", "workers is 4, not 2"),
    ("JOB_RULE", "adagrad", "dense is float32 [3] in shards of 3 rows, adagrad("),
    ("JOB_ROWS", "12", "table is float32 [12, 3] in shards of 12 rows"),
    ("JOB_STRATEGY", "half_async", "strategy is half-async, not sync")])
def test_a_worker_of_another_job_is_refused_on_both_sides(jobs, setting, value, said):
    one = jobs(workers=2, JOB_STRATEGY="sync")
    one.start("server")
    one.start("worker", 1, **{setting: value})
    begun = time.monotonic()
    for text in (failed(one, 1), one.text("server")):
        assert "trainer 1 does not fit the server at %s: " % one.endpoint in text, text
        assert said in text, text
    assert time.monotonic() - begun < 30


# ---- descriptors

@pytest.mark.parametrize("takes_s,connections", [("2", 5), ("0", 120)], ids=["none left", "one peer takes many"])
def test_a_server_without_descriptors_refuses_at_once_and_recovers(jobs, takes_s, connections):
    one = jobs(JOB_STEPS="3")
    one.start("server", JOB_FILES="64", JOB_TAKES_FILES_S=takes_s)
    one.wait_for("all taken" if takes_s == "2" else "given back", "server")
    host, _, port = one.endpoint.rpartition(":")
    open_ones = [socket.create_connection((host, int(port)), timeout=10) for _ in range(connections)]
    refused = [client.recv(1) == b"" for client in open_ones[-5:]]  # a client that waits in a queue would time out
    # The server may still have the descriptor of the connection by which the script found it listening.
    assert sum(refused) >= 4 and one.text("server").count(" refuses connections: ") == 1, one.text("server")
    for client in open_ones:
        client.close()
    one.wait_for("given back", "server")
    begun = time.monotonic()
    one.start("worker")
    assert one.processes["worker", 0].wait(60) == 0, one.text("worker")
    one.wait_for("over", "server")
    assert len(one.losses()) == 3 and time.monotonic() - begun < 20


# ---- GEO starts with the values of the servers

def test_a_geo_worker_that_comes_back_starts_with_trained_rows(jobs):
    one = jobs(JOB_STRATEGY="geo", JOB_STEPS="1000000", JOB_PAUSE="0.05")
    one.start("server")
    one.start("worker")
    one.wait_for("step 29 ", "worker")
    one.processes["worker", 0].kill()
    one.processes["worker", 0].wait()
    before = len(one.losses())
    one.start("worker", JOB_STEPS="3")
    assert one.processes["worker", 0].wait(60) == 0, one.text("worker")
    # A step adds 3 to the sum of the parameters, and every fifth another 3 to that of its row. The last exchanges may
    # be missing; without the row a fifth would be.
    assert one.losses()[before] <= 0.9 * one.losses()[before - 5], one.losses()


@pytest.mark.parametrize("strategy", ["geo", "async"])
def test_a_resumed_job_starts_with_the_saved_rows(jobs, tmp_path, strategy):
    folder = str(tmp_path / "saved")
    first = jobs("first", JOB_STRATEGY="async", JOB_SAVE=folder)
    first.start("server")
    first.start("worker")
    assert first.processes["worker", 0].wait(60) == 0, first.text("worker")
    resumed = jobs("resumed", JOB_STRATEGY=strategy, JOB_FROM=folder, JOB_STEPS="1")
    resumed.start("server")
    resumed.start("worker")
    assert resumed.processes["worker", 0].wait(60) == 0, resumed.text("worker")
    # 6 steps have added 1 to each of the 3 elements of dense, 2 of them to row 0
    assert resumed.losses() == [-(6 * 3 + 2 * 3)], resumed.text("worker")


# ---- ages

def test_the_ages_of_growable_rows_survive_a_restart(jobs, tmp_path):
    saved = []
    for kills in (False, True):
        folder = tmp_path / ("saved_%d" % kills)
        one = jobs("grows_%d" % kills, JOB_STRATEGY="sync", JOB_GROWS="1", JOB_STEPS="40", JOB_SAVE=str(folder),
                   FLAGS_ps_snapshot_every="7", FLAGS_ps_state_dir=str(tmp_path / ("state_%d" % kills)))
        one.start("server")
        one.start("worker")
        if kills:
            one.wait_for("step 20 ", "worker")
            one.processes["server", 0].kill()
            one.processes["server", 0].wait()
            one.start("server")
        assert one.processes["worker", 0].wait(60) == 0, one.text("worker") + one.text("server")
        saved.append((folder / "table").read_bytes())
    assert saved[0] == saved[1]


# ---- launch

def launched(job, *args, seconds=60, **settings):
    return subprocess.run([sys.executable, "-m", "anabranch", "launch", *args, job.script], cwd=job.folder,
                          env={**job.environment, **settings}, capture_output=True, text=True, timeout=seconds)


def test_the_state_of_a_job_that_is_over_is_refused(jobs, tmp_path):
    one = jobs(FLAGS_ps_state_dir=str(tmp_path / "state"))
    assert launched(one).returncode == 0
    again = launched(one)
    assert again.returncode != 0
    assert "launch: server 0 ended with 1" in again.stderr, again.stderr
    assert "is of a job that is over: remove the folder, or choose another one" in again.stderr, again.stderr


def test_a_worker_does_not_wait_for_servers_that_are_over(jobs):
    one = jobs(deadline_ms=5000, JOB_FAILS_LATE="1")
    done = launched(one, "--restarts", "3")
    assert done.returncode == 1
    assert "worker 0 ended with 1 after server 0 had ended, without which it cannot start again" in done.stderr, \
        done.stderr
