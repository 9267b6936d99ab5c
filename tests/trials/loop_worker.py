#!/usr/bin/env python3
"""Builds and runs random programs of loops in one implementation: loop_worker.py --fluid paddle.fluid < NUMBERS

For each number two lines of JSON: of the program, and of its gradients. Other output goes to stderr.
"""
import argparse
import functools
import importlib
import json
import os
import sys
import warnings

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import loop_build  # noqa: E402
from loop_programs import RandomProgram  # noqa: E402


def told(value):
    """Values as text: short, and the same double again."""
    array = np.array(value)
    return [list(array.shape), array.ravel().tolist()]


def attempt(work):
    try:
        return dict(end="ran", **work())
    except Exception as e:  # both raise many kinds
        return dict(end="refused", text="%s: %s" % (type(e).__name__, str(e)[-400:]))


def values(program, fluid):
    net = loop_build.build(program, fluid, gradients=False)
    fetch = [net.variables[n] for n in program.shown] + [net.loss] + net.made
    got = loop_build.run(net, fluid, program, [program.feed], fetch)
    return dict(values=dict(zip([*program.shown, "loss"], map(told, got))))


def gradients(program, fluid):
    net = loop_build.build(program, fluid)
    got = loop_build.run(net, fluid, program, [program.feed], list(net.gradients.values()) or [net.loss])
    return dict(values=dict(zip(net.gradients, map(told, got))))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fluid", default="paddle.fluid")
    arguments = parser.parse_args()
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    fluid = importlib.import_module(arguments.fluid)
    print(json.dumps(dict(ready=True)), file=out, flush=True)
    for line in sys.stdin:
        program = RandomProgram(int(line))
        for what, work in (("values", values), ("gradients", gradients)):
            said = attempt(functools.partial(work, program, fluid))
            print(json.dumps(dict(of=program.seed, what=what, **said)), file=out, flush=True)


if __name__ == "__main__":
    main()
