"""Processes of a job: their roles, their logs, and that none is left running."""
import glob
import os
import re
import signal
import socket
import subprocess
import sys
import textwrap
import time

import pytest
from repository import ROOT

from anabranch import _imports, _processes, launch
from anabranch.distributed import launch as launch_collective
from anabranch.distributed import launch_ps
from anabranch.fluid.incubate.fleet.base.role_maker import PaddleCloudRoleMaker

ROLE = """
    import os, sys
    from anabranch.fluid.incubate.fleet.base.role_maker import PaddleCloudRoleMaker
    role = PaddleCloudRoleMaker()
    role.generate_role()
    print(role.to_string(), sys.argv[1:])
"""
SLEEP = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"


def script(tmp_path, text):
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(text))
    return str(path)


def command(tmp_path, text, *args, module="anabranch.launch", logs="--log-dir"):
    return [sys.executable, "-m", module, *args, logs, str(tmp_path / "logs"), script(tmp_path, text)]


def environment():
    return dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python"))


def run(tmp_path, text, *args, **how):
    return subprocess.run(command(tmp_path, text, *args, **how), capture_output=True, text=True, env=environment(),
                          timeout=60)


def logs(tmp_path):
    return {os.path.basename(p): open(p).read() for p in glob.glob(str(tmp_path / "logs" / "*log.*"))}


def alive(pid):
    try:
        with open("/proc/%d/stat" % pid) as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def gone(pids, seconds=10):
    end = time.time() + seconds
    while time.time() < end and any(alive(pid) for pid in pids):
        time.sleep(0.05)
    return not any(alive(pid) for pid in pids)


def test_each_process_knows_its_role(tmp_path):
    done = run(tmp_path, ROLE, "--servers", "2", "--workers", "3")
    assert done.returncode == 0, done.stderr
    found = logs(tmp_path)
    assert sorted(found) == ["serverlog.0", "serverlog.1", "workerlog.0", "workerlog.1", "workerlog.2"]
    servers = set(re.findall(r"server_endpoints: (.*?) \[", "".join(found.values())))
    assert len(servers) == 1 and servers.pop().count("127.0.0.1") == 2
    for name, text in found.items():
        kind, number = name.split(".")
        assert "role: %d, current_id: %s" % (2 if kind == "serverlog" else 1, number) in text
    assert done.stdout == found["workerlog.0"]


def test_the_first_that_fails_is_named_and_the_rest_is_ended(tmp_path):
    text = """
        import os, sys, time
        print(os.getpid(), flush=True)
        if os.environ["TRAINING_ROLE"] == "TRAINER" and os.environ["PADDLE_TRAINER_ID"] == "1":
            print("no such file", file=sys.stderr)
            sys.exit(7)
        time.sleep(600)
    """
    done = run(tmp_path, text, "--servers", "1", "--workers", "2", "--quiet")
    assert done.returncode == 7
    assert "worker 1 ended with 7" in done.stderr and "no such file" in done.stderr
    assert gone([int(text.split()[0]) for text in logs(tmp_path).values() if text])


def test_a_process_that_is_killed_is_named(tmp_path):
    text = """
        import os, signal, time
        if os.environ["TRAINING_ROLE"] == "PSERVER":
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(600)
    """
    done = run(tmp_path, text, "--servers", "1", "--workers", "1")
    assert done.returncode == 128 + 9 and "server 0 was ended by SIGKILL" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_over(tmp_path, number):
    launcher = subprocess.Popen(command(tmp_path, SLEEP, "--servers", "2", "--workers", "2"), env=environment(),
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    end = time.time() + 30
    while time.time() < end and len([t for t in logs(tmp_path).values() if t.endswith("\n")]) < 4:
        time.sleep(0.05)
    pids = [int(text) for text in logs(tmp_path).values()]
    assert len(pids) == 4
    launcher.send_signal(number)
    launcher.communicate(timeout=30)
    assert launcher.returncode == (-9 if number == signal.SIGKILL else 128 + number)
    assert gone(pids)


def test_what_a_process_has_started_ends_with_it(tmp_path):
    text = """
        import os, subprocess, sys, time
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        print(child.pid, flush=True)
        sys.exit(3 if os.environ["TRAINING_ROLE"] == "TRAINER" else time.sleep(600))
    """
    done = run(tmp_path, text, "--servers", "1", "--workers", "1", "--quiet")
    assert done.returncode == 3
    assert gone([int(text) for text in logs(tmp_path).values() if text])


def test_servers_that_stay_are_ended_after_all_workers(tmp_path):
    text = "import os, time; time.sleep(600 if os.environ['TRAINING_ROLE'] == 'PSERVER' else 0)"
    done = run(tmp_path, text, "--servers", "2", "--workers", "1", "--server-grace", "0.3")
    assert done.returncode == 0 and "server 0, server 1 still ran" in done.stderr
    assert "Each worker must call fleet.stop_worker() at its end" in done.stderr


def test_a_folder_to_resume_from_is_passed_on(tmp_path):
    (tmp_path / "saved").mkdir()
    text = "import os; print(os.environ['ANABRANCH_RESUME_DIR'])"
    done = run(tmp_path, text, "--resume", str(tmp_path / "saved"))
    assert done.stdout.strip() == str(tmp_path / "saved")


def test_what_fails_is_started_again(tmp_path):
    text = """
        import os, signal, sys, time
        starts, me = int(os.environ["ANABRANCH_STARTS"]), os.environ["TRAINING_ROLE"]
        done = os.path.join(os.environ["FLAGS_ps_state_dir"], "done")
        print(me, "starts", starts, os.environ.get("FLAGS_ps_state_dir"), flush=True)
        if me == "TRAINER" and starts < 2:
            sys.exit("not yet")
        if me == "PSERVER" and starts < 1:
            os.kill(os.getpid(), signal.SIGKILL)
        if me == "TRAINER":
            open(done, "w").close()
        while not os.path.exists(done):
            time.sleep(0.02)
    """
    done = run(tmp_path, text, "--servers", "1", "--workers", "1", "--restarts", "2")
    assert done.returncode == 0, done.stderr
    assert re.search(r"launch: worker 0 ended with 1 \(not yet\); it is started again, as process \d+\n", done.stderr)
    assert re.search(r"launch: server 0 was ended by SIGKILL; it is started again, as process \d+\n", done.stderr)
    found = logs(tmp_path)
    assert re.findall(r"TRAINER starts (\d)", found["workerlog.0"]) == ["0", "1", "2"]
    assert done.stdout == found["workerlog.0"]
    folder, = set(re.findall(r"PSERVER starts \d (\S+)", found["serverlog.0"]))
    assert folder.startswith(str(tmp_path / "logs" / "state-")) and not os.path.exists(folder)
    done = run(tmp_path, text, "--servers", "1", "--workers", "1", "--restarts", "1")
    assert done.returncode == 1 and "worker 0 ended with 1; the rest is ended" in done.stderr


def test_the_state_of_a_launcher_that_was_killed_is_removed_by_the_next_one(tmp_path):
    launcher = subprocess.Popen(command(tmp_path, SLEEP, "--restarts", "1"), env=environment(), cwd=tmp_path)
    folder = tmp_path / "logs"
    end = time.monotonic() + 30
    while len([text for text in logs(tmp_path).values() if text.strip().isdigit()]) < 2 and time.monotonic() < end:
        time.sleep(0.02)
    left, = folder.glob("state-*")
    args = ("--restarts", "1")
    assert run(tmp_path, "", *args).returncode == 0 and left.exists()   # that one still runs
    launcher.kill()
    launcher.wait()
    assert run(tmp_path, "", *args).returncode == 0
    assert not list(folder.glob("state-*"))


class FailsBetweenTwoLooks:
    """Looks as if it ran, once, and has failed by the next look."""

    name, log, serves, pid = "worker 0", "workerlog.0", False, 1

    def __init__(self):
        self.codes = [None]

    def poll(self):
        return self.codes.pop() if self.codes else 3

    def start_again(self):
        return False

    def outcome(self):
        return "ended with 3"

    def tail(self, lines=1):
        return ""

    def send(self, number):
        raise AssertionError("it has ended")


def test_a_failure_at_any_moment_is_seen(capsys):
    assert _processes.watch([FailsBetweenTwoLooks()], echo=False) == 3
    assert "worker 0 ended with 3" in capsys.readouterr().err


def test_servers_keep_their_state_where_the_user_says(tmp_path):
    plan = launch.Plan(["h:1"], ["h:2"], ["x.py"], str(tmp_path), restarts=1)
    with launch.kept_state(plan) as kept:
        assert launch.environment(kept, launch.roles(kept)[0], {})["FLAGS_ps_state_dir"] == kept.state
    with launch.kept_state(plan._replace(restarts=0)) as kept:
        assert kept.state is None


def test_what_cannot_go_well_is_said_before_anything_starts(tmp_path, capsys):
    def refused(**changes):
        plan = launch.Plan(["127.0.0.1:0"], ["127.0.0.1:1"], ["x.py"], str(tmp_path / "logs"))._replace(**changes)
        with pytest.raises((ValueError, RuntimeError)) as caught:
            launch.start(plan)
        assert not glob.glob(str(tmp_path / "logs" / "*"))
        return str(caught.value)

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        one.listen()
        used = "127.0.0.1:%d" % one.getsockname()[1]
        assert "cannot listen on %s on this machine: Address already in use" % used in refused(servers=[used])
    assert "cannot listen on 192.0.2.1:1" in refused(servers=["192.0.2.1:1"])
    assert "no process belongs to this host: it is 10.9.9.9" in refused(host="10.9.9.9")
    assert "two processes have the same address: 127.0.0.1:1" in refused(servers=["127.0.0.1:1"])
    (tmp_path / "file").write_text("")
    assert "cannot be written: " in refused(logs=str(tmp_path / "file" / "logs"))
    assert launch_ps.launch(["--cluster_node_ips", "a,b", "--node_ip", "c", "--start_port", "6170", "x.py"]) == 1
    assert "no process belongs to this host: it is c" in capsys.readouterr().err


@pytest.mark.parametrize("args, word", [
    (["--workers", "0", "x.py"], "at least 1"), (["--servers", "two", "x.py"], "at least 0"),
    (["nowhere.py"], "there is no script nowhere.py"), (["--resume", "/nowhere", __file__], "no folder /nowhere")])
def test_bad_arguments_are_named(args, word, capsys):
    with pytest.raises(SystemExit):
        launch.main(args)
    assert word in capsys.readouterr().err


def test_fluids_command_takes_fluids_arguments(tmp_path):
    done = run(tmp_path, ROLE, "--worker_num", "2", "--server_num", "1", module="anabranch.distributed.launch_ps",
               logs="--log_dir")
    assert done.returncode == 0 and sorted(logs(tmp_path)) == ["serverlog.0", "workerlog.0", "workerlog.1"]


OLD = ROLE.replace("anabranch.fluid", "paddle.fluid")


@pytest.mark.parametrize("text, other_module", [(OLD, ""), ("import other_module", OLD)])
def test_a_script_that_imports_paddle_runs_as_it_is(tmp_path, text, other_module):
    (tmp_path / "other_module.py").write_text(textwrap.dedent(other_module))
    done = run(tmp_path, text, "--servers", "1", "--workers", "1")
    assert done.returncode == 0 and "role: 1, current_id: 0" in done.stdout, done.stderr


@pytest.mark.parametrize("module, counts", [
    ("paddle.distributed.launch_ps", ["--worker_num", "1", "--server_num", "1"]),
    ("paddle.distributed.launch", ["--nproc_per_node", "1"])])
def test_fluids_command_starts_under_its_own_name(tmp_path, module, counts):
    text = OLD if module.endswith("_ps") else "import paddle.fluid; print('role: 1, current_id: 0')"
    how = [sys.executable, "-m", "anabranch", "run", "-m", module, *counts, "--log_dir", str(tmp_path / "logs")]
    done = subprocess.run([*how, script(tmp_path, text)], capture_output=True, text=True, env=environment(), timeout=60)
    assert done.returncode == 0 and "role: 1, current_id: 0" in logs(tmp_path)["workerlog.0"], done.stderr


@pytest.mark.parametrize("text, needs", [
    ("import paddle", True), ("from paddle import fluid", True), ("def f():\n    import paddle.fluid as fluid", True),
    ("import paddle_tools, anabranch.fluid", False), ("from . import paddle", False), ("print 1", False),
    ("from package import part", True), ("import package.other", False)])
def test_uses_of_paddle(tmp_path, text, needs):
    (tmp_path / "package").mkdir()
    for name, content in (("__init__", ""), ("part", "import package.other, package.part\nimport paddle.fluid"),
                          ("other", "import os")):
        (tmp_path / "package" / (name + ".py")).write_text(content)
    assert _imports.needs_fluid(script(tmp_path, text)) == needs
    assert not _imports.needs_fluid(str(tmp_path / "absent.py"))


def test_processes_of_several_hosts():
    args = launch_ps.parse_args(["--cluster_node_ips", "a,b", "--node_ip", "b", "--start_port", "6170",
                                 "--server_num", "2", "--worker_num", "3", "x.py"])
    plan = launch_ps.plan_of(args)
    assert plan.servers == ["a:6170", "b:6170"] and plan.workers == ["a:6171", "b:6171", "a:6172"]
    assert [launch._of(plan, e) for e in plan.workers] == [False, True, False]
    args = launch_collective.parse_args(["--cluster_node_ips", "a,b", "--node_ip", "a", "--started_port", "6170",
                                         "--selected_gpus", "0,1", "x.py"])
    assert launch_collective.plan_of(args).workers == ["a:6170", "a:6171", "b:6170", "b:6171"]


def test_workers_alone(tmp_path):
    text = """
        from anabranch.fluid.incubate.fleet.base.role_maker import PaddleCloudRoleMaker
        role = PaddleCloudRoleMaker(is_collective=True)
        print(role.worker_index(), role.worker_num(), len(role.get_trainer_endpoints()))
    """
    done = run(tmp_path, text, "--nproc_per_node", "2", module="anabranch.distributed.launch", logs="--log_dir")
    assert done.returncode == 0, done.stderr
    assert logs(tmp_path) == {"workerlog.0": "0 2 2\n", "workerlog.1": "1 2 2\n"}


def test_the_environment_of_the_launcher_is_not_taken_for_a_role():
    plan = launch.Plan([], ["127.0.0.1:1"], ["x.py"], "logs")
    base = {"PADDLE_PSERVERS_IP_PORT_LIST": "a:1", "TRAINING_ROLE": "PSERVER", "http_proxy": "http://p", "KEPT": "1"}
    env = launch.environment(plan, launch.roles(plan)[0], base)
    assert "PADDLE_PSERVERS_IP_PORT_LIST" not in env and env["TRAINING_ROLE"] == "TRAINER" and env["KEPT"] == "1"
    assert env["no_proxy"] == env["NO_PROXY"] == "127.0.0.1"


def test_the_command_names_what_there_is(capsys):
    from anabranch.__main__ import main
    assert main([]) == 2 and "launch" in capsys.readouterr().err
    assert main(["launch", "--print-kubernetes", "--servers", "1", "--workers", "2", "train.py"]) == 0
    told = capsys.readouterr()
    assert "kind: JobSet" in told.out and 'value: "$(INDEX)"' in told.out and "\t" not in told.out
    assert "these servers will refuse to listen: set FLAGS_rpc_certificates" in told.err


def test_kubernetes_gets_flags_and_restarts(capsys, monkeypatch):
    monkeypatch.setenv("FLAGS_rpc_insecure", "1")
    call = ["--print-kubernetes", "--servers", "2", "--workers", "3", "--restarts", "2", "--name", "ctr", "train.py"]
    assert launch.main(call) == 0
    told = capsys.readouterr()
    assert told.err == ""
    server, worker = told.out.split("\n  - name: worker\n")
    assert "restartPolicy: OnFailure" in server and "backoffLimit: 4" in server and "backoffLimit: 6" in worker
    assert "mountPath: /anabranch-state" in server and "emptyDir" in server and "emptyDir" not in worker
    for name, value in (("FLAGS_rpc_insecure", "1"), ("FLAGS_ps_state_dir", "/anabranch-state"),
                        ("POD_IP", "ctr-server-0-$(INDEX).ctr")):
        assert '- name: %s\n                value: "%s"\n' % (name, value) in server + "\n"
    assert launch.main([*call[:-2], "Not_A_Host", "train.py"]) == 1
    assert "--name must be a host name" in capsys.readouterr().err


ALONE = """
    import numpy
    import anabranch.fluid as fluid
    loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4]), 1))
    fluid.optimizer.SGD(0.1).minimize(loss)
    executor = fluid.Executor(fluid.CPUPlace())
    executor.run(fluid.default_startup_program())
    executor.run(feed={"x": numpy.ones((2, 4), "float32")})
    print("done")
"""
NEVER = "script.py never called fleet.init: the processes did not work together"


def test_a_script_that_never_asks_for_its_role_is_told(tmp_path):
    done = run(tmp_path, ALONE, "--servers", "1", "--workers", "2")
    assert done.returncode == 0 and (done.stdout + done.stderr).count(NEVER) == 1, done.stdout + done.stderr
    assert sum(NEVER in text for text in logs(tmp_path).values()) == 1
    done = run(tmp_path, ALONE, "--nproc", "1")
    assert NEVER not in done.stdout + done.stderr
    done = run(tmp_path, ROLE, "--servers", "1", "--workers", "2")
    assert NEVER not in done.stdout + done.stderr


def test_numbers_after_the_script_are_its_arguments(tmp_path):
    late = command(tmp_path, ROLE) + ["--servers", "1", "--workers=2"]
    done = subprocess.run(late, capture_output=True, text=True, env=environment(), timeout=60)
    assert "--servers and --workers=2 after" in done.stderr
    assert "Options of the launcher precede the script" in done.stderr
    late = command(tmp_path, ROLE, "--workers", "2") + ["--workers", "4"]
    done = subprocess.run(late, capture_output=True, text=True, env=environment(), timeout=60)
    assert "precede" not in done.stderr


STARTS = [({}, False, "PADDLE_TRAINERS_NUM is not set: start the script with anabranch launch --servers 1 --workers 2"),
          ({"PADDLE_TRAINERS_NUM": "2", "PADDLE_TRAINER_ENDPOINTS": "h:1,h:2"}, False,
           "started without servers, which this role needs. Start the script with anabranch launch --servers 1"),
          ({"PADDLE_TRAINER_ENDPOINTS": "h:1,h:2", "TRAINING_ROLE": "PSERVER"}, True,
           "started as a server, but this role is of workers alone. Start the script with anabranch launch --nproc 2")]


@pytest.mark.parametrize("variables, collective, message", STARTS)
def test_a_script_that_is_started_in_another_way_is_told(monkeypatch, variables, collective, message):
    for name in [name for name in os.environ if name.startswith(("PADDLE_", "TRAINING_"))]:
        monkeypatch.delenv(name)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=message):
        PaddleCloudRoleMaker(is_collective=collective).generate_role()
