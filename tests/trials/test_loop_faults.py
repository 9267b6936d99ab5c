"""Small programs of loops, branches and arrays with which gradients went wrong once: values by NumPy, slopes by central
differences, the same bits on 1, 2 and 7 threads.
"""
import loop_build
import loops
import numpy as np
import pytest
from loop_matrix import LENGTHS, Case
from loop_reference import Reference
from loop_steps import Block, step

import anabranch.fluid as fluid

layers = fluid.layers


def block(*steps, results=(), names=()):
    return Block(list(steps), tuple(results), tuple(names))


FILLED = [step("array", ["a"]), step("count", ["k"], [], [0]), step("write", ["a"], ["x", "k"]),
          step("copy", ["v"], ["y"])]
ELEMENT_TO_V = [step("count", ["j"], [], [0]), step("read", ["r"], ["a", "j"]), step("matmul", ["t"], ["r", "w"]),
                step("over", ["v"], ["t"])]
V = step("tanh", ["out"], ["v"])

FOUND = {
    "the initial value of a memory is read in the step, too": [
        step("StaticRNN", ["v"], ["x", "y", "y"], [], [block(
            step("add", ["b"], ["before", "x"]), step("mul", ["c"], ["b", "x"]), results=["b", "c"],
            names=["now", "before"])]), V],
    "steps of StaticRNN read an array": [
        *FILLED, step("StaticRNN", ["v"], ["y", "x", "y"], [], [block(
            *ELEMENT_TO_V[:3], step("mul", ["c"], ["now", "t"]), step("add", ["d"], ["before", "r"]),
            results=["d", "c"], names=["now", "before"])]), V],
    "a loop in a step of StaticRNN reads an array": [
        *FILLED, step("StaticRNN", ["v"], ["y", "x", "y"], [], [block(
            step("scale", ["h"], ["before"], [0.75, 0.0]),
            step("while_loop", ["i", "h"], ["n1"], [], [block(*ELEMENT_TO_V[:3], results=["t"])]),
            step("mul", ["c"], ["now", "h"]), results=["c", "h"], names=["now", "before"])]), V],
    "a loop in a loop reads an array": [
        *FILLED, step("While", ["i"], ["n0"], [], [block(
            step("read", ["q"], ["a", "k"]), step("add", ["p"], ["q", "v"]), step("over", ["v"], ["p"]),
            step("While", ["l"], ["n1"], [], [block(*ELEMENT_TO_V[:3], step("mul", ["m"], ["t", "v"]),
                                                  step("over", ["v"], ["m"]))]))]), V],
    "a branch reads what an earlier iteration has written": [
        *FILLED, step("While", ["i"], ["n0"], [], [block(
            step("tanh", ["p"], ["v"]), step("write", ["a"], ["p", "i"]), step("below", ["c"], ["k", "i"]),
            step("Switch", [], ["c"], [False], [block(*ELEMENT_TO_V)]))]), V],
    "an inner loop reads what an earlier iteration has written": [
        *FILLED, step("While", ["i"], ["n0"], [], [block(
            step("tanh", ["p"], ["v"]), step("write", ["a"], ["p", "i"]),
            step("While", ["l"], ["i"], [], [block(*ELEMENT_TO_V)]))]), V],
    "an iteration reads what it would have written in a branch": [
        *FILLED, step("While", ["i"], ["n1"], [], [block(
            step("below", ["c"], ["n0", "i"]),
            step("Switch", [], ["c"], [False], [block(step("write", ["a"], ["y", "i"]))]),
            *ELEMENT_TO_V)]), V],
    "a variable that a branch in a loop may write is read after it": [
        step("copy", ["u"], ["x"]), step("copy", ["v"], ["y"]), step("While", ["i"], ["n1"], [], [block(
            step("below", ["c"], ["n0", "i"]),
            step("Switch", [], ["c"], [False], [block(step("over", ["u"], ["y"]))]),
            step("mul", ["m"], ["u", "v"]), step("over", ["v"], ["m"]))]), V],
    "all sequences go to one side": [
        step("square", ["q"], ["x"]), step("scale", ["p"], ["q"], [-1.0, 0.0]), step("mask", ["m"], ["p"]),
        step("divided", ["d"], ["s", "m"]), step("firsts", ["f"], ["d"]), step("addvec", ["v"], ["x", "f"]), V],
}


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("what", FOUND)
def test_values_and_gradients(what, replicas):
    program = Case(what, FOUND[what])
    feeds, net = program.feeds(replicas), loop_build.build(program, fluid)
    targets = [(loops.compiled(net, replicas, threads), fluid.Scope()) for threads in loops.THREADS]
    expected = [Reference(program).run(feed) for feed in feeds]
    for _ in range(2):
        assert loops.compare(program, net, targets, feeds, expected) == ("ran", "")


def writes_outside(read_after):
    x = fluid.data("x", [None, 3], "float64")
    x.stop_gradient = False
    kept, rnn, steps = layers.scale(x, 2.0), layers.StaticRNN(), layers.stack([x, x])
    with rnn.step():
        now = rnn.step_input(steps)
        layers.assign(layers.tanh(now), kept)
        rnn.step_output(layers.square(now))
    return x, kept, layers.reduce_sum(rnn()) + (layers.reduce_sum(kept) if read_after else 0.0)


def test_what_a_step_of_static_rnn_writes_outside_has_no_gradient_and_says_so():
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x, kept, loss = writes_outside(True)
        with pytest.raises(fluid.core.EnforceNotMet, match=kept.name) as caught:
            fluid.gradients(loss, [x])
        assert caught.value.kind == "Unsupported" and "recurrent" in str(caught.value)
        assert not any("@GRAD" in name for name in fluid.default_main_program().global_block().vars)
        value = np.full((1, 3), 0.5)
        got = fluid.Executor().run(feed={"x": value}, fetch_list=[kept])[0]
        np.testing.assert_array_equal(got, np.tanh(value))


def test_writes_outside_a_step_that_the_loss_does_not_read_are_ignored():
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x, kept, loss = writes_outside(False)
        gradient, = fluid.gradients(loss, [x])
        got, side = fluid.Executor().run(feed={"x": np.full((1, 3), 0.5)}, fetch_list=[gradient, kept])
        np.testing.assert_allclose(got, np.full((1, 3), 2.0))
        np.testing.assert_array_equal(side, np.tanh(np.full((1, 3), 0.5)))


def test_there_are_sequences_without_parts():
    assert 0 in LENGTHS
