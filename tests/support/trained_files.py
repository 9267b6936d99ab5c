"""Files of columns, and runs of ``anabranch train`` on them."""
import csv
import os
import subprocess
import sys

from repository import ROOT

ENVIRONMENT = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python"), OMP_NUM_THREADS="1")


def python(*args, cwd):
    return subprocess.run([sys.executable, *map(str, args)], capture_output=True, text=True, env=ENVIRONMENT,
                          timeout=300, cwd=cwd)


def train(*args, cwd):
    """The output of the command, which ends well."""
    done = python("-m", "anabranch", "train", *args, cwd=cwd)
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80
    return done.stdout


def write(path, columns):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values()))
