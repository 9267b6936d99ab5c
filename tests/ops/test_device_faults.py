"""A device refuses the values that the CPU refuses, with the same kind of error at the same line."""
import os
import subprocess
import sys

import pytest
from device_faults import FAULTS

HERE = os.path.dirname(os.path.abspath(__file__))
PLUGIN = os.path.join(HERE, "..", "..", "build", "release", "python", "anabranch_simdevice.so")


@pytest.mark.skipif(not os.path.exists(PLUGIN), reason="the simulated device was not built")
def test_values_that_the_cpu_refuses_are_refused_on_devices():
    environment = dict(os.environ, FLAGS_device_plugin="simdevice",
                       PYTHONPATH=os.pathsep.join(p for p in sys.path if p))
    done = subprocess.run([sys.executable, os.path.join(HERE, "device_faults.py")], capture_output=True, text=True,
                          env=environment, timeout=300)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert "WRONG" not in done.stdout, done.stdout
    assert done.stdout.splitlines()[-1] == f"{len(FAULTS)} values tried"
