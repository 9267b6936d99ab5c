"""Gradients of several slices of one tensor, which are added where they belong."""
import numpy as np
import pytest
from trained_nets import PASSES, Trained, changes, check_pass, same_bits

import anabranch.fluid as fluid

layers = fluid.layers
NAME = "sum_slice_gradients"
FIELDS, WIDTH = 5, 4


def take(e, *axes):
    """A slice: (axis, first, end), ..."""
    return layers.slice(e, *[list(numbers) for numbers in zip(*axes)])


def net(build, shape=(None, FIELDS, WIDTH), rows=3, optimizer=None):
    """A tensor with a gradient, from which `build` takes slices, whose sums of squares are the loss."""
    def model():
        x = fluid.data("x", list(shape), "float32")
        scale = layers.create_parameter([shape[-1]], "float32", name="scale",
                                        default_initializer=fluid.initializer.Uniform(0.5, 1.5))
        e = layers.tanh(layers.elementwise_mul(x, scale))
        losses = [layers.reduce_sum(layers.square(part)) for part in build(e)]
        loss = layers.mean(layers.sum(losses))
        (optimizer or fluid.optimizer.SGD(0.1)).minimize(loss)
        feed = [rows if extent is None else extent for extent in shape]
        return loss, lambda rng: {"x": rng.normal(0, 1, feed).astype("float32")}
    return Trained(model)


def every_field(e):
    return [layers.scale(take(e, (1, i, i + 1)), 1.0 + i) for i in range(FIELDS)]


def some_fields(e):
    return [take(e, (1, 3, 4)), take(e, (1, 0, 1))]


def overlapping(e):
    return [take(e, (1, 0, 3)), take(e, (1, 2, 5)), take(e, (1, -2, 100))]


def slice_and_whole(e):
    return [layers.exp(e), take(e, (1, 1, 2)), layers.sin(e), take(e, (1, 2, 4))]


def two_axes(e):
    return [take(e, (1, 1, 3), (2, 0, 2)), take(e, (2, -1, 4)), take(e, (1, 4, 5))]


def rows_of_it(e):
    return [take(e, (0, 0, 1)), take(e, (0, 1, 2)), take(e, (0, 2, 3), (2, 1, 2))]


def with_strides(e):
    every = [[1, 2], [0, 0], [FIELDS, WIDTH], [2, 1]]
    back = [[1], [4], [0], [-2]]
    whole_back = [[0, 2], [100, 3], [-100, 0], [-1, -2]]
    return [layers.strided_slice(e, *numbers) for numbers in (every, back, whole_back)]


def every_second(e):
    return [layers.strided_slice(e, [1, 2], [i, k], [FIELDS, WIDTH], [2, 2]) for i in (0, 1) for k in (0, 1)]


def crops(e):
    return [layers.crop_tensor(e, [-1, 2, WIDTH], [0, 1, 0]), layers.crop_tensor(e, [-1, 2, 3], [0, 3, 1]),
            take(e, (1, 0, 1))]


def without_the_axis(e):
    block, made = e.block, []
    for i in range(FIELDS):
        made.append(block.create_var(name="field_%d" % i, shape=[-1, WIDTH], dtype="float32"))
        block.append_op(type="slice", inputs={"Input": [e]}, outputs={"Out": [made[-1]]},
                        attrs={"axes": [1], "starts": [i], "ends": [i + 1], "decrease_axis": [1], "infer_flags": [1]})
    return made


CUTS = [every_field, some_fields, overlapping, slice_and_whole, two_axes, rows_of_it, with_strides, every_second, crops,
        without_the_axis]


@pytest.mark.parametrize("cut", CUTS)
def test_slices_of_one_tensor_have_one_gradient(cut):
    check_pass(net(cut), NAME, 1, compare=same_bits)


@pytest.mark.parametrize("shape, rows", [((None, FIELDS, WIDTH), 1), ((None, FIELDS, WIDTH), 700),
                                         ((None, FIELDS, 1), 9), ((None, 40, 300), 17)])
def test_of_any_size(shape, rows):
    for cut in (every_field, overlapping):
        check_pass(net(cut, shape, rows), NAME, 1)


@pytest.mark.parametrize("threads", [1, 4])
def test_the_number_of_threads_changes_nothing(threads):
    trained = net(overlapping, (None, FIELDS, 64), 900)
    expected, _ = trained.run([])
    got, told = trained.run(PASSES, threads=threads)
    assert changes(told, NAME) == 1
    same_bits(expected, got)


def test_a_tensor_with_one_axis():
    def build(e):
        return [take(e, (0, 0, 2)), take(e, (0, 1, 6)), take(e, (0, 6, 7))]
    check_pass(net(build, (7,)), NAME, 1)


def test_no_rows():
    check_pass(net(every_field, rows=0), NAME, 1)


def test_slices_of_slices():
    def build(e):
        left, right = take(e, (1, 0, 3)), take(e, (1, 3, 5))
        return [take(left, (2, 0, 1)), take(left, (2, 1, 4)), take(right, (2, 0, 2)), take(right, (2, 2, 3))]
    check_pass(net(build), NAME, 3)


@pytest.mark.parametrize("replicas, reduce", [(2, False), (2, True)])
def test_replicas(replicas, reduce):
    check_pass(net(every_field, rows=6), NAME, replicas, replicas=replicas, reduce=reduce)


def test_a_sum_that_is_a_parameters_gradient_keeps_its_role():
    """The table is cut itself: the sum is its gradient, which replicas add up and the optimizer reads."""
    def model():
        x = fluid.data("x", [None, WIDTH], "float32")
        table = layers.create_parameter([FIELDS, WIDTH], "float32", name="table",
                                        default_initializer=fluid.initializer.Uniform(-1, 1))
        rows = [layers.elementwise_mul(x, layers.squeeze(take(table, (0, i, i + 1)), [0])) for i in range(FIELDS)]
        loss = layers.mean(layers.square(layers.sum(rows)))
        fluid.optimizer.Adam(0.1).minimize(loss)
        return loss, lambda rng: {"x": rng.normal(0, 1, (6, WIDTH)).astype("float32")}
    trained = Trained(model)
    check_pass(trained, NAME, 1)
    check_pass(trained, NAME, 2, replicas=2)


@pytest.mark.parametrize("fetched, left", [("slice", 1), ("sum", 1)])
def test_what_is_fetched_is_computed(fetched, left):
    trained = net(slice_and_whole)
    ops = trained.main.global_block().ops
    of_slice = next(op.output("Input@GRAD")[0] for op in ops if op.type == "slice_grad")
    of_sum = next(op.output("Out")[0] for op in ops if op.type == "sum" and of_slice in op.input("X"))
    fetch = [trained.loss.name, of_slice if fetched == "slice" else of_sum]
    check_pass(trained, NAME, left, fetch=fetch)


def test_positions_in_tensors_are_read_by_the_slices_themselves():
    def build(e):
        first = layers.fill_constant([1], "int32", 1)
        return [layers.slice(e, [1], [first], [3]), layers.slice(e, [1], [first], [2])]
    trained = net(build)
    check_pass(trained, NAME, 0, around=([],))


def test_the_gates_of_a_cell_in_a_loop():
    def model():
        x = fluid.data("x", [4, None, WIDTH], "float32")
        rnn = layers.StaticRNN()
        with rnn.step():
            now = rnn.step_input(x)
            h = rnn.memory(shape=[-1, WIDTH], batch_ref=x, ref_batch_dim_idx=1)
            gates = layers.fc([now, h], 3 * WIDTH)
            keep, new, out = (take(gates, (1, k * WIDTH, (k + 1) * WIDTH)) for k in range(3))
            state = layers.elementwise_add(layers.elementwise_mul(layers.sin(keep), h), layers.tanh(new))
            rnn.update_memory(h, layers.elementwise_mul(state, layers.sin(out)))
            rnn.step_output(state)
        loss = layers.mean(layers.square(rnn()))
        fluid.optimizer.SGD(0.5).minimize(loss)
        return loss, lambda rng: {"x": rng.normal(0, 1, (4, 3, WIDTH)).astype("float32")}
    trained = Trained(model)
    expected, _ = trained.run([])
    got, told = trained.run(PASSES)
    same_bits(expected, got)
    assert "%s" % NAME in told


def test_a_negative_zero_becomes_positive_as_in_the_sum_with_zeros():
    """The gradients of both parts are -0."""
    def model():
        x = fluid.data("x", [None, 2], "float32")
        x.stop_gradient = False
        parts = [layers.scale(take(x, (1, i, i + 1)), -0.0) for i in (0, 1)]
        loss = layers.mean(layers.sum(parts))
        fluid.backward.gradients([loss], [x])
        return loss, lambda rng: {"x": rng.normal(0, 1, (3, 2)).astype("float32")}
    trained = Trained(model)
    for passes in ([], [NAME]):
        out, told = trained.run(passes, fetch=["x@GRAD"], steps=1)
        assert not np.signbit(out[0]).any() and (out[0] == 0).all()
    assert changes(told, NAME) == 1
