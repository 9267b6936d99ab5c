"""tools/check_files_live.py: with an installed PaddlePaddle 1.8.5 it exchanges files, without one it says so."""
import os
import subprocess
import sys

import pytest
from repository import ROOT

SCRIPT = os.path.join(ROOT, "tools", "check_files_live.py")
VARIABLE = "BENCH_FLUID18_PYTHON"


def run(environment):
    environment["PYTHONPATH"] = os.path.join(ROOT, "python")
    done = subprocess.run([sys.executable, SCRIPT], env=environment, stdout=subprocess.PIPE, universal_newlines=True)
    return done.returncode, done.stdout


def test_without_the_other_side():
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    code, text = run(environment)
    assert code == 0 and text.startswith("skipped: " + VARIABLE)


@pytest.mark.slow
@pytest.mark.skipif(VARIABLE not in os.environ, reason=VARIABLE + " is not set")
def test_exchange():
    code, text = run(dict(os.environ))
    assert code == 0 and "FAIL" not in text and text.count("ok ") == 24, text
