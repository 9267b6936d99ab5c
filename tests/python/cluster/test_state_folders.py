"""A folder of state belongs to one server at a time, and to one job."""
import os
import signal
import socket
import subprocess
import sys

import pytest
from cluster_processes import SCRIPT, free_port, networked
from repository import ROOT

pytestmark = pytest.mark.skipif(not networked(), reason="built without gRPC")


class Job:
    """A server and its worker, as processes."""

    def __init__(self, folder, **flags):
        self.folder, self.endpoint, self.started = folder, free_port(), []
        (folder / "script.py").write_text(SCRIPT)
        self.environment = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python"),
                                FLAGS_ps_state_dir=str(folder / "state"), FLAGS_rpc_deadline="60000", **flags)

    def start(self, role, steps=20, endpoint=None):
        self.started.append(subprocess.Popen(
            [sys.executable, str(self.folder / "script.py"), role + "_async", endpoint or self.endpoint, str(steps),
             str(self.folder / "model")], env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True))
        return self.started[-1]

    def end(self):
        for process in self.started:
            process.kill()
            process.wait()


@pytest.fixture
def job(tmp_path):
    made = Job(tmp_path)
    yield made
    made.end()


def listing(folder):
    return {os.path.join(root, name): os.stat(os.path.join(root, name)).st_mtime_ns
            for root, _, names in os.walk(folder) for name in names}


def test_a_server_whose_port_is_taken_writes_nothing(job):
    with socket.socket() as taken:
        host, _, port = job.endpoint.rpartition(":")
        taken.bind((host, int(port)))
        taken.listen()
        said, _ = job.start("server").communicate(timeout=60)
    assert "cannot listen on" in said and "in use" in said, said
    assert listing(job.folder / "state") == {}


def test_a_second_server_does_not_touch_the_files_of_the_first(job):
    job.start("server")
    worker = job.start("worker", 10**6)
    for _ in range(30):
        worker.stdout.readline()
    for process in job.started:         # only the other two could write
        process.send_signal(signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)       # all its threads have stopped
    files = listing(job.folder / "state")
    assert files
    second, _ = job.start("server").communicate(timeout=60)
    assert "in use" in second, second
    elsewhere, _ = job.start("server", endpoint=free_port()).communicate(timeout=60)
    assert "is in use by the server at %s (process %d on" % (job.endpoint, job.started[0].pid) in elsewhere, elsewhere
    assert listing(job.folder / "state") == files
    for process in job.started[:2]:
        process.send_signal(signal.SIGCONT)
    assert worker.stdout.readline()     # and it goes on
    assert worker.poll() is None
