"""tools/wheels: which wheel serves which CPython, and what a wheel is tried with."""
import importlib.util
import os
import subprocess
import sys

import pytest
from repository import ROOT

TOOLS = os.path.join(ROOT, "tools", "wheels")


def loaded(name):
    spec = importlib.util.spec_from_file_location("wheels_" + name.strip("_"), os.path.join(TOOLS, name + ".py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("version, tag", [((3, 9), "cp39-cp39"), ((3, 11), "cp311-cp311"), ((3, 12), "cp312-abi3"),
                                          ((3, 14), "cp312-abi3")])
def test_one_wheel_serves_all_from_3_12_on(version, tag):
    assert loaded("__main__").tag_of(version) == tag


def test_only_interpreters_that_can_build(tmp_path):
    wheels = loaded("__main__")
    fake = tmp_path / "python3"
    fake.write_text("#!/bin/sh\nexit 1\n")
    fake.chmod(0o755)
    for path in (str(fake), str(tmp_path / "none")):
        assert wheels.version_of(path) is None
        with pytest.raises(SystemExit, match="is not a CPython"):
            wheels.interpreters([path])


def test_a_wheel_that_is_missing_is_named(tmp_path, monkeypatch):
    wheels = loaded("__main__")
    monkeypatch.setattr(wheels, "DIST", str(tmp_path))
    with pytest.raises(SystemExit, match="no wheel cp39-cp39"):
        wheels.wheel_of((3, 9))


def test_a_row_of_the_table(tmp_path, capsys):
    wheels = loaded("__main__")
    wheel = tmp_path / "anabranch-0.2.0-cp312-abi3-manylinux_2_35_x86_64.whl"
    wheel.write_bytes(bytes(1500000))
    done = subprocess.CompletedProcess([], 0, "plugins: RuntimeError: why\n200 | 2 of 3\n")
    expected = "| 3.13 | `cp312-abi3` | 1.5 | 2.35 | 200 | 2 of 3 |"
    assert wheels.row("3.13", (3, 13), str(wheel), done) == (expected, True)
    assert capsys.readouterr().err == "plugins: RuntimeError: why\n"
    assert not wheels.row("3.13", (3, 13), str(wheel), subprocess.CompletedProcess([], 1, ""))[1]


def test_the_trials_pass_here_and_can_fail(tmp_path, monkeypatch):
    trial = loaded("trial")
    trial.train_save_load(str(tmp_path))
    monkeypatch.setattr(trial.subprocess, "check_output", lambda command: b"doctor: FAILED")
    with pytest.raises(AssertionError):
        trial.command_line(str(tmp_path))
    assert sys.executable and len(set(trial.free_ports(2))) == 2
