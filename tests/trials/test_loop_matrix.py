"""Every kind of block, alone and two deep, with sequences of length 0: NumPy's values, slopes by central differences,
the bits of the program written out on the same number of replicas, the same bits on 1, 2 and 7 threads.
"""
import loop_build
import loop_unrolled
import loops
import numpy as np
import pytest
from loop_matrix import INSIDE, KINDS, nested
from loop_reference import Reference
from threaded_runs import Meeting

import anabranch.fluid as fluid

REPEATING = {"While", "while_loop", "StaticRNN", "DynamicRNN"}
ALONE = [([], inside) for inside in INSIDE] + [([kind], inside) for kind in KINDS for inside in INSIDE]
PAIRS = [([outer, inner], "product") for outer in KINDS for inner in KINDS]


def fetched(program, net, feeds, threads):
    """Values, loss and gradients, all as one list of arrays."""
    target = loops.compiled(net, len(feeds), threads)
    fetch = [net.variables["out"], net.loss, *net.gradients.values()]
    return [np.array(v) for v in loop_build.run(net, fluid, program, feeds, fetch, target)]


def check(kinds, inside, replicas, all_threads):
    program = nested(kinds, inside)
    net, feeds = loop_build.build(program, fluid), program.feeds(replicas)
    first, *others = [fetched(program, net, feeds, threads) for threads in all_threads]
    for got in others:
        assert [a.tobytes() for a in got] == [a.tobytes() for a in first]
    reference = Reference(program)
    expected = np.concatenate([reference.run(feed)["out"] for feed in feeds])
    assert (reference.iterations > 0) == bool(REPEATING & set(kinds))
    np.testing.assert_allclose(first[0], expected, rtol=1e-11, atol=1e-12)
    assert set(net.gradients) >= {"x"}, "nothing to differentiate"
    assert loops.wrong_gradient(program, dict(zip(net.gradients, first[2:])), feeds) == ("ran", "")
    compare_with_unrolled(program, net, first, feeds)


def compare_with_unrolled(program, net, got, feeds):
    """Bit for bit, gradients too: they are added up in one order."""
    unrolled = loop_unrolled.build(program, fluid, feeds[0])
    assert len(unrolled.main.blocks) == 1
    expected = fetched(program, unrolled, feeds, 1)
    np.testing.assert_array_equal(got[0], expected[0])
    np.testing.assert_array_equal(got[1], expected[1])
    ours, theirs = (dict(zip(n.gradients, v[2:])) for n, v in ((net, got), (unrolled, expected)))
    for leaf in set(ours) | set(theirs):
        a, b = ours.get(leaf), theirs.get(leaf)
        a, b = np.zeros_like(b) if a is None else a, np.zeros_like(a) if b is None else b
        np.testing.assert_array_equal(a, b, err_msg=leaf)


@pytest.mark.parametrize("kinds, inside", ALONE, ids=lambda v: "-".join(v) if isinstance(v, list) else v)
@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_alone(kinds, inside, replicas):
    check(kinds, inside, replicas, (1, 2, 7))


@pytest.mark.parametrize("kinds, inside", PAIRS, ids=lambda v: "-".join(v) if isinstance(v, list) else v)
def test_one_in_another(kinds, inside):
    replicas = 1 + (list(KINDS).index(kinds[0]) + list(KINDS).index(kinds[1])) % 3
    check(kinds, inside, replicas, (1, 2, 7))


@pytest.mark.parametrize("kinds", [p for p, _ in PAIRS], ids="-".join)
def test_one_in_another_with_several_parts_per_iteration(kinds):
    check(kinds, "again", 1 + (len(kinds[0]) + len(kinds[1])) % 3, (1, 2))


def test_threads_are_at_work_at_once():
    program = nested(["While", "DynamicRNN"])
    net, feeds = loop_build.build(program, fluid), program.feeds(3)
    target, scope = loops.compiled(net, 3, 2), fluid.Scope()
    loop_build.run(net, fluid, program, feeds, [net.loss], target, scope)
    meeting = Meeting()
    target._engine.set_probe(meeting)
    loop_build.run(net, fluid, program, feeds, [net.loss], target, scope)
    assert meeting.met
