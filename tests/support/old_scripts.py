"""Old scripts as programs."""
import glob
import os
import subprocess
import sys

import pytest
from repository import PYTHON, TESTS

SCRIPTS = os.path.join(TESTS, "scripts")
sys.path.insert(0, SCRIPTS)

import masked  # noqa: E402

#: Lines of Python and of operators in the order of their making, as on a terminal.
ENVIRONMENT = dict(os.environ, PYTHONPATH=PYTHON, CPU_NUM="1", PYTHONUNBUFFERED="1")
#: Those that take longest.
LONG = {"ssd_like", "resnet_cifar", "vgg_cifar"}


def named(folder):
    names = sorted(os.path.basename(path)[:-3] for path in glob.glob(os.path.join(SCRIPTS, folder, "*.py")))
    return [pytest.param(name, marks=pytest.mark.slow if name in LONG else ()) for name in names]


def run(root, folder, *words):
    done = subprocess.run([sys.executable, "-m", "anabranch", "run", "--data", root, *words], cwd=folder,
                          env=ENVIRONMENT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "names that are not available" not in done.stderr
    return done


def compare(name, done):
    with open(os.path.join(SCRIPTS, "records", name + ".txt")) as file:
        difference = masked.difference(file.read(), done.stdout)
    assert difference is None, "%s, %s" % (name, difference)


def start(kind, name):
    return os.path.join(SCRIPTS, "start.py"), os.path.join(SCRIPTS, kind, name + ".py")
