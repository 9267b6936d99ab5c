"""Loops that go wrong: what is refused, what an error says, limits, interrupts; the executor is usable afterwards."""
import functools
import os
import subprocess
import sys

import numpy as np
import pytest
from loop_bodies import CPU, Loop, X, number, simple

import anabranch.fluid as fluid

layers = fluid.layers


def test_an_error_in_a_loop_names_op_block_iteration_and_line():
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        x, n = fluid.data("x", [None, 3], "float64"), fluid.data("n", [1], "int64")
        h = layers.assign(x)
        i = number(0)
        going_on = layers.less_than(i, n)
        with layers.While(going_on).block():
            layers.assign(layers.concat([h, x], 0), h)
            layers.assign(layers.elementwise_mul(h, x), h)  # THE LINE
            layers.increment(i)
            layers.less_than(i, n, cond=going_on)
    exe = fluid.Executor(CPU)
    with pytest.raises(fluid.core.EnforceNotMet) as caught:
        exe.run(main, feed={"x": X, "n": np.array([4])}, fetch_list=[h])
    text = str(caught.value)
    assert "elementwise_mul" in text and "block 1" in text and "iteration 0" in text and "THE LINE" in text
    np.testing.assert_array_equal(exe.run(main, feed={"x": X, "n": np.array([0])}, fetch_list=[h])[0], X)


def test_a_limit_ends_a_loop_that_does_not_end():
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        i = number(0)
        layers.while_loop(lambda i: layers.less_than(i, number(1)), lambda i: [layers.scale(i, 1.0)], [i])
    exe = fluid.Executor(CPU)
    fluid.set_flags({"FLAGS_max_loop_iterations": 1000})
    try:
        with pytest.raises(fluid.core.EnforceNotMet, match="FLAGS_max_loop_iterations"):
            exe.run(main, fetch_list=[i])
    finally:
        fluid.set_flags({"FLAGS_max_loop_iterations": 0})


@pytest.mark.parametrize("what, place, text", [("write", -1, "at least 0"), ("read", 7, "never been written"),
                                               ("write", 1 << 40, "below")])
def test_places_outside_of_an_array_are_refused(what, place, text):
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        x, i = fluid.data("x", [2], "float32"), fluid.data("i", [1], "int64")
        a = layers.array_write(x, number(0) if what == "read" else i)
        out = layers.array_read(a, i)
    with pytest.raises(fluid.core.EnforceNotMet, match=text):
        fluid.Executor(CPU).run(main, feed={"x": np.ones(2, "float32"), "i": np.array([place])}, fetch_list=[out])


class TestRefused:
    def test_conditions(self):
        with fluid.program_guard(fluid.Program(), fluid.Program()):
            for bad in (number(0), 3, layers.fill_constant([2], "bool", True)):
                with pytest.raises(TypeError):
                    layers.While(bad)

    @pytest.mark.parametrize("arguments, error", [
        ((3, lambda x: x, []), TypeError), ((lambda x: x, 3, []), TypeError),
        ((lambda x: x, lambda x: x, 3), TypeError), ((lambda x: x, lambda x: x, []), ValueError)])
    def test_arguments_of_while_loop(self, arguments, error):
        with pytest.raises(error):
            layers.while_loop(*arguments)

    def test_a_body_of_another_structure_leaves_the_program_as_it_was(self):
        main = fluid.Program()
        with fluid.program_guard(main, fluid.Program()):
            i, n = number(0), number(3)
            with pytest.raises(ValueError):
                layers.while_loop(lambda i, n: layers.less_than(i, n), lambda i, n: [i], [i, n])
        assert main.current_block().idx == 0 and [op.type for op in main.global_block().ops][-1] != "while"


LOOPS_FOR_EVER = """
import os, signal, threading
import anabranch.fluid as fluid
layers = fluid.layers
i = layers.fill_constant([1], "int64", 0)
layers.while_loop(lambda i: layers.less_than(i, layers.fill_constant([1], "int64", 1)),
                  lambda i: [layers.scale(i, 1.0)], [i])
exe = fluid.Executor()
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    exe.run(fetch_list=[i])
except KeyboardInterrupt:
    small = fluid.Program()
    with fluid.program_guard(small, fluid.Program()):
        seven = layers.fill_constant([1], "int64", 7)
    print(exe.run(small, fetch_list=[seven])[0].item())
"""


def test_an_interrupt_ends_a_loop_and_leaves_the_executor_usable():
    done = subprocess.run([sys.executable, "-c", LOOPS_FOR_EVER], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, check=False)
    assert done.stdout.strip() == "7", done.stderr


def test_the_gradient_of_a_loop_that_another_version_has_made_is_refused():
    loop = Loop(simple)
    program = fluid.Program.parse_from_string(loop.main.desc.serialize_to_string())
    gradient = next(b for b in program.blocks if b.forward_block_idx > 0)
    carried = loop.main.block(0).ops[[op.type for op in loop.main.block(0).ops].index("while")].output("Out")
    name = next(n + "@GRAD" for n in carried if gradient.has_var(n + "@GRAD"))
    program.block(gradient.idx)._rename_var(name, "another")
    with pytest.raises(fluid.core.EnforceNotMet, match="saved by PaddlePaddle Fluid(.|\n)*load the saved parameters"):
        loop.run(2, fetch=[loop.loss.name, loop.gradients[1].name], target=program)


def test_a_loop_of_a_stranger_has_a_limit(tmp_path):
    loop = Loop(simple)
    with fluid.scope_guard(loop.scope):
        fluid.io.save_inference_model(str(tmp_path), ["x", "n"], [loop.y], loop.exe, loop.main)
    fluid.set_flags({"FLAGS_max_loop_iterations_untrusted": 20})
    try:
        with fluid.scope_guard(fluid.Scope()):
            for trusted in (False, True):
                program, _, targets = fluid.io.load_inference_model(str(tmp_path), loop.exe, trusted=trusted)
                run = functools.partial(loop.exe.run, program, fetch_list=targets)
                run(feed={"x": X, "n": np.array([20])})
                if trusted:
                    run(feed={"x": X, "n": np.array([21])})
                    continue
                with pytest.raises(fluid.core.EnforceNotMet, match="untrusted model"):
                    run(feed={"x": X, "n": np.array([21])})
    finally:
        fluid.set_flags({"FLAGS_max_loop_iterations_untrusted": 1000000})


def nested_reads(kind):
    """A loop in a loop, or a branch in that, reads element i + j of an array of three."""
    x, n, limit = fluid.data("x", [None, 3], "float64"), fluid.data("n", [1], "int64"), number(2)
    x.stop_gradient = False
    array, h = layers.create_array("float64"), layers.scale(x, 1.0)
    for k in range(3):
        layers.array_write(layers.scale(x, k + 1.0), number(k), array)

    def inner(i, j, h):
        at = layers.elementwise_add(i, j)
        if kind == "loops":
            return layers.elementwise_add(h, layers.array_read(array, at))  # THE LINE
        return layers.cond(layers.less_than(j, n), lambda: layers.elementwise_add(
            h, layers.array_read(array, at)), lambda: layers.tanh(h))  # THE LINE

    def outer(i, h):
        _, h = layers.while_loop(lambda j, h: layers.less_than(j, n),
                                 lambda j, h: [layers.scale(j, 1.0, 1.0), inner(i, j, h)], [number(0), h])
        return [layers.scale(i, 1.0, 1.0), h]
    _, h = layers.while_loop(lambda i, h: layers.less_than(i, limit), outer, [number(0), h])
    loss = layers.reduce_sum(h)
    return loss, fluid.gradients(loss, [x])[0]


@pytest.mark.parametrize("kind", ["loops", "branches"])
@pytest.mark.parametrize("replicas, threads", [(1, 1), (1, 2), (2, 2), (3, 7)])
def test_an_error_in_the_middle_of_nested_blocks_leaves_everything_usable(kind, replicas, threads):
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        loss, gradient = nested_reads(kind)
    build, execution = fluid.BuildStrategy(), fluid.ExecutionStrategy()
    build.gradient_scale_strategy = fluid.BuildStrategy.GradientScaleStrategy.Customized
    execution.num_threads = threads
    target = fluid.CompiledProgram(main).with_data_parallel(
        loss.name, build_strategy=build, exec_strategy=execution, places=[CPU] * replicas)
    exe, scope = fluid.Executor(CPU), fluid.Scope()

    def run(n):
        feeds = [{"x": X, "n": np.array([n])}] * replicas
        return exe.run(target, feed=feeds if replicas > 1 else feeds[0], fetch_list=[loss, gradient], scope=scope)
    for _ in range(2):
        # 1 + the elements 1, 2 of iteration 0 and 2, 3 of iteration 1 that are read: x, 2x, 2x, 3x
        np.testing.assert_allclose(run(2)[1], np.full((4 * replicas, 3), 9.0))
        with pytest.raises(fluid.core.EnforceNotMet, match="element 3 of the array has never been written") as caught:
            run(3)
        text = str(caught.value)
        assert caught.value.kind == "InvalidArgument" and "read_from_array" in text and "THE LINE" in text
        assert "iteration 1 of the loop" in text and "iteration 2 of the loop" in text


def loop_that_ends_with(make_condition):
    x, going_on = fluid.data("x", [None, 3], "float64"), layers.fill_constant([1], "bool", True)
    h = layers.assign(x)
    with layers.While(going_on).block():
        layers.assign(layers.tanh(h), h)
        layers.assign(make_condition(h), going_on)
    return h


@pytest.mark.parametrize("make_condition, what", [
    (lambda h: layers.less_than(h, h), "[4, 3]"), (lambda h: layers.reduce_sum(h), "float64"),
    (lambda h: layers.less_than(*[layers.slice(h, [0], [0], [2])] * 2), "[2, 3]")])
def test_a_condition_that_becomes_something_else(make_condition, what):
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        h = loop_that_ends_with(make_condition)
    exe = fluid.Executor(CPU)
    for _ in range(2):
        with pytest.raises(fluid.core.EnforceNotMet, match="Condition must be one bool") as caught:
            exe.run(main, feed={"x": X}, fetch_list=[h])
        assert what in str(caught.value)


def test_outputs_of_a_block_without_readers_are_written():
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        n = fluid.data("n", [1], "int64")
        kept = layers.create_global_var([1], 0.0, "float32", persistable=True, name="kept")

        def body(i):
            with layers.Switch() as switch:
                with switch.case(layers.less_than(i, number(2))):
                    layers.increment(kept)
            return [layers.scale(i, 1.0, 1.0)]
        layers.while_loop(lambda i: layers.less_than(i, n), body, [number(0)])
    exe, scope = fluid.Executor(CPU), fluid.Scope()
    scope.var("kept").get_tensor().set(np.zeros(1, "float32"), CPU)
    for n in (0, 1, 5):
        exe.run(main, feed={"n": np.array([n])}, scope=scope)
    assert np.array(scope.find_var("kept").get_tensor()).item() == 3.0
