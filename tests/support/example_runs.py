"""The examples as programs."""
import os
import re
import subprocess
import sys

from repository import ROOT


def run(name, tmp_path, *arguments):
    """The output of examples/NAME in an empty folder."""
    return run_both(name, tmp_path, *arguments)[0]


def run_both(name, tmp_path, *arguments):
    """(stdout, stderr) of examples/NAME."""
    environment = dict(os.environ, CPU_NUM="2", PYTHONPATH=os.path.join(ROOT, "python"), PYTHONWARNINGS="error")
    done = subprocess.run([sys.executable, os.path.join(ROOT, "examples", name)] + list(arguments), cwd=str(tmp_path),
                          env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, done.stderr


def numbers(text, label):
    found = [float(number) for number in re.findall(re.escape(label) + r": ([0-9.]+)", text)]
    assert found, "no %r in:\n%s" % (label, text)
    return found
