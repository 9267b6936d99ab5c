"""One engine of the race of nets (models.py): builds a net of tests/models and trains it when asked.

    model_side.py --fluid anabranch.fluid [--core 0]

Requests and answers are lines as in op_side.py:

    {"net": name, "growth": {...}, "values": path, "most": seconds}
                      builds it; its parameters start from the description at that path, which the first engine writes, and
                      a step may take so long: {"losses": of the first steps, "wall": seconds of one, "cached": ...}
    {"runs": n}       trains n steps: {"wall": seconds, "cpu": seconds} of one
    {"profile": n}    {"ops": [[type, CPU milliseconds of a step], ...]}, the slowest first

Python 3.7 is the oldest interpreter that must read this file.
"""
import argparse
import importlib
import json
import os
import re
import resource
import sys
import tempfile
import time

import model_parts

FIRST = 3   # steps whose losses are compared


def cpu_seconds():
    """Of all threads of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def build(fluid, request):
    work = model_parts.Work(fluid, request["net"], request["growth"])
    if not os.path.exists(request["values"]):
        with open(request["values"], "w") as out:
            json.dump(work.describe(), out)
    with open(request["values"]) as text:
        described = json.load(text)
    work.start(described)
    try:
        losses = first_losses(work, request["most"])
    except fluid.core.EnforceNotMet:        # 1.8.5 drops what a cached program kept in arrays
        work.cached = False
        work.start(described)
        losses = first_losses(work, request["most"])
    work.losses(FIRST)
    return work, dict(losses=losses, wall=timed(work, FIRST)["wall"], cached=work.cached)


def first_losses(work, most):
    """Those of FIRST steps, of which the second may take `most` seconds of CPU."""
    losses, begin = work.losses(1), cpu_seconds()
    losses += work.losses(1)
    taken = cpu_seconds() - begin
    if taken > most:
        raise ValueError("a step takes {:.1f} s".format(taken))
    return losses + work.losses(FIRST - 2)


def timed(work, runs):
    wall, cpu = time.perf_counter(), cpu_seconds()
    for _ in range(runs):
        work.run()
    return dict(wall=(time.perf_counter() - wall) / runs, cpu=(cpu_seconds() - cpu) / runs)


def profile(fluid, work, runs):
    """CPU milliseconds of a step by type of operator: its shares in the report of the engine's profiler."""
    step_ms, report = 1e3 * timed(work, runs)["cpu"], tempfile.TemporaryFile()
    kept = os.dup(1)
    os.dup2(report.fileno(), 1)
    try:
        with fluid.profiler.profiler("CPU", "total", os.path.join(tempfile.mkdtemp(), "profile")):
            timed(work, runs)
        sys.stdout.flush()
    finally:
        os.dup2(kept, 1)
        os.close(kept)
    report.seek(0)
    rows = re.findall(r"^(?:thread\d+::)?(\w+)\s+(\d+)\s+([\d.]+)\s", report.read().decode(), re.M)
    all_of_them = sum(float(total) for _, _, total in rows)
    return dict(ops=[[op, step_ms * float(total) / all_of_them] for op, _, total in rows])


def answer(fluid, request, work):
    if "net" in request:
        return build(fluid, request)
    if "profile" in request:
        return work, profile(fluid, work, request["profile"])
    return work, timed(work, request["runs"])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fluid", default="paddle.fluid", help="module with Fluid's API to measure")
    parser.add_argument("--core", type=int, help="uses this core only")
    args = parser.parse_args()
    if args.core is not None:
        os.sched_setaffinity(0, {args.core})
    fluid, work = importlib.import_module(args.fluid), None
    print("answer {}", flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        if "net" in request:
            work = None
        try:
            work, said = answer(fluid, request, work)
        except Exception as error:
            said = dict(error="{}: {}".format(type(error).__name__, str(error).strip()[-300:]))
        print("answer " + json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
