"""Training runs whose checkpoints are chains: python delta_runs.py FOLDER STEPS; it prints each step with a hash of the
state. Faults (see faults.py) count from the first step of this process on."""
import hashlib
import io
import os
import sys
import tempfile

import numpy as np

import anabranch
import anabranch.fluid as fluid


class Clicks:
    """A CTR model in its own scope, with two growable tables; what it learns depends only on the step."""

    def __init__(self, width=4, **rules):
        self.main, startup, self.scope = fluid.Program(), fluid.Program(), fluid.Scope()
        self.main.random_seed = startup.random_seed = 5
        self.exe = fluid.Executor()
        with fluid.program_guard(self.main, startup), fluid.unique_name.guard(), fluid.scope_guard(self.scope):
            ids = fluid.data("ids", [None, 1], "int64")
            label = fluid.data("label", [None, 1])
            self.tables = [fluid.GrowableTable(name, fluid.initializer.Uniform(-0.5, 0.5), **rules)
                           for name in ("clicks", "users")]
            rows = [fluid.layers.reshape(fluid.embedding(ids, [-1, width], is_sparse=True, param_attr=t), [-1, width])
                    for t in self.tables]
            self.score = fluid.layers.fc(fluid.layers.concat(rows, 1), 1, param_attr="w", bias_attr="b")
            self.loss = fluid.layers.mean(fluid.layers.square_error_cost(self.score, label))
            fluid.optimizer.Adam(0.01, lazy_mode=True).minimize(self.loss)
            self.exe.run(startup)

    def run(self, folder, **options):
        self.said = io.StringIO()
        return anabranch.Checkpoints(str(folder), self.main, self.exe, scope=self.scope,
                                     **{"stream": self.said, "delta": 4, **options})

    def step(self, number, rows=40, keys=400):
        draw = np.random.RandomState(number)
        feed = {"ids": draw.randint(0, keys + 20 * number, (rows, 1)), "label": draw.rand(rows, 1).astype("float32")}
        with fluid.scope_guard(self.scope):
            self.exe.run(self.main, feed=feed)

    def state(self):
        """dict: name -> bytes of each variable; tables as their files."""
        found = {}
        with fluid.scope_guard(self.scope), tempfile.TemporaryDirectory() as folder:
            fluid.io.save_persistables(self.exe, folder, self.main)
            for name in sorted(os.listdir(folder)):
                with open(os.path.join(folder, name), "rb") as file:
                    found[name] = file.read()
        return found

    def hash(self):
        digest = hashlib.sha256()
        for name, data in self.state().items():
            digest.update(name.encode() + data)
        return digest.hexdigest()


def main():
    import faults
    clicks = Clicks(expire_after=5)
    run = clicks.run(sys.argv[1], every=1, keep=2, delta=2, stream=sys.stderr)
    armed = "FAULT_LIBRARY" not in os.environ
    for _ in run.epochs(1):
        for number in run.steps(range(int(sys.argv[2]))):
            clicks.step(number)
            print("step", run.step + 1, clicks.hash(), flush=True)
            if not armed:
                armed = True
                faults.arm()
    if "FAULT_LIBRARY" in os.environ:
        print("calls", faults.calls(), flush=True)


if __name__ == "__main__":
    main()
