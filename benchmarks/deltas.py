"""Delta checkpoints and the models that follow them: bytes, time, and how long steps and answers wait meanwhile.

    python benchmarks/deltas.py [--rows 20000000] [--width 8] [--touched 0.01] [--deltas 5] [--folder FOLDER]

A growable table is trained by SGD until it has --rows rows. Between two checkpoints a share of them is trained again.
Prints:

- a full save: time and bytes, and those of a checkpoint with the changed rows;
- p99 of a step of 1,000 ids, without and with a checkpoint being written;
- whether the chain, loaded and saved, has the bytes of a full save;
- from the file on disk to the answers of a predictor that follows: time, p99 of its answers, memory.
"""
import argparse
import filecmp
import io
import os
import shutil
import tempfile
import threading
import time

import numpy as np

import anabranch
import anabranch.fluid as fluid

BATCH = 1000


def resident_mb():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) / 1024


class Net:
    def __init__(self, width):
        self.scope, self.exe = fluid.Scope(), fluid.Executor(fluid.CPUPlace())
        self.main, startup = fluid.Program(), fluid.Program()
        self.main.random_seed = startup.random_seed = 1
        with fluid.program_guard(self.main, startup), fluid.unique_name.guard(), fluid.scope_guard(self.scope):
            ids = fluid.data("ids", [None, 1], "int64")
            rows = fluid.embedding(ids, [-1, width], is_sparse=True, param_attr=fluid.GrowableTable("clicks"))
            self.score = fluid.layers.fc(rows, 1)
            fluid.optimizer.SGD(0.01).minimize(fluid.layers.mean(fluid.layers.square(self.score)))
            self.exe.run(startup)

    def step(self, ids):
        with fluid.scope_guard(self.scope):
            self.exe.run(self.main, feed={"ids": ids.reshape(-1, 1)})

    def save(self, folder):
        with fluid.scope_guard(self.scope):
            fluid.io.save_persistables(self.exe, folder, self.main)


def p99(times):
    return 1e3 * float(np.quantile(times, 0.99)) if times else float("nan")


def steps_while(net, rows, condition, seed):
    """Times of steps until the condition is false."""
    draw, times = np.random.RandomState(seed), []
    while condition():
        ids = draw.randint(0, rows, BATCH)
        begun = time.perf_counter()
        net.step(ids)
        times.append(time.perf_counter() - begun)
    return times


def write(args, net, folder):
    run = anabranch.Checkpoints(os.path.join(folder, "run"), net.main, net.exe, every=10 ** 9, keep=100, delta=1000,
                                scope=net.scope, stream=io.StringIO())
    epochs = run.epochs(1)
    next(epochs)
    begun = time.perf_counter()
    net.save(os.path.join(folder, "full"))
    full_s = time.perf_counter() - begun
    size = os.path.getsize(os.path.join(folder, "full", "clicks"))
    print("full save: %.2f s, %.1f MB" % (full_s, size / 1e6))
    begun = time.perf_counter()
    run.save()
    print("first checkpoint, all rows: %.2f s" % (time.perf_counter() - begun))
    touched = int(args.touched * args.rows)
    quiet = time.perf_counter() + 10
    alone = steps_while(net, args.rows, lambda: time.perf_counter() < quiet, 1)
    run.save()
    draw, busy, seconds, ratios = np.random.RandomState(5), [], [], []
    for k in range(args.deltas):
        ids = draw.choice(args.rows, touched, replace=False)
        for at in range(0, touched, 10 ** 5):
            net.step(ids[at:at + 10 ** 5])
        changed = net_table(net).changed_bytes()
        begun = time.perf_counter()
        run._start(run._status())
        taken = time.perf_counter() - begun
        if k % 2:
            busy += steps_while(net, args.rows, lambda: run._deltas._thread.is_alive(), k)
        at = run._deltas.wait()
        seconds.append((time.perf_counter() - begun, taken))
        ratios.append(os.path.getsize(os.path.join(at, "values.clicks.changes")) / changed)
    alone_s = [s for k, (s, _) in enumerate(seconds) if not k % 2]
    print("a checkpoint of %d changed rows: %.3f s (%.2f %% of a full save), bytes of the changed rows x %.4f" % (
        touched, np.median(alone_s), 100 * np.median(alone_s) / full_s, max(ratios)))
    print("the run waits %.1f ms for it; p99 of a step: %.3f ms, while it is written %.3f ms (%d steps)" % (
        1e3 * max(t for _, t in seconds), p99(alone), p99(busy), len(busy)))
    return run, epochs


def net_table(net):
    from anabranch import _core
    return _core.growable_table(net.scope.find_var("clicks"))


def check(args, net, run, folder):
    net.save(os.path.join(folder, "now"))
    last = run.save()
    again = Net(args.width)
    begun = time.perf_counter()
    with fluid.scope_guard(again.scope):
        fluid.io.load_persistables(again.exe, last, again.main, filename="values")
    print("the chain loads in %.2f s" % (time.perf_counter() - begun))
    again.save(os.path.join(folder, "again"))
    same = filecmp.cmp(os.path.join(folder, "now", "clicks"), os.path.join(folder, "again", "clicks"), shallow=False)
    print("the loaded chain has the bytes of a full save: %s" % same)
    for name in ("full", "now", "again"):
        shutil.rmtree(os.path.join(folder, name))


def follow(args, net, run, folder):
    small = Net(args.width)     # its table is empty: the rows are those of the run
    small.step(np.arange(10))
    with fluid.scope_guard(small.scope):
        fluid.io.save_inference_model(os.path.join(folder, "model"), ["ids"], [small.score], small.exe, small.main)
    begun = time.perf_counter()
    made = anabranch.Predictor(os.path.join(folder, "model"), follow=os.path.join(folder, "run"), poll_s=0.01)
    print("the follower has started after %.2f s with version %d" % (time.perf_counter() - begun,
                                                                     made.follower.version))
    over, answers = threading.Event(), []

    def answer():
        own, draw = made.clone(), np.random.RandomState(9)
        while not over.is_set():
            ids = draw.randint(0, args.rows, (100, 1))
            begun = time.perf_counter()
            own.run([ids])
            answers.append((begun, time.perf_counter() - begun, own.version))
    client = threading.Thread(target=answer)
    client.start()
    time.sleep(5)
    before = resident_mb()
    touched, windows, delays, most = int(args.touched * args.rows), [], [], 0.0
    for k in range(args.deltas):
        ids = np.random.RandomState(77 + k).choice(args.rows, touched, replace=False)
        for at in range(0, touched, 10 ** 5):
            net.step(ids[at:at + 10 ** 5])
        run.save()
        on_disk = time.perf_counter()
        number, deadline = made.follower.state()["newest"], on_disk + 30
        while (not answers or answers[-1][2] < number) and time.perf_counter() < deadline:
            time.sleep(0.002)
        first = next(t for t, _, version in reversed(answers) if version < number)
        delays.append(first - on_disk)
        while made.follower.apply_s == 0:
            time.sleep(0.01)
        time.sleep(0.5)
        windows.append((on_disk, on_disk + 1.0))
        most = max(most, resident_mb())
    over.set()
    client.join()
    quiet = [s for t, s, _ in answers if t < windows[0][0] - 1]
    busy = [s for t, s, _ in answers if any(a <= t < b for a, b in windows)]
    print("from disk to answers: %.3f s at most; p99 of an answer %.3f ms, in the second after a checkpoint %.3f ms" % (
        max(delays), p99(quiet), p99(busy)))
    print("memory: %.0f MB before, at most %.0f MB (x %.3f)" % (before, most, most / before))
    made.close()


def main():
    made = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    made.add_argument("--rows", type=int, default=20 * 10 ** 6)
    made.add_argument("--width", type=int, default=8)
    made.add_argument("--touched", type=float, default=0.01)
    made.add_argument("--deltas", type=int, default=5)
    made.add_argument("--folder")
    args = made.parse_args()
    folder = args.folder or tempfile.mkdtemp(prefix="anabranch-deltas-")
    try:
        net = Net(args.width)
        begun = time.perf_counter()
        for at in range(0, args.rows, 10 ** 6):
            net.step(np.arange(at, min(args.rows, at + 10 ** 6)))
        print("%d rows of %d numbers in %.1f s, %.0f MB" % (args.rows, args.width, time.perf_counter() - begun,
                                                           net_table(net).statistics()["bytes"] / 2 ** 20))
        run, epochs = write(args, net, folder)
        check(args, net, run, folder)
        follow(args, net, run, folder)
        epochs._numbers.close()
    finally:
        if not args.folder:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
