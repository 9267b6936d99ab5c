"""Gradients of arrays that loops, loops in them and branches read several times an iteration: the bits of the program
written out."""
import numpy as np
import pytest

import anabranch.fluid as fluid

layers = fluid.layers
CPU = fluid.CPUPlace()
ITERATIONS, SHAPE = 3, [4, 5]


def number(value):
    return layers.fill_constant([1], "int64", value)


def loop(h, body):
    return layers.while_loop(lambda i, h: layers.less_than(i, number(ITERATIONS)), lambda i, h: [i + 1, body(h, i)],
                             [number(0), h])[1]


def written_out(h, body):
    for i in range(ITERATIONS):
        h = body(h, number(i))
    return h


def mixed(h, *read):
    for a in read:
        h = layers.tanh(layers.elementwise_add(layers.elementwise_mul(h, a), a))
    return h


def twice_in_the_inner_loop(repeat, h, at):
    return repeat(h, lambda h, i: repeat(h, lambda h, j: mixed(h, at(i), at(j))))


def two_inner_loops(repeat, h, at):
    return repeat(h, lambda h, i: repeat(repeat(h, lambda h, j: mixed(h, at(j))), lambda h, j: mixed(h, at(j), at(j))))


def before_and_after_the_inner_loop(repeat, h, at):
    return repeat(h, lambda h, i: mixed(repeat(mixed(h, at(i)), lambda h, j: mixed(h, at(j))), at(i)))


def outside_and_inside(repeat, h, at):
    h = repeat(mixed(h, at(number(1))), lambda h, i: mixed(h, at(i), at(number(0))))
    return repeat(mixed(h, at(number(1))), lambda h, i: mixed(h, at(i)))


def in_a_branch(repeat, h, at):
    def body(h, i):
        h = mixed(h, at(i))
        if repeat is written_out:
            return mixed(h, at(i), at(number(1)))
        return layers.cond(layers.less_than(i, number(ITERATIONS)), lambda: mixed(h, at(i), at(number(1))), lambda: h)
    return repeat(h, body)


def gradients(repeat, form):
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(scope):
        x = layers.create_parameter([ITERATIONS, *SHAPE], "float32", name="x")
        array = layers.create_array("float32")
        for i, part in enumerate(layers.unstack(x)):
            layers.array_write(layers.tanh(part), number(i), array)
        h = layers.fill_constant(SHAPE, "float32", 0.1)
        h.stop_gradient = False
        loss = layers.reduce_sum(layers.square(form(repeat, h, lambda i: layers.array_read(array, i))))
        (_, gradient), = fluid.backward.append_backward(loss)
        exe = fluid.Executor(CPU)
        exe.run(startup)
        scope.find_var("x").get_tensor().set(np.random.RandomState(2).randn(ITERATIONS, *SHAPE).astype("float32"), CPU)
        return [exe.run(main, fetch_list=[loss, gradient]) for _ in range(2)]


@pytest.mark.parametrize("form", [twice_in_the_inner_loop, two_inner_loops, before_and_after_the_inner_loop,
                                  outside_and_inside, in_a_branch])
def test_bits_of_the_program_written_out(form):
    for got, expected in zip(gradients(loop, form), gradients(written_out, form)):
        np.testing.assert_array_equal(got[0], expected[0])
        np.testing.assert_array_equal(got[1], expected[1])
        assert np.abs(got[1]).min() > 0
