"""``anabranch doctor``: what it says, and that its trials can fail."""
import os
import subprocess
import sys

import pytest
from repository import ROOT

import anabranch.fluid as fluid
from anabranch import doctor
from anabranch._trials import nets, on_disk, processes, single


def test_a_report_of_this_machine():
    env = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python"), FLAGS_no_such_flag="1", CPU_NUM="2")
    done = subprocess.run([sys.executable, "-m", "anabranch", "doctor"], env=env, capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    for word in ("processor", "instructions", "usable", "quota", "GiB", "huge pages", "numpy", "CPU_NUM=2",
                 "FLAGS_no_such_flag"):
        assert word in done.stdout
    assert done.stdout.count(" ok: ") + done.stdout.count(" not tried: ") == len(doctor.TRIALS) == 9
    assert (" not tried: " in done.stdout) == ("grpc" not in doctor.plugins())


def test_the_page_says_what_each_trial_covers():
    with open(os.path.join(ROOT, "docs", "install.md")) as file:
        page = file.read()
    for name, trial in doctor.TRIALS.items():
        assert "| `%s` | %s |" % (name, trial.__doc__.partition("\n")[0]) in page


def test_without_trials(capsys):
    assert doctor.main(["--quick"]) == 0
    assert " ok: " not in capsys.readouterr().out


@pytest.mark.parametrize("trial", sorted(doctor.TRIALS))
def test_a_trial_that_fails_is_named(trial, capsys, monkeypatch):
    def fail():
        raise RuntimeError("on purpose")
    monkeypatch.setitem(doctor.TRIALS, trial, fail)
    for other in set(doctor.TRIALS) - {trial}:
        monkeypatch.setitem(doctor.TRIALS, other, lambda: "fine")
    assert doctor.main([]) == 1
    assert "FAILED: RuntimeError: on purpose" in capsys.readouterr().out


def test_a_trial_that_cannot_run_is_not_a_failure(capsys, monkeypatch):
    for name in doctor.TRIALS:
        monkeypatch.setitem(doctor.TRIALS, name, lambda: "fine")
    monkeypatch.setitem(doctor.TRIALS, "cluster", processes.cluster)
    monkeypatch.setattr(doctor, "plugins", list)
    assert doctor.main([]) == 0
    assert "not tried: the plug-in grpc is not installed" in capsys.readouterr().out


def in_sequence(*losses):
    """A net whose trainings end with these, one after another."""
    runs = iter(losses)
    return lambda *args, **named: (next(runs), 1.0)


def test_trials_look_at_numbers(monkeypatch):
    monkeypatch.setattr(single, "train", lambda *args, **named: ([1.0, 1.0], 1.0))
    with pytest.raises(RuntimeError, match="loss went"):
        single.training()
    with pytest.raises(RuntimeError, match="dense: 1 instead of .*images: 1 instead of"):
        single.known()
    for trial in (single.repetition, single.threads, single.replicas):
        monkeypatch.setattr(single, "train", in_sequence([1.0], [2.0]))
        with pytest.raises(RuntimeError, match="differ"):
            trial()
    monkeypatch.setattr(single, "train", in_sequence([1.0], [1.0], [2.0]))
    with pytest.raises(RuntimeError, match="two replicas give 1.0, one gives 2.0"):
        single.replicas()


def test_what_is_saved_is_compared(monkeypatch):
    monkeypatch.setattr(fluid.io, "load_persistables", lambda *args: None)
    with pytest.raises(RuntimeError, match="dense: saved training resumes with"):
        on_disk.files()


def test_rows_are_counted(monkeypatch):
    write = on_disk._write
    monkeypatch.setattr(on_disk, "_write", lambda folder, rows: write(folder, rows[:-1]))
    with pytest.raises(RuntimeError, match="2000 rows were written, 1999 read"):
        on_disk.data()


def test_workers_are_compared(monkeypatch):
    if "grpc" not in doctor.plugins():
        pytest.skip("the plug-in grpc is not installed")
    monkeypatch.setattr(processes, "_JOB", "/nowhere/job.py")
    with pytest.raises(RuntimeError, match="no script /nowhere"):
        processes.cluster()


def test_every_kind_has_a_recorded_loss():
    assert single.RECORDED.keys() == nets.KINDS.keys()


def test_kernels_are_compared(monkeypatch):
    matmul = fluid.layers.matmul
    monkeypatch.setattr(fluid.layers, "matmul", lambda a, b: matmul(a, b) * 1.001)
    with pytest.raises(RuntimeError, match="a product is off by"):
        single.kernels()
    monkeypatch.undo()
    conv2d = fluid.layers.conv2d
    monkeypatch.setattr(fluid.layers, "conv2d", lambda *args, **named: conv2d(*args, **named) * 1.001)
    with pytest.raises(RuntimeError, match="a convolution is off by"):
        single.kernels()


def test_unknown_machines(monkeypatch):
    monkeypatch.setattr(doctor, "_read", lambda path: None)
    found = doctor.machine()
    assert found["processor"] == "unknown" and "limit none" in found["memory"] and "quota none" in found["cores"]


#: What /proc and /sys say of a machine where everything is unusual.
POOR = {"/sys/fs/cgroup/cpu.max": "50000 100000", "/proc/loadavg": "900.5 3 2 1/2 3",
        "/sys/kernel/mm/transparent_hugepage/enabled": "always madvise [never]", "/proc/cpuinfo": "flags : sse4_2",
        "/proc/meminfo": "MemAvailable:  8000000 kB", "/sys/fs/cgroup/memory.max": str(2 << 30),
        "/sys/fs/cgroup/memory.current": str(3 << 29)}


def test_what_is_odd_is_said(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "_read", POOR.get)
    assert doctor.available_gib() == 0.5
    text = "\n".join(doctor.odd())
    for words in ("a quota of 0.5 cores", "CPU_NUM=1", "a load of 900.5", "huge pages are off", "no AVX2",
                  "less than 1 GiB of memory"):
        assert words in text
    assert doctor.main(["--quick"]) == 0
    assert capsys.readouterr().out.count("\nunusual ") == len(doctor.odd())


def test_nothing_is_odd_on_a_good_machine(monkeypatch):
    good = {**POOR, "/sys/fs/cgroup/cpu.max": "max 100000", "/proc/loadavg": "0.1 0 0 1/2 3",
            "/sys/kernel/mm/transparent_hugepage/enabled": "[always]", "/proc/cpuinfo": "flags : avx2",
            "/sys/fs/cgroup/memory.max": "max"}
    monkeypatch.setattr(doctor, "_read", good.get)
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda folder: doctor.shutil._ntuple_diskusage(1, 1, 2 << 30))
    monkeypatch.setattr(doctor._core, "environment_flag_warnings", list)
    assert doctor.odd() == []
