"""Gradients of values that loops read: sums of several parts per iteration, dense, of sparse rows and of both, with
parts before and after the loop, against the program written out."""
import numpy as np
import pytest

import anabranch.fluid as fluid

layers = fluid.layers
CPU = fluid.CPUPlace()
ITERATIONS, ROWS, WIDTH = 3, 7, 4
IDS = np.array([[1], [4], [1], [6]], "int64")


def looked_up(ids, sparse):
    return layers.embedding(ids, [ROWS, WIDTH], is_sparse=sparse, param_attr="table")


def tied(h):
    """The table as a matrix: its gradient is dense."""
    table = fluid.default_main_program().global_block().var("table")
    return layers.matmul(layers.tanh(layers.matmul(h, table, transpose_y=True)), table)


def next_state(h, ids, sparse, mixed):
    both = layers.elementwise_mul(looked_up(ids, sparse), layers.tanh(h))
    both = layers.elementwise_add(both, looked_up(layers.scale(ids, 1.0, -1.0), sparse))
    return tied(both) if mixed == "inside" else both


def in_a_loop(h, ids, sparse, mixed, inner):
    def repeat(h, iterations, body):
        return layers.while_loop(lambda i, h: layers.less_than(i, layers.fill_constant([1], "int64", iterations)),
                                 lambda i, h: [layers.increment(i), body(h)],
                                 [layers.fill_constant([1], "int64", 0), h])[1]
    once = lambda h: next_state(h, ids, sparse, mixed)
    return repeat(h, ITERATIONS, (lambda h: repeat(h, 2, once)) if inner else once)


def written_out(h, ids, sparse, mixed, inner):
    for _ in range(ITERATIONS * (2 if inner else 1)):
        h = next_state(h, ids, sparse, mixed)
    return h


def table_after_a_step(repeated, sparse, mixed, inner):
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(scope):
        ids = fluid.data("ids", [None, 1], "int64")
        h = looked_up(ids, sparse)
        if mixed == "before":
            h = tied(h)
        h = repeated(h, ids, sparse, mixed, inner)
        if mixed == "after":
            h = tied(h)
        h = layers.elementwise_add(h, looked_up(ids, sparse))
        fluid.optimizer.SGD(0.1).minimize(layers.reduce_sum(layers.square(h)))
        exe = fluid.Executor(CPU)
        exe.run(startup)
        table = scope.find_var("table").get_tensor()
        table.set(np.random.RandomState(2).uniform(-1, 1, (ROWS, WIDTH)).astype("float32"), CPU)
        for _ in range(2):
            exe.run(main, feed={"ids": IDS})
        return np.array(table)


@pytest.mark.parametrize("inner", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_several_lookups_per_iteration(sparse, inner):
    got, expected = (table_after_a_step(form, sparse, None, inner) for form in (in_a_loop, written_out))
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("inner", [False, True])
@pytest.mark.parametrize("mixed", ["before", "inside", "after"])
def test_rows_and_a_tensor(mixed, inner):
    """Rows are added after tensors where all parts are there at once: another order, so not bit for bit."""
    expected = table_after_a_step(written_out, False, mixed, inner)
    np.testing.assert_array_equal(table_after_a_step(in_a_loop, False, mixed, inner), expected)
    got = table_after_a_step(in_a_loop, True, mixed, inner)
    # The second step amplifies the rounding of the first one, and small elements are sums of large terms.
    np.testing.assert_allclose(got, expected, rtol=2e-5, atol=1e-5 * np.abs(expected).max())
