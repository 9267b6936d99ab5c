"""Tests of wrong arguments, in the manner of those that operators of Fluid have, pass here as they do on 1.8.5."""
import glob
import os
import re
import subprocess
import sys

from repository import PYTHON, TESTS

FOLDER = os.path.join(TESTS, "scripts", "refused")


def test_each_test_of_1_8_5_passes():
    done = subprocess.run([sys.executable, "-m", "anabranch", "run", os.path.join(FOLDER, "together.py")],
                          env=dict(os.environ, PYTHONPATH=PYTHON),
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(re.search(r"Ran (\d+) tests", done.stdout).group(1)) > 150


def test_the_tests_call_many_layers():
    text = "".join(open(path).read() for path in glob.glob(os.path.join(FOLDER, "*.py")))
    assert len(set(re.findall(r"layers\.(\w+)", text))) > 150
