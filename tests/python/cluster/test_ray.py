"""Servers and workers as actors: how the launcher looks at them, and, where Ray is installed, a whole training."""
import importlib.util
import os
import re
import signal
import subprocess
import sys
import time

import pytest
from cluster_processes import EXAMPLE, check, check_saved, networked
from repository import ROOT

from anabranch import _ray, launch
from anabranch._processes import Process, watch
from anabranch.fluid.errors import NotOffered

ENVIRONMENT = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python"), RAY_USAGE_STATS_ENABLED="0")


class Method:
    """``remote`` gives what the call returns or raises, as a function."""

    def __init__(self, call):
        self._call = call

    def remote(self, *args):
        try:
            result = self._call(*args)
        except LocalRay.exceptions.RayError as e:
            error = e

            def answer():
                raise error
            return answer
        return lambda: result


class LocalRay:
    """Actors are objects of this process. One that is killed starts again, as often as it may."""

    class exceptions:
        class RayError(Exception):
            pass

    class Handle:
        def __init__(self, make, restarts):
            self.make, self.restarts, self.lives, self.object = make, restarts, 0, make(0)
            self.look, self.send = Method(self._look), Method(lambda number: self.object.process.send(number))

        def _look(self):
            if self.object is None:
                raise LocalRay.exceptions.RayError("the actor is dead")
            return self.object.look()

    def wait(self, asked, timeout):
        return asked, []

    def get(self, asked):
        return asked()

    def kill(self, handle, no_restart):
        handle.object.process.send(signal.SIGKILL)
        while handle.object.process.poll() is None:  # until then it is a child of the tests
            time.sleep(0.01)
        handle.lives += 1
        handle.object = None if no_restart or handle.lives > handle.restarts else handle.make(handle.lives)


class Script:
    def __init__(self, role, text, starts):
        self.starts = starts
        self.process = Process(role.name, [sys.executable, "-c", text], os.environ, role.log, role.serves,
                               starts=starts)

    def look(self):
        code = self.process.poll()
        return _ray.Seen(str(self.starts), code, self.process.pid, self.process.tail(), self.process.added())


def remote(tmp_path, text, restarts=0, kind="worker"):
    ray = LocalRay()
    role = launch.Role(kind + " 0", "127.0.0.1:1", kind == "server", 0, str(tmp_path / (kind + ".log")))
    handle = ray.Handle(lambda starts: Script(role, text, starts), restarts)
    return _ray.RemoteProcess(ray, handle, role, restarts), handle


def test_an_actor_is_watched_like_a_process(tmp_path, capsys):
    worker, _ = remote(tmp_path, "print('well')")
    server, handle = remote(tmp_path, "import time; time.sleep(600)", kind="server")
    pid = handle.object.process.pid
    assert watch([server, worker], server_grace_s=0) == 0
    told = capsys.readouterr()
    assert told.out == "well\n" and "server 0 still ran 0 s after all workers had ended" in told.err
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_script_that_fails_is_started_again_by_ray(tmp_path, capsys):
    text = """
import os, sys
print("start", os.environ["ANABRANCH_STARTS"], flush=True)
sys.exit("not yet" if os.environ["ANABRANCH_STARTS"] != "2" else 0)
"""
    worker, _ = remote(tmp_path, text, restarts=2)
    assert watch([worker]) == 0
    told = capsys.readouterr()
    assert re.findall(r"start (\d)", told.out) == ["0", "1", "2"]
    assert told.err.count("launch: worker 0 ended with 1 (not yet); it is started again\n") == 2
    assert told.err.count("launch: Ray has started worker 0 again, as process") == 2
    worker, _ = remote(tmp_path, text, restarts=1)
    assert watch([worker]) == 1
    assert "worker 0 ended with 1; the rest is ended" in capsys.readouterr().err


def test_output_written_at_once_is_shown(tmp_path, monkeypatch):
    """A script that has ended before its launcher reads the log, which is appended to."""
    log = tmp_path / "worker.log"
    log.write_text("before\n")
    begin = subprocess.Popen

    def ended(*args, **options):
        process = begin(*args, **options)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        return process

    monkeypatch.setattr(subprocess, "Popen", ended)
    worker = Process("worker 0", [sys.executable, "-c", "print('at once')"], os.environ, str(log), False, starts=1)
    assert worker.added() == "at once\n" and worker.poll() == 0


def test_an_actor_that_is_lost_is_named(tmp_path, capsys):
    worker, handle = remote(tmp_path, "import time; time.sleep(600)")
    assert worker.poll() is None
    LocalRay().kill(handle, no_restart=True)
    assert watch([worker]) == 1
    assert "launch: worker 0 was lost: the actor is dead; the rest is ended" in capsys.readouterr().err


def test_starts_are_counted_next_to_the_log(tmp_path):
    log = str(tmp_path / "workerlog.0")
    assert [_ray._count_starts(log, again) for again in (False, True, True, False, True)] == [0, 1, 2, 0, 1]


@pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="Ray is installed")
def test_without_ray_the_extra_is_named(tmp_path, capsys):
    with pytest.raises(NotOffered, match=r"pip install 'anabranch\[ray\]'"):
        _ray.start(launch.Plan([""], [""], ["x.py"], str(tmp_path)))
    assert launch.main(["--ray", __file__]) == 1
    assert "anabranch[ray]" in capsys.readouterr().err


needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None and "ANABRANCH_NEEDS_RAY" not in os.environ,
                               reason="Ray is not installed (tools/setup/ray.pip)")
needs_network = pytest.mark.skipif(not networked(), reason="built without gRPC")


def command(tmp_path, *args):
    return [sys.executable, "-m", "anabranch", "launch", "--ray", "--servers", "2", "--workers", "2", "--log-dir",
            str(tmp_path / "logs"), *args]


@pytest.mark.slow
@needs_ray
@needs_network
@pytest.mark.parametrize("strategy", ["sync", "half_async", "async", "geo"])
def test_the_example_under_ray(tmp_path, strategy):
    done = subprocess.run(command(tmp_path, EXAMPLE, "--strategy", strategy, "--save", str(tmp_path / "model")),
                          capture_output=True, text=True, env=ENVIRONMENT, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    check("".join(path.read_text() for path in sorted((tmp_path / "logs").glob("*log.*"))), 2)
    check_saved(tmp_path / "model")
    assert "worker 0 of 2" in done.stdout


def actor_of(variable):
    """Number of the process of the actor whose script has this in its environment."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/environ" % name, "rb") as file:
                if variable.encode() not in file.read().split(b"\0"):
                    continue
            with open("/proc/%s/cmdline" % name, "rb") as file:
                if b"06_parameter_servers.py" not in file.read():
                    continue
            with open("/proc/%s/stat" % name) as file:
                return int(file.read().rsplit(")", 1)[1].split()[1])
        except OSError:
            pass
    return None


@pytest.mark.slow
@pytest.mark.timeout(900)
@needs_ray
@needs_network
def test_ray_puts_a_server_and_a_worker_back(tmp_path):
    log = tmp_path / "said"
    with open(log, "w") as said:
        job = subprocess.Popen(command(tmp_path, "--restarts", "2", EXAMPLE, "--steps", "1500", "--strategy", "sync"),
                               stdout=subprocess.DEVNULL, stderr=said, env=ENVIRONMENT)

    def wait(what):
        end = time.monotonic() + 240
        while not what():
            assert time.monotonic() < end and job.poll() is None, log.read_text()
            time.sleep(0.05)

    def steps():
        path = tmp_path / "logs" / "workerlog.0"
        return path.read_text().count(": step ") if path.exists() else 0

    try:
        wait(lambda: steps() >= 2)
        endpoint = re.search(r"server 0 is an actor at \S+:(\d+)", log.read_text())[1]
        for variable, name in (("PADDLE_PORT=" + endpoint, "server 0"), ("PADDLE_TRAINER_ID=1", "worker 1")):
            before = steps()
            os.kill(actor_of(variable), signal.SIGKILL)
            wait(lambda name=name: "Ray has started %s again" % name in log.read_text())
            wait(lambda before=before: steps() >= before + 2)
        assert job.wait(240) == 0, log.read_text()
    finally:
        job.terminate()
        job.wait()
    last = (tmp_path / "logs" / "workerlog.0").read_text().splitlines()[-1]
    assert float(re.search(r"([\d.]+) at last", last)[1]) < 0.55, last
    assert not list((tmp_path / "logs").glob("state-*"))


@pytest.mark.slow
@needs_ray
def test_a_script_that_fails_under_ray_is_named(tmp_path):
    (tmp_path / "fails.py").write_text("import os, sys, time\nprint('what went wrong')\n"
                                       "time.sleep(600 if os.environ['TRAINING_ROLE'] == 'PSERVER' else 0)\n"
                                       "sys.exit(7 if os.environ.get('PADDLE_TRAINER_ID') == '1' else 0)\n")
    done = subprocess.run(command(tmp_path, str(tmp_path / "fails.py")), capture_output=True, text=True,
                          env=ENVIRONMENT, timeout=120)
    assert done.returncode == 7 and "worker 1 ended with 7; the rest is ended" in done.stderr
    assert "what went wrong" in done.stderr


@pytest.mark.slow
@needs_ray
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_all_under_ray(tmp_path, number):
    (tmp_path / "sleeps.py").write_text("import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(600)\n")
    job = subprocess.Popen(command(tmp_path, str(tmp_path / "sleeps.py")), stdout=subprocess.DEVNULL,
                           stderr=subprocess.PIPE, env=ENVIRONMENT, start_new_session=True)
    end = time.monotonic() + 90
    found = []
    while len(found) < 4:
        assert time.monotonic() < end and job.poll() is None
        found = [int(p.read_text()) for p in (tmp_path / "logs").glob("*log.*") if p.read_text().endswith("\n")]
        time.sleep(0.1)
    os.killpg(job.pid, number) if number == signal.SIGINT else job.send_signal(number)  # Ctrl-C reaches the group
    job.communicate(timeout=60)
    assert job.returncode == 128 + number
    for pid in found:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
