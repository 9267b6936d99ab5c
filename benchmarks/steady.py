"""STEADY: a small model is run very often, with and without fetching: do memory, time and threads stay as they are?"""
import argparse
import importlib
import os
import statistics
import sys
import time

import numpy as np

import common

PARTS = 20
STRETCHES = 10       # of a part; the fastest counts, for others may disturb the rest


def resident_mb():
    """Resident memory of this process now (VmRSS)."""
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024.0


def threads():
    return len(os.listdir("/proc/self/task"))


def watch(fluid, runs, fetch):
    """Trains fit_a_line for so many runs.

    Returns a dict: resident memory in MB, microseconds of a run and number of threads, each after a tenth of the
    runs and at the end.
    """
    train, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(train, startup), fluid.unique_name.guard():
        x, y = fluid.data("x", [None, 13]), fluid.data("y", [None, 1])
        loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y))
        fluid.optimizer.SGD(0.01).minimize(loss)
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    feed = dict(x=np.ones((4, 13), "float32"), y=np.ones((4, 1), "float32"))
    memory, micros, tasks = [], [], []
    with fluid.scope_guard(scope):
        exe.run(startup)
        for _ in range(PARTS):
            stretches = []
            for _ in range(STRETCHES):
                begin = time.monotonic()
                for _ in range(runs // (PARTS * STRETCHES)):
                    exe.run(train, feed=feed, fetch_list=[loss] if fetch else [], use_program_cache=True)
                stretches.append(1e6 * (time.monotonic() - begin) / (runs // (PARTS * STRETCHES)))
            micros.append(min(stretches))
            memory.append(resident_mb())
            tasks.append(threads())
        exe.close()
    early = slice(PARTS // 10, PARTS // 5)
    return dict(memory_mb=(memory[PARTS // 10 - 1], memory[-1]), threads=(tasks[PARTS // 10 - 1], tasks[-1]),
                micros=(statistics.median(micros[early]), statistics.median(micros[-2:])))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fluid", default="paddle.fluid", help="module with Fluid's API to measure")
    parser.add_argument("--runs", type=int, default=300000)
    parser.add_argument("--quick", action="store_true", help="20,000 runs")
    args = parser.parse_args()
    runs = 20000 if args.quick else args.runs
    fluid = importlib.import_module(args.fluid)
    version = str(getattr(sys.modules[args.fluid.split(".")[0]], "__version__", "unknown"))
    for fetch in (True, False):
        seen = watch(fluid, runs, fetch)
        metric = "fetch=%s, %d runs: " % ("on" if fetch else "off", runs)
        note = "{:.4g} -> {:.4g}"
        for what, key, unit, grown in (("memory grown", "memory_mb", "MB", lambda a, b: b - a),
                                       ("time, last over first", "micros", "times", lambda a, b: b / a),
                                       ("threads more", "threads", "threads", lambda a, b: float(b - a))):
            common.emit("STEADY", args.fluid, version, "exe cache", metric + what, grown(*seen[key]), unit,
                        rss_mb=seen["memory_mb"][1], note=note.format(*seen[key]))


if __name__ == "__main__":
    main()
