"""Batch norms of many shapes, forward and backward, with relu fused and apart, next to Fluid 1.8.5 and PyTorch.

A figure is GB/s of the bytes that the pass reads and writes at least: 2 tensors forward, 3 backward, 4 backward with
relu. The column `triad` is the bandwidth that x + 2 y reaches on tensors of the same size. All engines are alive at
once and measured in turn; a figure is the fastest round.

    norms.py [--only narrow,wide] [--rounds 7] [--one-core] [--json build/norms.jsonl]

On a machine that does other things, too, `--one-core` gives each engine one core and one thread and measures CPU times.
"""
import argparse
import json
import math
import os
import time

import common
import ops
import rivals

SHAPES = {"narrow": ([64, 16, 8, 8], "NCHW"), "narrow8": ([32, 8, 16, 16], "NCHW"), "wide": ([8, 256, 14, 14], "NCHW"),
          "audio4": ([32, 64, 1, 400], "NCHW"), "audio": ([32, 64, 400], "NCHW"), "last": ([32, 16, 16, 32], "NHWC"),
          "last256": ([8, 14, 14, 256], "NHWC"), "matrix": ([256, 128], "NCHW"), "large": ([16, 64, 56, 56], "NCHW")}
TENSORS = {("forward", ""): 2, ("forward", "relu"): 2, ("backward", ""): 3, ("backward", "relu"): 4, ("triad", ""): 3}
BYTES_OF_ALL = 8 << 20                             # of the tensors of a job: more than inner caches hold, less than the last
ROUND = 0.03                                       # seconds of one measurement


class Side(ops.Side):
    def __init__(self, python, module, config, core):
        super().__init__(python, module, config, core)
        self.command = [python, os.path.join(ops.HERE, "norm_side.py"), "--engine", module]
        if core is not None:
            self.command += ["--core", str(core)]

    def measurer(self, job):
        found = self.ask(dict(job=job))
        if "error" in found:
            return None
        runs = max(1, int(ROUND / max(found["seconds"], 1e-9)))
        return lambda: self.ask(dict(runs=runs)).get("seconds")


def job_of(name, kind, act, apart):
    shape, layout = SHAPES[name]
    count = max(2, min(32, BYTES_OF_ALL // (4 * math.prod(shape) * TENSORS[kind, act])))
    return {"shape": shape, "layout": layout, "pass": kind, "act": act, "apart": apart, "count": count}


def bytes_of(job):
    return 4 * math.prod(job["shape"]) * TENSORS[job["pass"], job["act"]] * job["count"]


def measure(name, kind, act, sides, rounds):
    """GB/s of every column."""
    made = {}
    for column, side in sides.items():
        if column == "apart" and not act:
            continue
        job = job_of(name, kind, act, column == "apart")
        if column == "triad":
            job = job_of(name, "triad", "", False)
        run = side.measurer(job)
        if run:
            made[column] = (run, bytes_of(job))
    taken = {column: [] for column in made}
    for number in range(rounds):
        for column in list(made) if number % 2 else reversed(list(made)):
            taken[column].append(made[column][0]())
    return {column: made[column][1] / min(times) / 1e9 for column, times in taken.items() if None not in times}


def sides_of(one_core):
    found = rivals.interpreters(["product", "fluid18", "torch"])
    core = max(os.sched_getaffinity(0)) if one_core else None
    sides = {"product": Side(found["product"], "anabranch.fluid", "exe cache", core),
             "apart": Side(found["product"], "anabranch.fluid", "exe cache", core)}
    if "fluid18" in found:
        sides["fluid18"] = Side(found["fluid18"], "paddle.fluid", "exe cache" if one_core else "exe cache omp2", core)
    if "torch" in found:
        sides["torch"] = Side(found["torch"], "torch", "", core)
        sides["triad"] = Side(found["torch"], "torch", "", core)
    return sides


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="names of shapes, separated by commas: " + ", ".join(SHAPES))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--one-core", action="store_true", help="one thread and CPU time for each engine")
    parser.add_argument("--json", help="file to which the figures are added, one line for each shape and pass")
    args = parser.parse_args()
    sides, began = sides_of(args.one_core), time.strftime("%Y-%m-%d %H:%M")
    print("| shape | pass | " + " | ".join(sides) + " |\n|---|---|" + "---|" * len(sides))
    with open(args.json or os.devnull, "a") as sink:
        for name in args.only.split(",") if args.only else SHAPES:
            for kind, act in list(TENSORS)[:4]:
                rates = measure(name, kind, act, sides, args.rounds)
                shape = "x".join(map(str, SHAPES[name][0])) + (" last" if SHAPES[name][1] == "NHWC" else "")
                cells = ["%.1f" % rates[c] if c in rates else "-" for c in sides]
                print("| {} | {} {} | {} |".format(shape, kind, act, " | ".join(cells)), flush=True)
                print(json.dumps(dict(shape=shape, kind=kind, act=act, rates=rates, began=began)), file=sink, flush=True)
    for side in sides.values():
        side.end("done")


if __name__ == "__main__":
    main()
