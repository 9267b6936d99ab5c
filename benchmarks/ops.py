"""Every operator in its speed mode, next to NumPy and Fluid 1.8.5: ./dev bench --ops.

An operator's speed mode follows from its case in tests/ops (op_jobs.py): about a million elements (detection: 10,000
boxes), 20 operators in a program, one after the other where results fit the input, else side by side. All engines are
alive at once and measured in turn, A B C, C B A, ...; a figure is the median of the ratios of rounds. NumPy computes the
case's reference, where that takes no Python loop over elements; what lies side by side stays in variables in all engines.

    ops.py [--only relu,softmax] [--part 1/4] [--out build/ops.jsonl] [--rounds 5]
    ops.py --table build/ops.jsonl ...        the table of results measured before

On a machine that does other things, too, `--one-core` gives each engine one core and one thread and compares CPU times.
"""
import argparse
import ctypes
import json
import math
import os
import selectors
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import common
import op_jobs
import rivals

HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT = 60.0                                       # seconds that one answer may take
ROUND = 0.05                                       # seconds of one measurement, or one run
AIM, LEAST, MOST_BELOW = 1.0, 0.7, 15
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3        # of mallopt(3)


class Side:
    """An engine in its own process, which is started again after it died."""
    limit = LIMIT

    def __init__(self, python, fluid, config, core=None):
        self.command = [python, os.path.join(HERE, "op_side.py"), "--fluid", fluid]
        if core is not None:
            self.command += ["--core", str(core)]
        self.environment = dict(os.environ, **common.Fluid(fluid).environment(config))
        if fluid.startswith("paddle"):
            self.environment.pop("PYTHONPATH", None)
        self.folder = tempfile.TemporaryDirectory()
        self.child = None

    def start(self):
        self.child = subprocess.Popen(self.command, env=self.environment, cwd=self.folder.name, stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
        self.buffer, self.selector = b"", selectors.DefaultSelector()
        self.selector.register(self.child.stdout, selectors.EVENT_READ)
        return self.answer()

    def ask(self, request):
        """The answer of the engine; {"error": ...} when it refuses, dies or takes too long."""
        if self.child is None and "error" in (said := self.start()):
            return said
        try:
            self.child.stdin.write(json.dumps(request).encode() + b"\n")
            self.child.stdin.flush()
        except OSError:
            return self.end("it ended")
        return self.answer()

    def answer(self):
        end = time.monotonic() + self.limit
        while True:
            while b"\n" in self.buffer:
                line, self.buffer = self.buffer.split(b"\n", 1)
                if line.startswith(b"answer "):
                    return json.loads(line[7:].decode())
            if not self.selector.select(max(0.0, end - time.monotonic())):
                return self.end("took longer than %.0f s" % self.limit)
            part = os.read(self.child.stdout.fileno(), 65536)
            if not part:
                return self.end("it ended")
            self.buffer += part

    def end(self, why):
        if self.child is not None:
            self.child.kill()
            self.child.wait()
            self.child = None
        return dict(error=why)

    def measurer(self, job):
        """A function that measures a round, or None when the engine cannot run the job."""
        found = self.ask(dict(job=job.path, count=job.count))
        if "error" in found:
            return None, found["error"]
        runs = max(1, int(ROUND / max(found["seconds"], 1e-9)))
        return lambda: self.ask(dict(runs=runs)).get("seconds"), None


# ---- NumPy

class Counter:
    """Counts the steps of Python code that a call takes."""

    def __init__(self):
        self.steps = 0

    def trace(self, frame, event, _):
        frame.f_trace_opcodes = True
        self.steps += event == "opcode"
        return self.trace

    def of(self, call):
        before = sys.gettrace()
        sys.settrace(self.trace)
        try:
            call()
        finally:
            sys.settrace(before)
        return self.steps


def is_vectorised(case):
    """Whether the reference takes equal numbers of steps for inputs with twice the rows."""
    small = op_jobs.typed(case, case.inputs)
    steps = Counter().of(lambda: case.ref(small, case.attrs))
    for way in op_jobs.ways_along_rows(case.inputs):
        twice = op_jobs.typed(case, op_jobs.change(case.inputs, way, 2))
        try:
            return Counter().of(lambda twice=twice: case.ref(twice, case.attrs)) <= steps
        except Exception:  # these rows do not belong together
            continue
    return False


def owned(made, inputs):
    """A reference that gives a view of its input, or one row for many, has not made a result yet."""
    given = [one for v in inputs.values() for one in (v if isinstance(v, list) else [v])]
    sources = [op_jobs.array_of(v) for v in given]

    def own(value):
        if isinstance(value, dict):
            return {k: own(v) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return [own(v) for v in value]
        if isinstance(value, op_jobs.Seq):
            return op_jobs.Seq(own(value.array), value.lengths)
        if not isinstance(value, np.ndarray):
            return value
        repeats = any(step == 0 and extent > 1 for step, extent in zip(value.strides, value.shape))
        return value.copy() if repeats or any(np.may_share_memory(value, s) for s in sources) else value
    return own(made)


def is_whole(made, shapes):
    """Whether a reference made results of the shapes that the engine's operator makes: some know their small case only."""
    slots = made if isinstance(made, dict) else {next(iter(shapes), ""): made}
    for slot, value in slots.items():
        for v, shape in zip(value if isinstance(value, list) else [value], shapes.get(slot, [])):
            if shape and -1 not in shape and math.prod(shape) != np.size(op_jobs.array_of(v)):
                return False
    return True


def keep_memory():
    """Freed arrays stay with the process, as an engine keeps its own: NumPy pays for no pages in the measured rounds."""
    libc = ctypes.CDLL(None)
    for parameter, value in ((M_MMAP_THRESHOLD, 1 << 30), (M_TRIM_THRESHOLD, 1 << 30)):
        libc.mallopt(parameter, value)


def numpy_measurer(job, shapes, clock):
    case = job.case
    if case.ref is None or not case.inputs or not is_vectorised(case):
        return None, "no vectorised reference"
    inputs = op_jobs.typed(case, job.inputs)
    keep_memory()
    # Operators side by side have separate results, which stay: so do NumPy's, or it alone would write to its caches.
    results = [None] * (1 if job.chain else job.count)

    def run():
        given = inputs
        begin = clock()
        for number in range(job.count):
            made = results[number % len(results)] = owned(case.ref(given, job.attrs), given)
            if job.chain:
                given = dict(given, **{job.chain[0]: made[job.chain[1]] if isinstance(made, dict) else made})
        return clock() - begin
    try:
        with np.errstate(all="ignore"):
            if not is_whole(case.ref(inputs, job.attrs), shapes):
                return None, "the reference is of the small case"
            run()
    except Exception as error:
        return None, str(error)[:100]
    return run, None


# ---- the table

def measure(job, sides, rounds, clock=time.perf_counter):
    """Seconds of every round of every engine that can run the job."""
    engines, why = {}, {}
    once = {name: side.ask(dict(job=job.path, count=1)) for name, side in sides.items()}
    if job.count > 1:
        one = max(said.get("seconds", 0) for said in once.values())
        job.count = min(job.count, max(1, int(2 * op_jobs.SECONDS / max(one, 1e-9))))
    for name, side in sides.items():
        engines[name], why[name] = side.measurer(job)
    engines["numpy"], why["numpy"] = numpy_measurer(job, once["product"].get("shapes", {}), clock)
    names = [n for n in engines if engines[n]]
    taken = {n: [] for n in names}
    for number in range(rounds):
        for name in names if number % 2 else reversed(names):
            taken[name].append(engines[name]())
    return {n: t for n, t in taken.items() if None not in t}, {n: w for n, w in why.items() if w}


def result_of(job, taken, why):
    ours = taken.get("product")
    ratios = {n: statistics.median(t / o for t, o in zip(times, ours)) for n, times in taken.items()
              if ours and n != "product"}
    shapes = {slot: ["x".join(map(str, np.shape(getattr(v, "array", getattr(v, "values", v)))))
                     for v in (value if isinstance(value, list) else [value])] for slot, value in job.inputs.items()}
    return dict(row="OPS", op=job.case.op, case=job.case.name, shapes=shapes, count=job.count, chain=bool(job.chain),
                milliseconds={n: float("%.4g" % (1e3 * statistics.median(t) / job.count)) for n, t in taken.items()},
                ratios={n: float("%.3g" % r) for n, r in ratios.items()}, why=why)


def table(results):
    """The worst operators first, then a summary."""
    def worst(r):
        return min(r["ratios"].values(), default=float("inf"))
    lines = ["| operator | inputs | n | ms | of 1.8.5 | of NumPy |", "|---|---|---|---|---|---|"]
    for r in sorted(results, key=worst):
        shapes = " ".join(",".join(v) for v in r["shapes"].values())
        told = ["%.2f" % r["ratios"][n] if n in r["ratios"] else "-" for n in ("fluid18", "numpy")]
        lines.append("| {} | {} | {}{} | {:.4g} | {} | {} |".format(
            r["op"], shapes[:60], r["count"], " chained" if r["chain"] else "", r["milliseconds"].get("product", 0), *told))
    for name in ("fluid18", "numpy"):
        ratios = sorted(r["ratios"][name] for r in results if name in r["ratios"])
        if ratios:
            lines.append("\n%s: %d operators, median %.2f; below %.1f: %d (at most %d are to be), below %.1f: %d (none is to be)" % (
                name, len(ratios), statistics.median(ratios), AIM, sum(r < AIM for r in ratios), MOST_BELOW, LEAST,
                sum(r < LEAST for r in ratios)))
    return "\n".join(lines)


def run(args):
    found = rivals.interpreters(["product", "fluid18"])
    core = max(os.sched_getaffinity(0)) if args.one_core else None
    sides = {"product": Side(found["product"], "anabranch.fluid", "exe cache", core)}
    if "fluid18" in found:
        sides["fluid18"] = Side(found["fluid18"], "paddle.fluid", "exe cache" if args.one_core else "exe cache omp2", core)
    clock = time.process_time if args.one_core else time.perf_counter
    cases, results, begin = op_jobs.load_cases(), [], time.monotonic()
    chosen = args.only.split(",") if args.only else sorted(cases)
    part, parts = map(int, args.part.split("/"))
    with tempfile.TemporaryDirectory() as folder:
        maker = op_jobs.Maker(sides["product"], folder)
        for op in chosen[part - 1::parts]:
            if op in args.done:
                continue
            if args.minutes and time.monotonic() - begin > 60 * args.minutes:
                break
            job = next(filter(None, (maker.make(c) for c in cases[op])), None)
            if job is None:
                result = dict(row="OPS", op=op, unmeasured="no case grows", ratios={}, shapes={}, count=0, chain=False,
                              milliseconds={})
            else:
                result = result_of(job, *measure(job, sides, args.rounds, clock))
            results.append(result)
            print(json.dumps(result), file=args.sink, flush=True)
    for side in sides.values():
        side.end("done")
    return results


def read(paths):
    results = {}
    for path in paths:
        if os.path.exists(path):
            with open(path) as lines:
                results.update((r["op"], r) for r in map(json.loads, lines))
    return list(results.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="operators, separated by commas")
    parser.add_argument("--part", default="1/1", help="every n-th operator: 2/4 is the second of four parts")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--one-core", action="store_true", help="one thread and CPU time for each engine")
    parser.add_argument("--minutes", type=float, help="Start no further operator after this time; a later call resumes")
    parser.add_argument("--out", help="file to which results are added; operators that it has are not measured again")
    parser.add_argument("--table", nargs="+", help="prints the table of these files, measures nothing")
    args = parser.parse_args()
    if args.table:
        return print(table(read(args.table)))
    known = read([args.out]) if args.out else []
    args.done = {r["op"] for r in known}
    with open(args.out or os.devnull, "a") as args.sink:
        print(table(known + run(args)))


if __name__ == "__main__":
    main()
