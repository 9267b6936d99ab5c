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


def watch(step, runs):
    """Calls ``step`` ``runs`` times.

    Returns a dict: resident memory in MB, microseconds of a call and number of threads, each after a tenth of the
    calls and at the end.
    """
    memory, micros, tasks = [], [], []
    for _ in range(PARTS):
        stretches = []
        for _ in range(STRETCHES):
            begin = time.monotonic()
            for _ in range(runs // (PARTS * STRETCHES)):
                step()
            stretches.append(1e6 * (time.monotonic() - begin) / (runs // (PARTS * STRETCHES)))
        micros.append(min(stretches))
        memory.append(resident_mb())
        tasks.append(threads())
    early = slice(PARTS // 10, PARTS // 5)
    return dict(memory_mb=(memory[PARTS // 10 - 1], memory[-1]), threads=(tasks[PARTS // 10 - 1], tasks[-1]),
                micros=(statistics.median(micros[early]), statistics.median(micros[-2:])))


def fit_a_line(fluid, fetch):
    """A step of the small model."""
    train, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(train, startup), fluid.unique_name.guard():
        x, y = fluid.data("x", [None, 13]), fluid.data("y", [None, 1])
        loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y))
        fluid.optimizer.SGD(0.01).minimize(loss)
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    exe.run(startup, scope=scope)
    feed = dict(x=np.ones((4, 13), "float32"), y=np.ones((4, 1), "float32"))
    return lambda: exe.run(train, feed=feed, fetch_list=[loss] if fetch else [], scope=scope, use_program_cache=True)


def report(row, fluid_name, what, runs, seen):
    """A line of the result for each thing that was watched."""
    version = str(getattr(sys.modules[fluid_name.split(".")[0]], "__version__", "unknown"))
    metric = "{}, {:,} runs: ".format(what, runs)
    for label, key, of, unit, grown in (("growth of memory", "memory_mb", "MB", "MB", lambda a, b: b - a),
                                        ("time of a run, end divided by start", "micros", "us", "", lambda a, b: b / a),
                                        ("additional threads", "threads", "threads", "threads",
                                         lambda a, b: float(b - a))):
        common.emit(row, fluid_name, version, "exe cache", metric + label, grown(*seen[key]), unit,
                    rss_mb=seen["memory_mb"][1], note="{:.4g} -> {:.4g} {}".format(*seen[key] + (of,)))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fluid", default="paddle.fluid", help="module with Fluid's API to measure")
    parser.add_argument("--runs", type=int, default=300000)
    parser.add_argument("--quick", action="store_true", help="20,000 runs")
    args = parser.parse_args()
    runs = 20000 if args.quick else args.runs
    fluid = importlib.import_module(args.fluid)
    for fetch in (True, False):
        report("STEADY", args.fluid, "fetch=%s" % ("on" if fetch else "off"), runs, watch(fit_a_line(fluid, fetch), runs))


if __name__ == "__main__":
    main()
