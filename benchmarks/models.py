"""Nets of public code (tests/models), grown to the sizes that people train, next to Fluid 1.8.5: ./dev bench --models.

Both engines are alive at once, start from the same parameters and must report the same losses in their first steps. A
round measures each for one slice, in random order. `wall` and `CPU` are the medians of the ratios of rounds, 1.8.5's
seconds of a step by ours, with their 95 % intervals: above 1 means that ours is faster. Those below 1 come first.

    models.py [--only resnet50,din] [--rounds 9] [--one-core] [--profile] [--out build/models.jsonl]
    models.py --table build/models.jsonl ...      the table of results measured before, the last of each net

1.8.5 runs with one and with two threads, and the faster one counts. On a machine that does other things, too, `--one-core`
gives each engine one core and one thread; then only CPU is meaningful. --profile adds the slowest operators of losers.
"""
import argparse
import json
import math
import os
import random
import signal
import sys
import tempfile

import intervals
import model_parts
import ops
import rivals

SLICE = 0.12        # seconds of one measurement, at least one step
LONGEST = 0.6       # seconds of a step; a net that takes longer is grown less
SHORT, MORE = 2e-3, 16       # seconds; a net that takes less gets MORE times the rows
NOT_EQUAL = 2e-3    # losses of the first steps may differ by so much of their size
PROFILED = 8        # operators of a loser


class Side(ops.Side):
    """An engine, stopped by a signal while others are measured: threads of some spin for a while after their work."""
    limit = 25.0

    def __init__(self, python, module, config, core):
        super().__init__(python, module, config, core)
        self.command[1] = os.path.join(ops.HERE, "model_side.py")
        self.environment["PYTHONDONTWRITEBYTECODE"] = "1"

    def ask(self, request):
        self.signal(signal.SIGCONT)
        said = super().ask(request)
        self.signal(signal.SIGSTOP)
        return said

    def signal(self, number):
        if self.child is not None and self.child.poll() is None:
            os.killpg(self.child.pid, number)


def sides_of(one_core):
    found = rivals.interpreters(["product", "fluid18"])
    core = max(os.sched_getaffinity(0)) if one_core else None
    sides = {"product": Side(found["product"], "anabranch.fluid", "exe cache", core),
             "fluid18": Side(found["fluid18"], "paddle.fluid", "exe cache", core)}
    if not one_core:
        sides["fluid18 omp2"] = Side(found["fluid18"], "paddle.fluid", "exe cache omp2", core)
    return sides


def same(one, other):
    return all(abs(a - b) <= NOT_EQUAL * max(abs(a), 1e-2) for a, b in zip(one, other) if not math.isnan(a + b))


def build(name, sides):
    """(growth, {side: answer}) of the largest growth that both engines run alike; answers hold "error" if there is none."""
    growth, said = grown(name, sides, model_parts.GROWTHS)
    if growth["times"] > 1 and said["product"].get("wall", SHORT) < SHORT:      # batches of public programs are larger, too
        growth, said = grown(name, sides, [dict(growth, times=MORE * growth["times"]), growth])
    return growth, said


def grown(name, sides, growths):
    for growth in growths:
        with tempfile.TemporaryDirectory() as folder:
            request = dict(net=name, growth=growth, values=os.path.join(folder, "values.json"),
                           most=LONGEST if growth != model_parts.GROWTHS[-1] else 1e9)
            said = {}
            for side, engine in sides.items():
                said[side] = engine.ask(request)
                if "error" in said[side]:
                    break
            else:
                losses = [answer["losses"] for answer in said.values()]
                if same(losses[0], losses[1]):
                    return growth, said
                said[side] = dict(error="losses %s are not %s" % tuple(losses[:2]))
    return growth, said


def race(name, sides, rounds):
    """{net, growth, losses, rounds: [{side: {wall, cpu}}]} or {net, error}"""
    growth, said = build(name, sides)
    errors = ["%s: %s" % (side, answer["error"]) for side, answer in said.items() if "error" in answer]
    if errors:
        return dict(net=name, error="; ".join(errors))
    runs = {side: max(1, int(SLICE / max(answer["wall"], 1e-9))) for side, answer in said.items()}
    draw, measured, names = random.Random(name), [], list(sides)
    for _ in range(rounds):
        draw.shuffle(names)
        measured.append({side: sides[side].ask(dict(runs=runs[side])) for side in names})
    return dict(net=name, growth=growth, losses={side: said[side]["losses"] for side in said}, rounds=measured)


def ratios(entry, field):
    """(median, low, high) of the faster configuration of 1.8.5 by ours."""
    found = []
    for rival in [side for side in entry["rounds"][0] if side != "product"]:
        rows = [r for r in entry["rounds"] if field in r["product"] and field in r[rival]]
        found.append(intervals.interval([r[rival][field] / max(r["product"][field], 1e-9) for r in rows]))
    return min(found)


def size_of(growth):
    said = ["large" if growth["sizes"] else "small"]
    said += ["%s %d" % (word, growth[key]) for key, word in (("pixels", "sides x"), ("wide", "channels x"),
                                                             ("times", "rows x")) if growth[key] > 1]
    return ", ".join(said)


def row_of(entry):
    def cell(found):
        return "%.2f" % found[0] + (" (%.2f-%.2f)" % found[1:] if found[1] else "")
    steps = sorted(r["product"]["cpu"] * 1e3 for r in entry["rounds"])
    return "| %s | %s | %.2f | %s | %s |" % (entry["net"], size_of(entry["growth"]), steps[len(steps) // 2],
                                             cell(ratios(entry, "wall")), cell(ratios(entry, "cpu")))


def table(entries):
    good = [e for e in entries if "rounds" in e]
    print("| net | size | CPU ms of a step | wall | CPU |\n|---|---|---|---|---|")
    for entry in sorted(good, key=lambda e: ratios(e, "cpu")[0]):
        print(row_of(entry))
    for entry in [e for e in entries if "rounds" not in e]:
        print("%s: not measured: %s" % (entry["net"], entry["error"]))
    for field in ("wall", "cpu"):
        found = [ratios(e, field) for e in good]
        lost = sum(high is not None and high < 1 for _, _, high in found)
        print("%s: %d nets, geometric mean %.2f, below 1: %d, of these certainly: %d" % (
            field, len(good), math.exp(sum(math.log(f[0]) for f in found) / len(good)), sum(f[0] < 1 for f in found), lost))


def profiles(sides):
    for side in ("product", "fluid18"):
        said = sides[side].ask(dict(profile=3))
        print("    %s: %s" % (side, said.get("error") or ", ".join("%s %.2f" % tuple(op) for op in said["ops"][:PROFILED])))


def read(paths):
    found = {}
    for path in paths:
        with open(path) as lines:
            found.update((entry["net"], entry) for entry in map(json.loads, lines))
    return list(found.values())


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))      # so that the engines are ended, too
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="names of nets, separated by commas")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--one-core", action="store_true", help="one core and one thread for each engine")
    parser.add_argument("--profile", action="store_true", help="the slowest operators of each net that loses")
    parser.add_argument("--out", default=os.devnull, help="file to which results are added, one line for each net")
    parser.add_argument("--table", nargs="+", metavar="FILE", help="prints the table of these results")
    args = parser.parse_args()
    if args.table:
        return table(read(args.table))
    sides, entries = sides_of(args.one_core), []
    try:
        with open(args.out, "a") as sink:
            for name in args.only.split(",") if args.only else sorted(model_parts.modules()):
                entry = race(name, sides, args.rounds)
                print(json.dumps(entry), file=sink, flush=True)
                print(row_of(entry) if "rounds" in entry else "%s: %s" % (name, entry["error"]), flush=True)
                if args.profile and "rounds" in entry and ratios(entry, "cpu")[0] < 1:
                    profiles(sides)
                entries.append(entry)
    finally:
        for side in sides.values():
            side.end("done")
    table(entries)


if __name__ == "__main__":
    main()
