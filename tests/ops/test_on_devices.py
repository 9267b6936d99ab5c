"""Outputs and gradients of all cases whose operators have kernels for devices, on a device that the CPU plays."""
import os
import re
import subprocess
import sys

import forks
import pytest

HERE = os.path.dirname(os.path.abspath(__file__))


@pytest.mark.skipif(not forks.plugin(), reason="the simulated device was not built")
def test_every_case_gives_the_same_on_a_device():
    environment = dict(os.environ, ANABRANCH_TEST_PLACE="device", FLAGS_device_plugin="simdevice")
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "on_devices", "-p", "no:cacheprovider", "-k",
                           "test_output or test_float32_gradient", os.path.join(HERE, "test_ops.py")], cwd=HERE,
                          env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert int(re.search(r"(\d+) operators ran on the device", done.stdout).group(1)) > 40
    assert "only on the CPU: none" in done.stdout, done.stdout[-2000:]
