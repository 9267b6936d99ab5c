"""Trials in which an output is an input: every pair of a tensor read and a tensor written, against the op with a
variable for each. Right numbers or a typed error are fine.
"""

import functools
import random

from built import OFF, build, run, same
from one_op import EMPTY, from_cases
from op_case import Rows
from single_ops import RANDOM
from verdicts import judge

from anabranch import _core


@functools.lru_cache(maxsize=4)
def pairs(name):
    """[(op, (slot, number) of the input, (slot, number) of the output)]"""
    found = []
    for one in from_cases(name):
        sources = [
            (slot, k)
            for slot, names in one.ins.items()
            for k, n in enumerate(names)
            if n != EMPTY and one.vars[n].value is not None and not isinstance(one.vars[n].value, Rows)
        ]
        targets = [
            (slot, k)
            for slot, names in one.outs.items()
            for k, n in enumerate(names)
            if n != EMPTY and n not in one.inputs()
        ]
        found += [(one, a, b) for a in sources for b in targets]
    return found


def names():
    return [op for op in _core.op_types() if pairs(op)]


class Counts(dict):
    def __missing__(self, name):
        return len(pairs(name))


COUNT = Counts()


def trial(name, number):
    one, (slot, k), (out, j) = pairs(name)[number]

    def attempt(changed, threads=1, passes=""):
        return judge(lambda: build(changed, "append", False, random.Random(0)), lambda made: run(made, threads, passes))

    apart = attempt(one)
    if name in RANDOM or not apart.made:
        return "skipped", apart.text
    changed = one.copy()
    x, y = one.ins[slot][k], one.outs[out][j]
    changed.outs[out][j] = x
    for threads, passes in ((1, ""), (7, OFF)):
        got = attempt(changed, threads, passes)
        if not got.made:
            return got.verdict, got.text
        held = dict(zip(got.made[3], got.got))
        for n, value in zip(apart.made[3], apart.got):
            n = x if n == y else n
            if n in held and not same([value], [held[n]]):
                return "WRONG", "%s[%d] is %s[%d]: %s is %s, must be %s" % (out, j, slot, k, n, held[n][0], value[0])
    return "ran", ""
