"""tools/gpu_check.sh and benchmarks/gpu on a device that the CPU plays: that they run, and that they can fail."""
import argparse
import importlib.util
import json
import os
import subprocess
import sys

import pytest
from repository import ROOT

RUN = os.path.join(ROOT, "benchmarks", "gpu", "run.py")
SCRIPT = os.path.join(ROOT, "tools", "gpu_check.sh")
PLUGIN = os.path.join(ROOT, "build", "release", "python", "anabranch_simdevice.so")
played = pytest.mark.skipif(not os.path.exists(PLUGIN), reason="the simulated device was not built")


def check(tmp_path, *stages, **changed):
    environment = dict(os.environ, PYTHON=sys.executable, GPU_CHECK_OUT=str(tmp_path), **changed)
    return subprocess.run([SCRIPT, *stages], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)


@played
@pytest.mark.slow(20)
@pytest.mark.share(2)
def test_every_stage_but_the_speed_in_small(tmp_path):
    done = check(tmp_path, "--dry", "info", "ops", "nets", "scenarios", "sanitizer")
    assert done.returncode == 0, done.stdout[-3000:]
    assert "5 stages, failed: none" in done.stdout
    for part in ("NaNs: [[1.0, 1.0], [0.0, 0.0], [nan, nan]]", "conv_net: 3 steps, equal bits", "MB of the process",
                 "7 of 7 passed", "in_flight: passed"):
        assert part in done.stdout, part
    assert "passed" in (tmp_path / "sanitizer.log").read_text()


@played
@pytest.mark.slow
@pytest.mark.share(2, 1)
def test_rows_in_small(tmp_path):
    out = tmp_path / "rows.jsonl"
    environment = dict(os.environ, FLAGS_device_plugin="simdevice", PYTHONPATH=os.path.join(ROOT, "python"))
    subprocess.run([sys.executable, RUN, "--tiny", "--float32", "--sides", "fluid", "--windows", "2", "--seconds",
                    "0.05", "--rows", "G2", "G3a", "G3b", "--out", str(out)], env=environment, check=True)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["row"] for row in rows] == ["G2", "G3a", "G3b"]
    for row in rows:
        assert row["sides"]["fluid"]["median"] > 0 and row["tiny"] and row["ratio"] is None
        assert len(row["sides"]["fluid"]["curve"]) == 20 and row["learns"] is None


@played
@pytest.mark.slow
def test_a_loader_feeds_the_same_batches(tmp_path):
    environment = dict(os.environ, FLAGS_device_plugin="simdevice", PYTHONPATH=os.path.join(ROOT, "python"))
    out = tmp_path / "rows.jsonl"
    subprocess.run([sys.executable, RUN, "--tiny", "--float32", "--sides", "fluid", "--windows", "1", "--seconds",
                    "0.05", "--rows", "G1", "G1d", "--curve", "3", "--out", str(out)], env=environment, check=True)
    pinned, loaded = [json.loads(line)["sides"]["fluid"]["curve"] for line in out.read_text().splitlines()]
    assert len(set(pinned)) == 3 and pinned == loaded


def test_a_side_that_learns_less_is_seen(monkeypatch):
    monkeypatch.syspath_prepend(os.path.dirname(RUN))
    spec = importlib.util.spec_from_file_location("gpu_run", RUN)
    run = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(run)

    def side(*curve):
        return argparse.Namespace(curve=list(curve))
    falls, stays = side(7.0, 3.0, 1.0, 0.02), side(7.5, 4.0, 3.0, 2.03)
    assert run.learns([falls, stays]) and run.learns([falls, falls]) and not run.learns([stays, falls])
    assert run.learns([falls]) is None and run.learns([falls, side()]) is None


@played
@pytest.mark.slow
def test_a_stage_that_fails_fails_the_script(tmp_path):
    done = check(tmp_path, "--dry", "info", FLAGS_simdevice_devices="0")
    assert done.returncode == 1 and "1 stages, failed: info" in done.stdout, done.stdout


def test_an_unknown_stage_gets_the_help(tmp_path):
    done = check(tmp_path, "everything")
    assert done.returncode == 2 and "tools/gpu_check.sh [--dry]" in done.stdout


def test_a_side_that_cannot_run_says_why(tmp_path):
    done = subprocess.run([sys.executable, RUN, "--tiny", "--sides", "jax", "--rows", "G1"], stdout=subprocess.PIPE,
                          text=True)
    assert done.returncode == 1
    side = json.loads(done.stdout)["sides"]["jax"]
    assert "No module named 'jax'" in side["why"] or "G1" in side["why"], side
