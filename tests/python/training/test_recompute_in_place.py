"""RecomputeOptimizer, and variables that several ops of a segment write."""
import numpy
import pytest

import anabranch.fluid as fluid

layers = fluid.layers


def heads(hidden):
    """Splits into heads and joins them again, in place, as encoders do."""
    hidden = layers.reshape(hidden, [0, 0, 2, 4], inplace=True)
    hidden = layers.transpose(layers.transpose(hidden, [0, 2, 1, 3]), [0, 2, 1, 3])
    return layers.reshape(hidden, [0, 0, 8], inplace=True)


def assigned(hidden):
    """Overwrites a variable with one that was made from it."""
    return layers.assign(layers.tanh(hidden), hidden)


def counted(hidden):
    """Overwrites a variable that its own segment has made and used."""
    one = layers.fill_constant([1], "float32", 1.0)
    hidden = layers.elementwise_mul(hidden, one)
    layers.increment(one, 0.5, in_place=True)
    return layers.elementwise_mul(hidden, one)


def run(block, recompute, feed_in_place=False):
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 1
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        hidden = fluid.data("x", [None, 6, 8])
        if feed_in_place:
            hidden = layers.reshape(hidden, [0, 6, 8], inplace=True)
        ends = []
        for _ in range(3):
            hidden = layers.fc(block(layers.fc(hidden, 8, num_flatten_dims=2)), 8, num_flatten_dims=2)
            ends.append(hidden)
        loss = layers.mean(layers.square(hidden))
        optimizer = fluid.optimizer.SGD(0.1)
        if recompute:
            optimizer = fluid.optimizer.RecomputeOptimizer(optimizer)
            optimizer._set_checkpoints(ends[:-1])
        optimizer.minimize(loss)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        feed = {"x": numpy.random.RandomState(2).rand(2, 6, 8).astype("float32")}
        losses = [exe.run(main, feed=feed, fetch_list=[loss])[0].item() for _ in range(3)]
    return main, losses


@pytest.mark.parametrize("block", [heads, assigned, counted])
def test_losses_are_those_of_the_plain_program(block):
    _, plain = run(block, False)
    _, again = run(block, True)
    assert plain == again and plain[-1] < plain[0]


def test_a_fed_variable():
    _, plain = run(layers.tanh, False, True)
    _, again = run(layers.tanh, True, True)
    assert plain == again


def test_all_versions_are_made_again():
    """No gradient reads a value that an in-place op of the forward pass has left."""
    main, _ = run(heads, True)
    ops = main.global_block().ops
    copies = [op for op in ops if any(".subprog_" in name for name in op.output_arg_names)]
    kinds = [op.type for op in copies]
    assert kinds.count("reshape2") == 4 and kinds.count("transpose2") == 4 and kinds.count("mul") == 4
    joined = [op for op in ops if op.type == "mul_grad" and op.input("X")[0].startswith("transpose_")]
    assert [".subprog_" in op.input("X")[0] for op in joined] == [False, True, True]  # the last segment keeps its own
