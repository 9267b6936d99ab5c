"""The example with parameter servers, as threads of one process and as processes that talk over the network."""
import importlib.util
import os
import re
import subprocess
import sys

import pytest
from cluster_processes import EXAMPLE, TOLD, check, check_saved, networked
from repository import ROOT


def run(strategy, folder, *command, **variables):
    environment = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python"), **variables)
    return subprocess.run([sys.executable, *command, EXAMPLE, "--strategy", strategy, "--save", str(folder)],
                          capture_output=True, text=True, env=environment, timeout=120)


@pytest.mark.parametrize("strategy", ["sync", "half_async", "async", "geo"])
def test_in_one_process(tmp_path, strategy):
    done = run(strategy, tmp_path / "model")
    assert done.returncode == 0, done.stderr
    check(done.stdout, 1)
    check_saved(tmp_path / "model")


@pytest.mark.skipif(not networked(), reason="built without gRPC")
@pytest.mark.parametrize("strategy", ["sync", "half_async", "async", "geo"])
def test_as_processes(tmp_path, strategy):
    logs = tmp_path / "logs"
    done = run(strategy, tmp_path / "model", "-m", "anabranch.launch", "--servers", "2", "--workers", "2", "--log-dir",
               str(logs))
    assert done.returncode == 0, done.stdout + done.stderr
    check("".join(path.read_text() for path in sorted(logs.iterdir())), 2)
    check_saved(tmp_path / "model")


SCHEDULERS = {
    "slurm": lambda rank: {"SLURM_PROCID": rank, "SLURM_NTASKS": "4", "SLURM_JOB_ID": str(os.getpid()),
                           "SLURM_JOB_NODELIST": "localhost"},
    "openmpi": lambda rank: {"OMPI_COMM_WORLD_RANK": rank, "OMPI_COMM_WORLD_SIZE": "4",
                             "OMPI_COMM_WORLD_LOCAL_SIZE": "4", "OMPI_MCA_ess_base_jobid": str(os.getpid())},
    "hosts": lambda rank: {
        "TRAINING_ROLE": "TRAINER" if rank in "13" else "PSERVER", "PADDLE_TRAINER_ID": str(int(rank) // 2),
        "POD_IP": "127.0.0.1", "PADDLE_PORT": str(17000 + os.getpid() % 2000 * 2 + int(rank) // 2),
        "PADDLE_TRAINERS_NUM": "2", "PADDLE_PSERVERS_IP_PORT_LIST": ",".join(
            "127.0.0.1:%d" % (17000 + os.getpid() % 2000 * 2 + server) for server in (0, 1))},
}


@pytest.mark.skipif(not networked(), reason="built without gRPC")
@pytest.mark.parametrize("scheduler", sorted(SCHEDULERS))
def test_started_by_others(tmp_path, scheduler):
    """Each process of the example gets what Slurm, mpirun or a user on a host of theirs tells it."""
    base = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python"))
    started = [subprocess.Popen([sys.executable, EXAMPLE, "--strategy", "async", "--steps", "60"], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                env={**base, **SCHEDULERS[scheduler](str(rank))}) for rank in (3, 0, 1, 2)]
    try:
        texts = [process.communicate(timeout=120)[0] for process in started]
    finally:
        for process in started:
            process.kill()
    assert [process.returncode for process in started] == [0, 0, 0, 0], texts
    assert sorted(rank for rank, *_ in TOLD.findall("".join(texts))) == ["0", "1"]


@pytest.mark.skipif(not networked(), reason="built without gRPC")
def test_a_proxy_is_passed_by(tmp_path):
    """No proxy listens at that address; the launcher lists the hosts that need none, and gRPC asks for none."""
    proxy = dict.fromkeys(("http_proxy", "https_proxy", "grpc_proxy", "HTTP_PROXY"), "http://127.0.0.1:9")
    done = run("sync", tmp_path / "model", "-m", "anabranch.launch", "--log-dir", str(tmp_path / "logs"), **proxy)
    assert done.returncode == 0, done.stdout + done.stderr
    check(done.stdout, 1)


@pytest.mark.skipif(not networked(), reason="built without gRPC")
def test_the_demo_kills_and_goes_on(tmp_path):
    environment = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python"))
    demo = os.path.join(ROOT, "examples", "demo_ps.py")
    done = subprocess.run([sys.executable, demo, "--fast", "--strategy", "sync", "--out", str(tmp_path)],
                          capture_output=True, text=True, env=environment, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"worker 1 was killed at step \d+\nserver 0 was killed at step \d+\n", done.stdout)
    assert re.search(r"updates that server 0 read from its journal: \d+, lost: 0\n", done.stdout)
    reached, perfect = map(float, re.search(r"AUC at the end: ([\d.]+), of a perfect model: ([\d.]+)",
                                            done.stdout).groups())
    assert 0.7 < reached < perfect + 0.02
    assert {"table", "fc_0.w_0"} <= set(os.listdir(tmp_path / "model"))
    if importlib.util.find_spec("matplotlib"):
        assert (tmp_path / "ps.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
