"""Five nets with batch norm next to Fluid 1.8.5 and PyTorch, and two nets whose numbers become tiny as they train.

    long_run.py [--only "2-D narrow,dead units"] [--steps 20000] [--rounds 9] [--one-core]

Nets with batch norm: samples/s of every engine, ours with batch_norm and relu fused and apart. All engines are alive at
once and measured in slices in random order; a ratio is the median of rounds with its 95 % interval, above 1 where ours,
fused, is faster. Long runs: a net is trained for --steps steps, then measured in turn with a net that has just begun, in
the same process; `kept` is the speed of the old one by that of the new one. PyTorch has set_flush_denormal(True).

Ratios are of CPU seconds, samples/s of wall seconds. With --one-core each engine has one core and one thread.
"""
import argparse
import os
import random
import signal
import sys

import intervals
import long_nets
import models
import rivals

SLICE, AGING, YOUNG = 0.1, 200, 20      # seconds of a measurement; steps of one request; steps of a slice of a long run


class Side(models.Side):
    limit = 120.0

    def __init__(self, python, module, config, core):
        super().__init__(python, module, config, core)
        self.command[1:4] = [os.path.join(models.ops.HERE, "long_side.py"), "--engine", module]


def sides_of(one_core):
    found = rivals.interpreters(["product", "fluid18", "torch"])
    core, threads = (max(os.sched_getaffinity(0)), "") if one_core else (None, " omp2")
    known = dict(product="anabranch.fluid", fluid18="paddle.fluid", torch="torch")
    return {engine: Side(found[engine], module, "exe cache" + threads, core)
            for engine, module in known.items() if engine in found}


def measured(sides, keys, runs, rounds):
    """[{key: {wall, cpu}}] of rounds; `keys`: {key: side}."""
    found, order, draw = [], list(keys), random.Random(1)
    for _ in range(rounds):
        draw.shuffle(order)
        found.append({key: sides[keys[key]].ask({"as": key, "runs": runs[key]}) for key in order})
    return found


def ratio(rounds, one, other, field="cpu"):
    """Seconds of `one` by those of `other`, as text."""
    middle, low, high = intervals.interval([r[one][field] / r[other][field] for r in rounds])
    return "%.2f (%.2f-%.2f)" % (middle, low, high) if low else "%.2f" % middle


def median(rounds, key, field="wall"):
    values = sorted(r[key][field] for r in rounds)
    return values[len(values) // 2]


def norms(name, sides, rounds):
    keys = {"fused": "product", "apart": "product"}
    keys.update((side, side) for side in sides if side != "product")
    runs, losses = {}, {}
    for key, side in keys.items():
        said = sides[side].ask({"as": key, "net": name, "apart": key == "apart" if side == "product" else None})
        if "error" in said:
            raise SystemExit("%s: %s: %s" % (name, key, said["error"]))
        losses[key] = said["losses"]
        runs[key] = max(1, int(SLICE / sides[side].ask({"as": key, "runs": 3})["wall"]))
    found = measured(sides, keys, runs, rounds)
    rows = long_nets.NORMS[name]["shape"][0]
    cells = ["%.0f" % (rows / median(found, key)) for key in keys]
    cells += [ratio(found, key, "fused") for key in keys if key != "fused"]
    cells += ["%.4f" % losses[key][9] for key in keys]
    print("| %s | %s |" % (name, " | ".join(cells)), flush=True)
    for key, side in keys.items():
        sides[side].ask({"as": key, "drop": True})


def long(name, sides, steps, rounds):
    for side in sides:
        sides[side].ask({"as": "old", "net": name})
        first = sides[side].ask({"as": "old", "runs": 100})
        if "error" in first:
            print("%s: %s: %s" % (name, side, first["error"]))
            continue
        for _ in range(steps // AGING):
            last = sides[side].ask({"as": "old", "runs": AGING})
        sides[side].ask({"as": "new", "net": name})
        found = measured(sides, dict(old=side, new=side), dict(old=YOUNG, new=YOUNG), rounds)
        rows = len(long_nets.batches(name)[0]["x"])
        print("| %s | %s | %.0f | %.0f | %.0f | %s | %.3g |" % (
            name, side, rows / first["wall"], rows / last["wall"], rows / median(found, "old"),
            ratio(found, "new", "old"), last["loss"]), flush=True)
        for key in ("old", "new"):
            sides[side].ask({"as": key, "drop": True})


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))      # so that the engines are ended, too
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="names of nets, separated by commas: " + ", ".join(list(long_nets.NORMS)
                                                                                       + list(long_nets.LONG)))
    parser.add_argument("--steps", type=int, default=20000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--one-core", action="store_true", help="one core and one thread for each engine")
    args = parser.parse_args()
    names = args.only.split(",") if args.only else list(long_nets.NORMS) + list(long_nets.LONG)
    sides = sides_of(args.one_core)
    rivals_of = [side for side in sides if side != "product"]
    try:
        head = ["net", "fused, samples/s", "apart"] + rivals_of + ["apart by fused"]
        head += [side + " by fused" for side in rivals_of] + ["loss of step 10: fused", "apart"] + rivals_of
        print("| %s |\n|%s" % (" | ".join(head), "---|" * len(head)))
        for name in [n for n in names if n in long_nets.NORMS]:
            norms(name, sides, args.rounds)
        print("| net | engine | samples/s, first 100 steps | last %d of %d | measured with a new one | kept | loss |"
              "\n|---|---|---|---|---|---|---|" % (AGING, args.steps))
        for name in [n for n in names if n in long_nets.LONG]:
            long(name, sides, args.steps, args.rounds)
    finally:
        for side in sides.values():
            side.end("done")


if __name__ == "__main__":
    main()
