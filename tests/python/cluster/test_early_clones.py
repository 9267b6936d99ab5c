"""Test programs that were cloned before ``minimize`` read the tables of the servers, as later clones do."""
import json
import os
import subprocess
import sys

import pytest
from repository import PYTHON, SUPPORT

import anabranch.fluid as fluid


@pytest.mark.parametrize("table", ["sparse", "distributed", "growable"])
def test_clones_before_and_after_minimize_give_the_same_loss(table, tmp_path):
    logs = tmp_path / "logs"
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join([PYTHON, SUPPORT]))
    done = subprocess.run([sys.executable, "-m", "anabranch", "launch", "--servers", "2", "--workers", "1", "--log-dir",
                           str(logs), os.path.join(SUPPORT, "tested_worker.py"), table], capture_output=True, text=True,
                          timeout=100, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done
    lines = [line for path in logs.iterdir() for line in path.read_text().splitlines()]
    *training, early, copied, late = json.loads(next(line for line in lines if line.startswith("RESULT "))[7:])
    assert early == copied == late < training[-1] < training[0]


def test_clones_do_not_keep_programs_alive():
    import gc
    import weakref
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        fluid.layers.fc(fluid.data("x", [None, 2]), 1)
    copy = weakref.ref(program.clone(for_test=True))
    gc.collect()
    assert copy() is None and len(program._test_programs) == 0
