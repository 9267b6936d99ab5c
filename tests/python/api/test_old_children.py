"""Processes that a script starts under ``anabranch run`` import ``paddle``, too."""
import os
import subprocess
import sys

from repository import PYTHON

GENERATOR = """
import paddle.fluid.incubate.data_generator as dg

class Lengths(dg.MultiSlotDataGenerator):
    def generate_sample(self, line):
        def slots():
            yield [("ids", [int(word) for word in line.split()]), ("y", [len(line.split())])]
        return slots

Lengths().run_from_stdin()
"""
DATA_SET = """
import sys
import paddle.fluid as fluid

ids = fluid.data("ids", [None, 1], "int64", lod_level=1)
y = fluid.data("y", [None, 1], "int64")
total = fluid.layers.create_global_var([1], 0, "int64", persistable=True, name="total")
fluid.layers.assign(total + fluid.layers.reduce_sum(y), total)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
dataset = fluid.DatasetFactory().create_dataset("QueueDataset")
dataset.set_use_var([ids, y])
dataset.set_batch_size(2)
dataset.set_filelist(["part"])
dataset.set_pipe_command(sys.executable + " generator.py")
exe.train_from_dataset(fluid.default_main_program(), dataset)
print("total", fluid.global_scope().find_var("total").get_tensor().__array__())
"""
STARTED = """
import multiprocessing
import os
import subprocess
import sys

import worker

if __name__ == "__main__":
    os.system(sys.executable + " worker.py")
    subprocess.check_call([sys.executable, "-c", "import paddle.fluid.core as core; print(core.CPUPlace())"])
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(worker.name, ["fc"]))
"""
WORKER = """
import paddle
import paddle.fluid as fluid
from paddle.fluid import layers

def name(layer):
    return getattr(fluid.layers, layer).__name__

if __name__ == "__main__":
    print(paddle.batch.__name__, name("fc"), layers is fluid.layers)
"""


def run(folder, name, **variables):
    environment = dict(os.environ, PYTHONPATH=PYTHON, **variables)
    done = subprocess.run([sys.executable, "-m", "anabranch", "run", name], cwd=folder, env=environment,
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_pipe_command_of_a_data_set_is_a_script_of_fluid(tmp_path):
    (tmp_path / "generator.py").write_text(GENERATOR)
    (tmp_path / "train.py").write_text(DATA_SET)
    (tmp_path / "part").write_text("1 2 3\n4\n5 6\n")
    assert run(tmp_path, "train.py") == "total [6]\n"


def test_commands_and_spawned_processes_import_paddle(tmp_path):
    (tmp_path / "start.py").write_text(STARTED)
    (tmp_path / "worker.py").write_text(WORKER)
    assert run(tmp_path, "start.py").splitlines() == ["batch fc True", "CPUPlace", "['fc']"]


def test_an_interpreter_without_this_package_finds_its_own_paddle(tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "paddle.py").write_text("kind = 'another'\n")
    (tmp_path / "start.py").write_text(
        "import os, subprocess, sys\n"
        "folder = os.environ['PYTHONPATH'].split(os.pathsep)[-1]\n"
        "code = 'import sys; sys.path.append(%r); import paddle; print(paddle.kind)' % os.path.abspath('own')\n"
        "subprocess.check_call([sys.executable, '-S', '-c', code], env=dict(os.environ, PYTHONPATH=folder))\n")
    assert run(tmp_path, "start.py") == "another\n"
