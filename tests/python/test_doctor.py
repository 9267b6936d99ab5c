"""``anabranch doctor``: what it says, and that its trials can fail."""
import os
import subprocess
import sys

import pytest

from anabranch import doctor

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def test_a_report_of_this_machine():
    env = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python"), FLAGS_no_such_flag="1", CPU_NUM="2")
    done = subprocess.run([sys.executable, "-m", "anabranch", "doctor"], env=env, capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    for word in ("processor", "instructions", "usable", "quota", "GiB", "huge pages", "numpy", "CPU_NUM=2",
                 "FLAGS_no_such_flag"):
        assert word in done.stdout
    assert done.stdout.count(" ok: ") == len(doctor.TRIALS) == 3


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


def test_trials_look_at_numbers(monkeypatch):
    monkeypatch.setattr(doctor, "_train", lambda replicas, steps: ([1.0, 1.0], 1.0))
    with pytest.raises(RuntimeError, match="loss went"):
        doctor._learns()
    runs = iter([([1.0], 1.0), ([2.0], 1.0)])
    monkeypatch.setattr(doctor, "_train", lambda replicas, steps: next(runs))
    with pytest.raises(RuntimeError, match="differ"):
        doctor._repeats()


def test_unknown_machines(monkeypatch):
    monkeypatch.setattr(doctor, "_read", lambda path: None)
    found = doctor.machine()
    assert found["processor"] == "unknown" and "limit none" in found["memory"] and "quota none" in found["cores"]
