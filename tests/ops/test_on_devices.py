"""Outputs and gradients of all cases whose operators have kernels for devices, on a device that the CPU plays."""
import os
import re
import subprocess
import sys

import forks
import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
pytestmark = pytest.mark.skipif(not forks.plugin(), reason="the simulated device was not built")


def on_a_device(*arguments):
    """The output of pytest for tests that run their programs on a device."""
    environment = dict(os.environ, ANABRANCH_TEST_PLACE="device", FLAGS_device_plugin="simdevice")
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments], cwd=HERE,
                          env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    return done.stdout


def test_every_case_gives_the_same_on_a_device():
    said = on_a_device("-p", "on_devices", "-k", "test_output or test_float32_gradient",
                       os.path.join(HERE, "test_ops.py"))
    assert int(re.search(r"(\d+) operators ran on the device", said).group(1)) >= 400
    assert "only on the CPU: none" in said, said[-2000:]


def test_half_of_the_operators_are_near_in_16_bits(monkeypatch):
    monkeypatch.setenv("ANABRANCH_HALF_CASES", "few")
    said = on_a_device(os.path.join(HERE, "half_cases.py"))
    assert int(re.search(r"(\d+) passed", said).group(1)) >= 85, said[-500:]


@pytest.mark.slow(7)
@pytest.mark.parametrize("chosen", ["bfloat16", "not bfloat16"])
def test_every_case_is_near_in_16_bits(chosen):
    said = on_a_device("-k", chosen, os.path.join(HERE, "half_cases.py"))
    assert int(re.search(r"(\d+) passed", said).group(1)) >= 620, said[-500:]
