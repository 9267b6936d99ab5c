"""A model whose answers tell their version: each step adds one to all of its numbers, in the table and elsewhere.

``python versions.py RUN MODEL`` trains it until the process is killed.
"""
import io
import os
import subprocess
import sys

import numpy as np

import anabranch
import anabranch.fluid as fluid


class Counting:
    """A training run of ``keys`` ids. After step n, each row of the table and the variable ``w`` are n."""

    def __init__(self, folder, model, keys=300, width=4, optimizer=None, **options):
        self.keys, self.scope = keys, fluid.Scope()
        self.main, startup = fluid.Program(), fluid.Program()
        self.exe = fluid.Executor()
        with fluid.program_guard(self.main, startup), fluid.unique_name.guard(), fluid.scope_guard(self.scope):
            ids = fluid.data("ids", [None, 1], "int64")
            table = fluid.GrowableTable("counts", fluid.initializer.Constant(0.0))
            rows = fluid.embedding(ids, [-1, width], is_sparse=True, param_attr=table)
            rows = fluid.layers.reshape(rows, [-1, width])
            zeros = fluid.initializer.Constant(0.0)
            w = fluid.layers.create_parameter([width], "float32", "w", default_initializer=zeros)
            answer = fluid.layers.elementwise_add(fluid.layers.scale(rows, 1000.0), w)
            loss = fluid.layers.scale(fluid.layers.reduce_sum(rows) + fluid.layers.reduce_sum(w), -1.0)
            (optimizer or fluid.optimizer.SGD(1.0)).minimize(loss)
            self.exe.run(startup)
            self.step_once()
            if model:
                fluid.io.save_inference_model(model, ["ids"], [answer], self.exe, self.main)
        self.run = anabranch.Checkpoints(str(folder), self.main, self.exe, scope=self.scope, stream=io.StringIO(),
                                         **{"every": 10 ** 6, "delta": 8, "keep": 4, **options})
        self._epochs = self.run.epochs(1)
        next(self._epochs)      # loads the latest checkpoint
        with fluid.scope_guard(self.scope):
            self.done = int(np.array(self.scope.find_var("w").get_tensor())[0])

    def step_once(self):
        with fluid.scope_guard(self.scope):
            self.exe.run(self.main, feed={"ids": np.arange(self.keys).reshape(-1, 1)})

    def write(self, steps=1):
        """Trains, and saves a checkpoint. Returns its folder."""
        for _ in range(steps):
            self.step_once()
            self.done += 1
        return self.run.save()

    def write_wrong(self, value=np.nan):
        """Saves a checkpoint in which ``w`` is wrong; later ones are right."""
        with fluid.scope_guard(self.scope):
            tensor = self.scope.find_var("w").get_tensor()
            right = np.array(tensor)
            tensor.set(np.full_like(right, value), fluid.CPUPlace())
            at = self.run.save()
            tensor.set(right, fluid.CPUPlace())
        return at

    def close(self):
        """Ends the run, in the thread that began it."""
        self._epochs._numbers.close()

    def endless(self):
        """Trains and saves until the process is killed; prints each checkpoint."""
        while True:
            self.write()
            print("saved", self.run._deltas._last.number, self.done, flush=True)


class Writer:
    """A process that trains and saves until it is killed, which the end does."""

    def __init__(self, folder, model):
        program = [sys.executable, "-W", "ignore", os.path.abspath(__file__), str(folder), str(model)]
        self.child = subprocess.Popen(program, stdout=subprocess.PIPE, text=True,
                                      env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)))

    def __enter__(self):
        self.child.stdout.readline()    # the first checkpoint
        return self

    def __exit__(self, *error):
        self.child.kill()
        self.child.communicate()


def version_of(answer):
    """int: the number of steps that an answer tells, up to 16,000; None if it mixes several."""
    parts = np.unique(answer)
    return int(parts[0]) // 1001 if len(parts) == 1 and parts[0] % 1001 == 0 else None


if __name__ == "__main__":
    Counting(sys.argv[1], sys.argv[2] if not os.path.exists(sys.argv[2]) else None).endless()
