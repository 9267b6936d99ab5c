"""Memory of processes that serve one model whose table follows checkpoints, with and without shared rows.

    python benchmarks/shared_tables.py [--rows 3000000] [--width 8] [--touched 0.01] [--deltas 6] [--processes 2]
                                       [--share FOLDER]

A growable table is trained by SGD until it has --rows rows, and written as a checkpoint. --processes predictors follow
it, each in a process; with --share, they share the rows in this folder. Then a share of the rows is trained again, and
written, --deltas times. Prints:

- time until all predictors have started;
- memory of each process beyond that of the model without its rows: resident, and proportional (pages that N processes
  share count 1/N), before the first delta, and the most afterwards;
- time from the checkpoint on disk to the first answer that is computed from it; p99 of answers to 100 ids, before the
  first delta and in the second after each one;
- whether all processes give the same answers, bit for bit, as the table that was trained.
"""
import argparse
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
from deltas import Net, net_table, p99

import anabranch
import anabranch.fluid as fluid

CHECKED = 200000


def memory(process="self"):
    """[resident, proportional] bytes of a process."""
    with open("/proc/%s/smaps_rollup" % process) as file:
        found = {line.split(":")[0]: int(line.split()[1]) << 10 for line in file if line.endswith("kB\n")}
    return found["Rss"], found["Pss"]


class Most:
    """The most memory of processes, each and together, beyond ``bare``, since reset()."""

    def __init__(self, processes, bare):
        self._processes, self._bare = processes, np.array(bare)
        self.reset()
        threading.Thread(target=self._measure, daemon=True).start()

    def reset(self):
        self.each, self.sum = np.zeros(self._bare.shape), np.zeros(2)

    def _measure(self):
        while True:
            try:
                now = (np.array([memory(p) for p in self._processes]) - self._bare) / 2 ** 20
            except OSError:
                return      # they have ended
            self.each, self.sum = np.maximum(self.each, now), np.maximum(self.sum, now.sum(0))
            time.sleep(0.05)


def child(model, run, rows, share):
    """Serves until stdin ends; the commands are lines."""
    started = anabranch.Predictor(model)
    started.run([np.zeros((100, 1), "int64")])
    bare = memory()
    begun = time.monotonic()
    made = anabranch.Predictor(model, follow=run, poll_s=0.01, **({"share": share} if share else {}))
    print("%.3f %d %d" % (time.monotonic() - begun, *bare), flush=True)
    answers = []

    def answer():
        own, draw = made.clone(), np.random.RandomState(os.getpid())
        while True:
            ids = draw.randint(0, rows, (100, 1))
            begun = time.monotonic()
            own.run([ids])
            answers.append((begun, time.monotonic() - begun, own.version))
            time.sleep(0.001)
    threading.Thread(target=answer, daemon=True).start()
    for line in sys.stdin:
        command, *words = line.split()
        if command == "version":       # the first answer of it
            while not answers or answers[-1][2] < int(words[0]):
                time.sleep(0.001)
            print(next(t + s for t, s, version in answers if version >= int(words[0])), flush=True)
        elif command == "p99":
            print(p99([s for t, s, _ in answers if float(words[0]) <= t < float(words[1])]), flush=True)
        elif command == "digest":
            print(digest(made.run([np.arange(0, rows, max(rows // CHECKED, 1)).reshape(-1, 1)])[0]), flush=True)


def digest(rows):
    return hashlib.sha256(np.ascontiguousarray(rows)).hexdigest()


class Child:
    def __init__(self, model, run, rows, share):
        self.process = subprocess.Popen([sys.executable, __file__, "--child", model, run, str(rows), share or ""],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def line(self):
        return self.process.stdout.readline().split()

    def ask(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self.line()


def train(net, rows, ids=None):
    ids = np.arange(rows) if ids is None else ids
    for at in range(0, len(ids), 10 ** 5):
        net.step(ids[at:at + 10 ** 5])


def measure(args, folder):
    net = Net(args.width)
    net.step(np.arange(10))
    model, at = os.path.join(folder, "model"), os.path.join(folder, "run")
    with fluid.scope_guard(net.scope):      # the score is the sum of the row, so that answers tell its bits
        fluid.io.save_inference_model(model, ["ids"], [net.score], net.exe, net.main)
    train(net, args.rows)
    run = anabranch.Checkpoints(at, net.main, net.exe, every=10 ** 9, keep=100, delta=1000, scope=net.scope,
                                stream=io.StringIO())
    epochs = run.epochs(1)
    next(epochs)
    run.save()
    print("%d rows of %d numbers, %.0f MiB in the memory of the run" % (
        args.rows, args.width, net_table(net).statistics()["bytes"] / 2 ** 20))
    children = [Child(model, at, args.rows, args.share) for _ in range(args.processes)]
    first = [c.line() for c in children]
    bare = [tuple(map(int, line[1:])) for line in first]
    print("started after %s s" % ", ".join("%.2f" % float(line[0]) for line in first))
    most = Most([c.process.pid for c in children], bare)
    time.sleep(3)
    quiet, before, sum_before = time.monotonic(), most.each, most.sum
    most.reset()
    delays, busy = [], []
    for k in range(args.deltas):
        train(net, args.rows, np.random.RandomState(k).choice(args.rows, int(args.touched * args.rows), replace=False))
        run.save()
        on_disk = time.monotonic()
        delays.append([float(c.ask("version %d" % (k + 2))[0]) - on_disk for c in children])
        time.sleep(1.0)
        busy.append([float(c.ask("p99 %f %f" % (on_disk, on_disk + 1))[0]) for c in children])
    after, sum_after = most.each, most.sum
    most.reset()
    time.sleep(1)
    for name, k in (("resident", 0), ("proportional", 1)):
        print("%s: %s MiB before, %s at most; together %.0f, %.0f at most (x %.3f), %.0f at the end" % (
            name, ", ".join("%.0f" % m for m in before[:, k]), ", ".join("%.0f" % m for m in after[:, k]),
            sum_before[k], sum_after[k], sum_after[k] / sum_before[k], most.sum[k]))
    calm = [float(c.ask("p99 %f %f" % (quiet - 3, quiet))[0]) for c in children]
    print("from disk to answers: %.3f s at most; p99 of an answer %.3f ms, after a checkpoint %.3f ms" % (
        np.max(delays), np.max(calm), np.max(busy)))
    with fluid.scope_guard(net.scope):
        program, feeds, targets = fluid.io.load_inference_model(model, net.exe)
        train_again = anabranch.Predictor(model, follow=at)
    expected = digest(train_again.run([np.arange(0, args.rows, max(args.rows // CHECKED, 1)).reshape(-1, 1)])[0])
    print("the same answers as of a process with its own rows: %s" % all(
        c.ask("digest") == [expected] for c in children))
    for c in children:
        c.process.stdin.close()
        c.process.wait()
    train_again.close()
    epochs._numbers.close()


def main():
    if sys.argv[1:2] == ["--child"]:
        model, run, rows, share = sys.argv[2:]
        child(model, run, int(rows), share)
        return
    made = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    made.add_argument("--rows", type=int, default=3 * 10 ** 6)
    made.add_argument("--width", type=int, default=8)
    made.add_argument("--touched", type=float, default=0.01)
    made.add_argument("--deltas", type=int, default=6)
    made.add_argument("--processes", type=int, default=2)
    made.add_argument("--share")
    args = made.parse_args()
    folder = tempfile.mkdtemp(prefix="anabranch-shared-")
    try:
        measure(args, folder)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
