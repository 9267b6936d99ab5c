"""Hostile variants of every case, a process for each group of cases, so that a crash is seen and named."""
import os
import subprocess
import sys

import pytest
import test_ops  # noqa: F401  imports the cases
from op_case import CASES

GROUP = 80
TIMEOUT_S = 600

names = [c.name for c in CASES]
groups = [names[k:k + GROUP] for k in range(0, len(names), GROUP)]


def check(group):
    program = os.path.join(os.path.dirname(__file__), "hostile.py")
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(p for p in sys.path if p))
    done = subprocess.run([sys.executable, program, *group], capture_output=True, text=True, timeout=TIMEOUT_S, env=env)
    lines = done.stdout.splitlines()
    end = lines[-1].split() if lines else [""]
    assert end[0] == "finished", f"died (exit {done.returncode}) at: {lines[-1:]}\n{done.stderr[-2000:]}"
    assert int(end[1]) >= len(group), "a share of the variants of each case"
    wrong = [line for line in lines if line.startswith("WRONG")]
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow(8)
@pytest.mark.parametrize("group", groups, ids=lambda g: f"{g[0]}-to-{g[-1]}")
def test_hostile(group):
    check(group)


def test_yolo_losses_of_images_without_pixels():
    """They once ended the process: the promise of docs/understand/guarantees.md is checked with them."""
    check([name for name in names if name.startswith("yolov3_loss")])
