"""A process that ends in an error shows this error last: nothing stands beneath it."""
import os
import subprocess
import sys

import pytest
from repository import ROOT

HEAD = """
import itertools, sys, threading, time
import numpy as np
import paddle, paddle.fluid as fluid
x = fluid.data("x", [None, 4])
loss = fluid.layers.mean(fluid.layers.fc(x, 1))
fluid.optimizer.Adam(0.1).minimize(loss)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
main = fluid.default_main_program()
feed = {"x": np.ones((2, 4), "float32")}
compiled = fluid.CompiledProgram(main).with_data_parallel(loss.name)


def endless():
    while True:
        yield [feed["x"]]
"""
#: How a program holds its objects when it fails.
CASES = {
    "buffered": "reader = paddle.reader.buffered(endless, 4)()\nnext(reader)",
    "xmap": "reader = paddle.reader.xmap_readers(lambda s: (s, exe), endless, 2, 4)()\nnext(reader)",
    "slow xmap": "reader = paddle.reader.xmap_readers(lambda s: time.sleep(0.3) or (s, exe), endless, 2, 4)()\n"
                 "next(reader)",
    "loader": "loader = fluid.io.DataLoader.from_generator([x], 4)\n"
              "loader.set_batch_generator(endless, fluid.cpu_places())\npasses = loader()\nnext(passes)",
    "reader of the program": "with fluid.program_guard(fluid.Program(), fluid.Program()):\n"
                             "    reader = fluid.layers.py_reader(4, [[-1, 4]], ['float32'])\n"
                             "reader.decorate_tensor_provider(endless)\nreader.start()",
    "pushed": "with fluid.program_guard(fluid.Program(), fluid.Program()):\n"
              "    reader = fluid.layers.py_reader(4, [[-1, 4]], ['float32'])\n"
              "tensor = fluid.create_lod_tensor(feed['x'], [[1, 1]], fluid.CPUPlace())\nreader.queue.push([tensor])",
    "thread of the script": "threading.Thread(target=lambda kept: time.sleep(60), args=[[exe, compiled, loss]],\n"
                            "                 daemon=True).start()",
    "cycle": "class Kept: pass\nkept = Kept()\nkept.own, kept.program = kept, compiled",
    "module": "sys.modules['numpy'].kept = [exe, compiled, fluid.global_scope()]",
    "py_func": "out = main.current_block().create_var(name='o', dtype='float32', shape=[-1, 4])\n"
               "def f(a): return exe and compiled and np.asarray(a)\n"
               "fluid.layers.py_func(f, x, out)\nexe.run(feed=feed, fetch_list=[out])",
    "compiled": "exe.run(compiled, feed=feed, fetch_list=[loss])",
}


def last_lines(tmp_path, body):
    (tmp_path / "script.py").write_text(HEAD + body + "\nraise ValueError('the last words')\n")
    done = subprocess.run([sys.executable, "-m", "anabranch", "run", "script.py"], cwd=tmp_path, text=True,
                          env=dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python"), CPU_NUM="1"),
                          capture_output=True, timeout=120)
    assert done.returncode == 1
    return done.stderr.splitlines()


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_error_is_the_last_line(name, tmp_path):
    assert last_lines(tmp_path, CASES[name])[-1] == "ValueError: the last words"
