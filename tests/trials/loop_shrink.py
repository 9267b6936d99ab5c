#!/usr/bin/env python3
"""Makes a random program of loops smaller as long as its trial ends alike: loop_shrink.py NUMBER"""
import copy
import sys

import loops
from loop_programs import RandomProgram
from loop_reference import Reference, Refused

import anabranch.fluid as fluid


def smaller(steps, group_of):
    """Lists of steps in which one is left out, at any depth, or one input is another."""
    for k in reversed(range(len(steps))):
        yield steps[:k] + steps[k + 1:]
    for k, each in enumerate(steps):
        for b, block in enumerate(each.blocks):
            for inner in smaller(list(block.steps), group_of):
                blocks = (*each.blocks[:b], block._replace(steps=inner), *each.blocks[b + 1:])
                yield [*steps[:k], each._replace(blocks=blocks), *steps[k + 1:]]
    for k, each in enumerate(steps):
        if each.kind in ("StaticRNN", "IfElse") and len(each.ins) > 2:
            yield [*steps[:k], each._replace(ins=each.ins[:-1],
                                             blocks=[b._replace(names=b.names[:len(each.ins) - 2]) for b in each.blocks]
                                             if each.kind == "IfElse" else each.blocks), *steps[k + 1:]]
        for b, block in enumerate(each.blocks):
            for r, result in enumerate(block.results):
                for made in block.steps:
                    inside = {o for s in block.steps for o in s.outs} | set(block.names)
                    if result in made.outs and made.ins and made.ins[0] in inside - {result, "x", "y", "s"}:
                        results = (*block.results[:r], made.ins[0], *block.results[r + 1:])
                        blocks = (*each.blocks[:b], block._replace(results=results), *each.blocks[b + 1:])
                        yield [*steps[:k], each._replace(blocks=blocks), *steps[k + 1:]]
        for i, name in enumerate(each.ins):
            if group_of.get(name) == "B":
                yield [*steps[:k], each._replace(ins=(*each.ins[:i], "x", *each.ins[i + 1:])), *steps[k + 1:]]


def with_steps(program, steps):
    made = copy.copy(program)
    made.steps = steps
    outs = {o for s in steps for o in s.outs}
    made.matrices = [n for n in program.matrices if n in outs or n in ("x", "y", "s")]
    made.shown = [n for n in program.shown if n in outs]
    return made


def verdict_of(program, key=None):
    try:
        reference = Reference(program)
        try:
            reference.run(program.feed)
            refused = False
        except Refused:
            refused = True
        verdict, text = loops.trial_of(program)
        verdict += " bad" if refused else ""
    except fluid.core.EnforceNotMet as e:
        verdict, text = type(e).__name__, str(e)
    except (KeyError, ValueError, IndexError, AttributeError, TypeError) as e:
        return "none", str(e)
    words = text.split("\n")[0].split(": ")
    return (verdict, words[-2][-18:] if verdict == "WRONG" and len(words) > 1 else words[-1][:30]), text


def shrunk(program):
    expected, text = verdict_of(program)
    again = expected[0] != "ran"
    while again:
        again = False
        for steps in smaller(list(program.steps), program.group_of):
            made = with_steps(program, steps)
            if not made.matrices:
                continue
            got, said = verdict_of(made)
            if got[0] == expected[0] and (expected[0] == "WRONG" or got == expected):
                program, text, again = made, said, True
                break
    return program, text


if __name__ == "__main__":
    fluid.set_flags({"FLAGS_measure_threads": False})
    made, said = shrunk(RandomProgram(int(sys.argv[1])))
    print(said[:1500])
    print(made)
