#!/usr/bin/env python3
"""Random programs of loops here and in Fluid 1.8.5: loops_live.py --rival PYTHON [--first N] [--count N] [--out FILE]

Both build and run each program in children (loop_worker.py), 20 s a program. NumPy decides where they differ.
Prints a table of how programs ended and a line for each that is not "same"; --out records what 1.8.5 made of them
(loop_records.py reads that).
"""
import argparse
import collections
import json
import os
import re
import select
import subprocess
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import loop_records  # noqa: E402
from loop_programs import RandomProgram  # noqa: E402
from loop_reference import Reference, Refused  # noqa: E402

LIMIT_S = 20


class Worker:
    """answers(number): of the program and of its gradients; a crash or a hang costs one child."""

    def __init__(self, command, environment):
        self.command, self.environment, self.child = command, environment, None

    def start(self):
        self.buffer = b""
        self.child = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.DEVNULL, env=self.environment, cwd="/tmp")
        if "ready" not in (self.line(120) or {}):
            raise RuntimeError("%s does not start" % self.command)

    def end(self):
        if self.child:
            self.child.kill()
            self.child.wait()
            self.child = None

    def line(self, limit_s):
        while b"\n" not in self.buffer:
            if not select.select([self.child.stdout], [], [], limit_s)[0]:
                return dict(end="hang")
            got = os.read(self.child.stdout.fileno(), 1 << 16)
            if not got:
                return dict(end="crash")
            self.buffer += got
        line, self.buffer = self.buffer.split(b"\n", 1)
        return json.loads(line)

    def answers(self, number):
        if self.child is None:
            self.start()
        self.child.stdin.write(b"%d\n" % number)
        self.child.stdin.flush()
        said = {}
        for what in ("values", "gradients"):
            said[what] = self.line(LIMIT_S)
            if said[what]["end"] in ("hang", "crash"):
                self.end()
                break
        return said


def python_of(path, fluid, **environment):
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH" and not k.startswith("FLAGS_")}
    command = [path, os.path.join(HERE, "loop_worker.py"), "--fluid", fluid]
    return Worker(command, dict(clean, GLOG_v="0", **environment))


def reason(text):
    """The end of an error without names and numbers."""
    text = text.split("Error Message Summary")[-1].strip(" -:\n")
    text = re.sub(r"\S*_\d+\S*|\d+|0x\w+", "#", text.split("(at")[0])
    return " ".join(text.split())[:140]


def judged(ours, theirs, right):
    """How one part of a program ended: a word, and more of it."""
    ends = ours["end"], theirs["end"]
    if theirs["end"] in ("hang", "crash"):
        return "1.8.5 ends in a %s" % theirs["end"], "" if ends[0] == "ran" else reason(ours["text"])
    if ends == ("refused", "refused"):
        return "both refuse", ""
    if ends == ("ran", "refused"):
        return ("1.8.5 refuses" if right is not None else "1.8.5 alone refuses a mistake"), reason(theirs["text"])
    if ends[0] != "ran":
        return ("WE REFUSE" if right is not None else "we alone refuse a mistake"), reason(ours.get("text", ends[0]))
    wrong = loop_records.different(ours["values"], theirs["values"])
    if not wrong:
        return ("same" if right is not None else "BOTH ACCEPT A MISTAKE"), ""
    if right is None:
        return "both accept a mistake, differently", wrong
    if not right(ours["values"]):
        return "WE ARE WRONG", wrong
    return "1.8.5 is wrong", wrong


def judges(program):
    """Functions that say whether values, gradients are right; None where NumPy refuses the program."""
    try:
        expected = Reference(program).run(program.feed)
    except Refused:
        return dict(values=None, gradients=None)

    def values(got):
        return all(np.allclose(np.ravel(expected[n]), v, rtol=1e-9, atol=1e-9)
                   for n, (_, v) in got.items() if n != "loss")

    def gradients(got):
        draw = np.random.RandomState(program.seed)
        for leaf in ("x", "y", "s", "w"):
            along = draw.uniform(-1, 1, program.feed[leaf].shape)
            slope = Reference(program).slope(program.feed, leaf, along)
            if not np.isclose(np.dot(along.ravel(), got[leaf][1]) if leaf in got else 0, slope, rtol=1e-5, atol=1e-6):
                return False
        return True
    return dict(values=values, gradients=gradients)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rival", default=os.environ.get("BENCH_FLUID18_PYTHON"), help="an interpreter that has 1.8.5")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--out")
    arguments = parser.parse_args()
    package = os.pathsep.join(p for p in sys.path if os.path.exists(os.path.join(p, "anabranch")))
    here = python_of(sys.executable, "anabranch.fluid", PYTHONPATH=package)
    there = python_of(arguments.rival, "paddle.fluid")
    totals, reasons, records = collections.Counter(), collections.Counter(), []
    for number in range(arguments.first, arguments.first + arguments.count):
        program = RandomProgram(number)
        ours, theirs, right = here.answers(number), there.answers(number), judges(program)
        for what in ours:
            word, more = judged(ours[what], theirs.get(what, dict(end="crash")), right[what])
            totals[what, word] += 1
            reasons[what, word, more if "refuse" in word.lower() else ""] += 1
            if word.isupper() or word == "1.8.5 is wrong" and what == "values":
                print("%d %s: %s %s" % (number, what, word, more), flush=True)
        records.append(loop_records.record(program, theirs))
    here.end(), there.end()
    print("\n".join("%-10s %6d  %s" % (*k[:1], n, k[1]) for k, n in sorted(totals.items())))
    print("\n".join("%6d  %s: %s: %s" % (n, *k) for k, n in reasons.most_common(60) if k[2]))
    if arguments.out:
        loop_records.write(arguments.out, records)
    return any(word.isupper() for _, word in totals)


if __name__ == "__main__":
    sys.exit(main())
