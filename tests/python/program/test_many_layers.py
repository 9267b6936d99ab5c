"""Building a program takes time that grows with its size, not with the square of it: counted in calls, of Python
functions and of built-in ones."""
import sys

import pytest

import anabranch.fluid as fluid


def calls(work, *given):
    """Number of calls while ``work`` runs, and what it returned."""
    count = 0

    def called(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")
    sys.setprofile(called)
    try:
        made = work(*given)
    finally:
        sys.setprofile(None)
    return count, made


def net(layers, layer):
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
        h = fluid.data("x", [None, 8])
        for _ in range(layers):
            h = layer(h)
        return fluid.layers.mean(h)


def minimize(loss):
    with fluid.program_guard(loss.block.program, fluid.Program()):
        fluid.optimizer.Adam(0.1).minimize(loss)
    return loss


LAYERS = {"fc": lambda h: fluid.layers.fc(h, 8, act="relu"), "scale": lambda h: fluid.layers.scale(h, 2.0),
          "batch_norm": lambda h: fluid.layers.batch_norm(h),
          "shared": lambda h: fluid.layers.fc(h, 8, param_attr="w", bias_attr="b")}


@pytest.mark.parametrize("name", LAYERS)
def test_calls_grow_with_the_number_of_layers(name):
    built = {n: calls(net, n, LAYERS[name]) for n in (25, 200)}
    assert built[200][0] < 9 * built[25][0], {n: count for n, (count, _) in built.items()}
    steps = {n: calls(minimize, loss)[0] for n, (_, loss) in built.items()} if name != "scale" else {}
    assert not steps or steps[200] < 9 * steps[25], steps
    programs = {n: loss.block.program for n, (_, loss) in built.items()}
    for work in (fluid.Program.clone, lambda p: p.clone(for_test=True), lambda p: p._prune(["mean_0.tmp_0"]), str):
        used = {n: calls(work, p)[0] for n, p in programs.items()}
        assert used[200] < 9 * used[25] + 100, used


def test_blocks_that_layers_append_to_know_their_ops():
    loss = net(3, LAYERS["fc"])
    block = loss.block
    assert block._last_op() is block.ops[-1]
