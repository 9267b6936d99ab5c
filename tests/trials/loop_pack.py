#!/usr/bin/env python3
"""Packs random programs of loops for tests/cpp/replay: loop_pack.py FILE [--first N] [--count N]

Each with its gradients and what it is fed on 1 to 3 replicas. Programs that must be refused are left out.
"""
import argparse
import os
import struct
import sys
import tempfile

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import loop_build  # noqa: E402
from loop_programs import RandomProgram  # noqa: E402
from loop_reference import Reference, Refused  # noqa: E402

import anabranch.fluid as fluid  # noqa: E402


def number(n):
    return struct.pack("<I", n)


def text(of):
    of = of.encode() if isinstance(of, str) else of
    return number(len(of)) + of


class Streams:
    """Values as Fluid's files have them: save_vars writes them."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.executor = fluid.Executor(fluid.CPUPlace())

    def of(self, values):
        program, scope = fluid.Program(), fluid.Scope()
        for name, value in values.items():
            array = np.array(value)
            program.global_block().create_var(name=name, shape=array.shape, dtype=str(array.dtype), persistable=True)
            lod = value.lod() if hasattr(value, "lod") else None
            tensor = scope.var(name).get_tensor()
            tensor.set(array, fluid.CPUPlace())
            if lod:
                tensor.set_lod(lod)
        with fluid.scope_guard(scope):
            fluid.io.save_vars(self.executor, self.folder.name, program, predicate=lambda v: True)
        made = number(len(values))
        for name in values:
            with open(os.path.join(self.folder.name, name), "rb") as f:
                made += text(name) + text(f.read())
        return made


def packed(streams, program):
    feeds = [program.feed] + [program.other_feed(1000 * program.seed + k) for k in range(program.seed % 3)]
    for feed in feeds:
        Reference(program).run(feed)
    net = loop_build.build(program, fluid)
    fetch = [net.variables[n] for n in program.shown] + [net.loss, *net.gradients.values()]
    return b"".join([number(program.seed), text(net.main.desc.serialize_to_string()), text(net.loss.name),
                     streams.of({"w": program.feed["w"]}), number(len(feeds)),
                     *[streams.of(loop_build.fed(program, fluid, feed)) for feed in feeds],
                     number(len(fetch)), *[text(v.name) for v in fetch]])


def pack(path, first, count):
    """How many there are."""
    streams, done = Streams(), 0
    with open(path, "wb") as f:
        for k in range(first, first + count):
            try:
                f.write(packed(streams, RandomProgram(k)))
                done += 1
            except Refused:
                continue
    return done


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=300)
    arguments = parser.parse_args()
    print("%d programs" % pack(arguments.file, arguments.first, arguments.count))


if __name__ == "__main__":
    main()
