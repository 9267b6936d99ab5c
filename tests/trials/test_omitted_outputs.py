"""Every op of the registry with each of its outputs left out, and with no name for it: the others keep their numbers,
or there is a typed error. An optional output may always be left out.
"""

import random

import numpy as np
import pytest
from built import build, run, same
from one_op import EMPTY, from_cases
from single_ops import RANDOM

import anabranch.fluid as fluid
from anabranch import _core


def variants(one):
    """(slot, the op without it) for each output slot that names something; first left out, then without a name."""
    for slot in [s for s, names in one.outs.items() if names and set(names) != {EMPTY}]:
        less, unnamed, without_first = one.copy(), one.copy(), one.copy()
        del less.outs[slot]
        unnamed.outs[slot] = [EMPTY] * len(one.outs[slot])
        without_first.outs[slot][0] = EMPTY
        yield from ((slot, less), (slot, unnamed), (slot, without_first))


def outputs(one):
    """Name -> (arrays, sequences) of what can be fetched."""
    made = build(one, "append", False, random.Random(0))
    return dict(zip(made[3], run(made, 1, "")))


@pytest.mark.parametrize("op", _core.op_types())
def test_outputs_may_be_left_out(op):
    seen, optional = set(), {s["name"] for s in _core.op_info(op)["outputs"] if s["optional"] or s["intermediate"]}
    for one in from_cases(op):
        if (tuple(one.ins), tuple(one.outs)) in seen:
            continue
        seen.add((tuple(one.ins), tuple(one.outs)))
        whole = outputs(one)
        for slot, less in variants(one):
            try:
                got = outputs(less)
            except fluid.core.EnforceNotMet as e:
                assert e.kind != "Internal", "%s without %s: %s" % (op, slot, e)
                assert slot not in optional or needed(op, slot), "%s without %s, which is optional: %s" % (op, slot, e)
                continue
            for name, value in got.items() if op not in RANDOM else ():
                assert same([value], [whole[name]]), "%s without %s: %s" % (op, slot, name)


def free(op):
    """Slots of outputs that an op may do without."""
    return {s["name"] for s in _core.op_info(op)["outputs"] if s["optional"] or s["intermediate"]}


@pytest.mark.parametrize("op", [op for op in _core.op_types() if len(free(op)) > 1])
def test_all_of_them_may_be_left_out_at_once(op):
    for one in from_cases(op):
        slots = [slot for slot in one.outs if slot in free(op)]
        if len(slots) < 2 or len(slots) == len(one.outs):
            continue
        whole = outputs(one)
        absent, unnamed = one.copy(), one.copy()
        for slot in slots:
            del absent.outs[slot]
            unnamed.outs[slot] = [EMPTY] * len(one.outs[slot])
        for less in (absent, unnamed):
            got = outputs(less)
            assert got
            for name, value in got.items() if op not in RANDOM else ():
                assert same([value], [whole[name]]), "%s without %s: %s" % (op, slots, name)


def outcome(one):
    try:
        return outputs(one)
    except fluid.core.EnforceNotMet as e:
        assert e.kind != "Internal", "%s: %s" % (one.op, e)
        return None


def may_be_absent(op):
    """Slots of single inputs that an op may do without."""
    return {s["name"] for s in _core.op_info(op)["inputs"] if s["optional"] and not s["list"]}


@pytest.mark.parametrize("op", [op for op in _core.op_types() if may_be_absent(op)])
def test_an_optional_input_without_a_name_is_one_that_is_left_out(op):
    """A gradient that is asked for all the same is refused."""
    for one in from_cases(op):
        for slot in [slot for slot, names in one.ins.items() if slot in may_be_absent(op) and names]:
            absent, unnamed = one.copy(), one.copy()
            del absent.ins[slot]
            unnamed.ins[slot] = [EMPTY] * len(one.ins[slot])
            expected, got = outcome(absent), outcome(unnamed)
            assert (expected is None) == (got is None), "%s without %s" % (op, slot)
            for name, value in (got or {}).items() if op not in RANDOM else ():
                assert same([value], [expected[name]]), "%s without %s: %s" % (op, slot, name)


def needed(op, slot):
    """Optional in the schema, because other attributes or inputs do without."""
    return (op, slot) in ()


def test_many_outputs_are_left_out():
    some = [from_cases(op)[0] for op in ("batch_norm", "lstm_grad", "adam", "relu")]
    count = sum(len(list(variants(one))) for one in some)
    assert count > 20
    (values,), _ = outputs(from_cases("relu")[0])["out.out0"]
    assert values.size and np.all(values >= 0) and np.any(values > 0)
