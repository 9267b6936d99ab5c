"""Feeds, samples and lists that 1.8.5 takes are taken: lower ranks, flat samples, floats, rows of several numbers."""

import numpy as np
import pytest

import anabranch.fluid as fluid

layers = fluid.layers


@pytest.fixture
def exact():
    before = fluid.get_flags("FLAGS_fluid_exact")
    fluid.set_flags({"FLAGS_fluid_exact": "1.8.5"})
    yield
    fluid.set_flags(before)


def _doubled(declared, *given):
    """The shapes of 2 x for feeds of these shapes, one after the other; the class of the error where one is refused."""
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        y = layers.scale(fluid.data("x", declared, "float32"), 2.0)
    exe, shapes = fluid.Executor(fluid.CPUPlace()), []
    for shape in given:
        try:
            shapes.append(exe.run(main, feed={"x": np.ones(shape, "float32")}, fetch_list=[y])[0].shape)
        except ValueError:
            shapes.append(ValueError)
    return shapes


@pytest.mark.parametrize("declared, given, seen", [
    ([None, 1], [(3, 1), (5,), (4, 1), (2, 2), (6,)], [(3, 1), (5, 1), (4, 1), ValueError, (6, 1)]),
    ([None, 4, 1], [(3, 4), (3, 5), (3,)], [(3, 4, 1), ValueError, ValueError]),
    ([None, 4], [(3,), (4,)], [ValueError, ValueError]),
    ([None], [(3, 1)], [ValueError]),
])
def test_a_feed_of_lower_rank_gets_axes_of_extent_one(declared, given, seen):
    assert _doubled(declared, *given) == seen


def test_a_feed_of_lower_rank_stays_as_it_is_in_exact_mode(exact):
    assert _doubled([None, 4], (3,), (3, 4), (3, 5)) == [(3,), (3, 4), ValueError]


def test_flat_labels_train_as_columns_do():
    def losses(shape):
        main, startup = fluid.Program(), fluid.Program()
        with fluid.program_guard(main, startup), fluid.unique_name.guard():
            x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 1], "int64")
            p = layers.fc(x, 3, act="softmax", param_attr=fluid.initializer.Constant(0.1))
            loss = layers.mean(layers.cross_entropy(p, y))
            fluid.optimizer.SGD(0.5).minimize(loss)
        exe = fluid.Executor(fluid.CPUPlace())
        feed = {"x": np.eye(3, 4, dtype="float32"), "y": np.arange(3).reshape(shape)}
        with fluid.scope_guard(fluid.Scope()):
            exe.run(startup)
            return [float(exe.run(main, feed=feed, fetch_list=[loss])[0][0]) for _ in range(3)]

    flat = losses((3,))
    assert flat == losses((3, 1)) and flat[2] < flat[0]


def _errors_of_targets_without_their_axis():
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        predicted, target = fluid.data("p", [None, 1]), fluid.data("y", [None, 1])
        errors = layers.square_error_cost(predicted, target)
        feed = {"p": np.array([[1.0], [2.0], [4.0]], "float32"), "y": np.array([1, 2, 3], "float32")}
        return fluid.Executor().run(feed=feed, fetch_list=[errors])[0]


def test_targets_without_their_last_axis_are_compared_row_by_row():
    assert _errors_of_targets_without_their_axis().tolist() == [[0], [0], [1]]


def test_targets_without_their_last_axis_are_compared_with_every_row_in_exact_mode(exact):
    assert _errors_of_targets_without_their_axis().tolist() == [[0, 1, 4], [1, 0, 1], [9, 4, 1]]


def test_a_sequence_of_lower_rank_keeps_its_lod():
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        y = layers.sequence_pool(fluid.data("x", [None, 1], lod_level=1), "sum")
    tensor = fluid.LoDTensor()
    tensor.set(np.array([1, 2, 3], "float32"), fluid.CPUPlace())
    tensor.set_recursive_sequence_lengths([[2, 1]])
    exe = fluid.Executor(fluid.CPUPlace())
    assert exe.run(main, feed={"x": tensor}, fetch_list=[y])[0].tolist() == [[3], [3]]


@pytest.mark.parametrize("rows, dtype, shape", [
    ([[1.5, 2.5], [3.5]], "float64", (3, 1)), ([[1, 2.5], [3]], "float64", (3, 1)), ([[1, 2], [3]], "int64", (3, 1)),
    ([[[1, 2], [3, 4]], [[5, 6]]], "int64", (3, 2, 1)), ([[[1], [2]], [[3]]], "int64", (3, 1, 1)),
    ([np.array([1, 2]), np.array([3])], "int64", (3, 1)), ([[True, False], [True]], "bool", (3, 1)),
])
def test_lists_of_sequences(rows, dtype, shape):
    tensor = fluid.create_lod_tensor(rows, [[2, 1]], fluid.CPUPlace())
    array = np.array(tensor)
    assert array.dtype == dtype and array.shape == shape
    assert array.ravel().tolist() == np.concatenate([np.ravel(r) for r in rows]).tolist()
    assert tensor.recursive_sequence_lengths() == [[2, 1]]


@pytest.mark.parametrize("rows", [[["a"]], [[[1, 2]], [[3]]]])
def test_rows_that_are_not_numbers(rows):
    with pytest.raises(TypeError, match="create_lod_tensor: the rows must be"):
        fluid.create_lod_tensor(rows, [[1] * len(rows)], fluid.CPUPlace())


@pytest.mark.parametrize("declared, samples, shape", [
    ([None, 4], [np.zeros(3)], (1, 3)), ([None, 4], [np.zeros((2, 1))] * 2, (1, 4)),
    ([None, 1, 28, 28], [np.zeros(784)] * 2, (2, 1, 28, 28)), ([None, 1, 28, 28], [np.zeros(392)] * 2, (1, 1, 28, 28)),
    ([3, 2], [np.zeros(2)] * 2, (2, 2)), ([3, 2], [np.zeros((2, 1))] * 3, (3, 2)), ([2], [1.0, 2.0, 3.0], (3,)),
    ([None, 3, None], [np.zeros((3, 2))], (1, 3, 2)), ([None, None, 2], [np.zeros(6)] * 2, (2, 3, 2)),
])
def test_samples_are_reshaped(declared, samples, shape):
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        feeder = fluid.DataFeeder([fluid.data("x", declared)], fluid.CPUPlace())
    assert tuple(feeder.feed([(s,) for s in samples])["x"].shape()) == shape


def test_samples_that_cannot_be_reshaped():
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        feeder = fluid.DataFeeder([fluid.data("x", [None, 1, 28, 28])], fluid.CPUPlace())
    with pytest.raises(ValueError, match="must fit the shape"):
        feeder.feed([(np.zeros(391),)])


def test_metrics_give_arrays_for_arrays():
    accuracy, chunks, edits = fluid.metrics.Accuracy(), fluid.metrics.ChunkEvaluator(), fluid.metrics.EditDistance("e")
    value = np.array([0.5], "float32")
    accuracy.update(value, 2)
    value[:] = 1.0  # the caller's array is not kept
    accuracy.update(value, 2)
    chunks.update(np.array([3]), np.array([4]), np.array([2]))
    edits.update(np.array([[1.0], [0.0]]), np.array([2]))
    assert isinstance(accuracy.eval(), np.ndarray) and accuracy.eval().tolist() == [0.75]
    assert [v.tolist() for v in chunks.eval()] == [[2 / 3], [0.5], pytest.approx([4 / 7])]
    assert [v.tolist() for v in edits.eval()] == [[0.5], [0.5]]
    accuracy.reset()
    accuracy.update(0.5, np.array([2]))
    assert accuracy.eval().tolist() == [0.5]


def test_metrics_give_numbers_for_numbers():
    accuracy, chunks = fluid.metrics.Accuracy(), fluid.metrics.ChunkEvaluator()
    accuracy.update(0.5, 2)
    chunks.update(3, 4, 2)
    assert isinstance(accuracy.eval(), float) and chunks.eval()[1] == 0.5


def _reset():
    both, one = fluid.metrics.CompositeMetric(), fluid.metrics.Precision()
    both.add_metric(one)
    both.update(np.array([0.9]), np.array([1]))
    both.reset()
    return one.tp


def test_a_composite_metric_resets_its_metrics():
    assert _reset() == 0


def test_a_composite_metric_resets_nothing_in_exact_mode(exact):
    assert _reset() == 1


def test_nothing_to_apply_is_a_warning():
    with pytest.warns(UserWarning, match="SGDOptimizer: nothing is trained"):
        assert fluid.optimizer.SGD(0.1).apply_gradients([]) == []


def test_nothing_to_apply_is_nothing_to_do_in_exact_mode(exact):
    assert fluid.optimizer.SGD(0.1).apply_gradients([]) == []


HALVES = {
    "activation": lambda x: layers.tanh(x), "fc": lambda x: layers.fc(x, 2),
    "sum": lambda x: layers.elementwise_add(x, x),
    "clip": lambda x: layers.clip(x, 0.0, 1.0), "diagonal": layers.diag_embed,
    "loss": lambda x: layers.mean(x), "reduction": lambda x: layers.reduce_max(x), "normalization": layers.batch_norm,
}


@pytest.mark.parametrize("layer", list(HALVES.values()), ids=list(HALVES))
def test_halves_are_built_with_a_warning_and_raise_when_they_run(layer):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.scope_guard(fluid.Scope()):
        x = fluid.data("x", [None, 2], "float16")
        with pytest.warns(UserWarning, match="is float16, for which there is no kernel") as told:
            out = layer(x)
        assert out.dtype == x.dtype
        assert told[0].filename == __file__
        exe = fluid.Executor()
        if startup.global_block().ops:
            exe.run(startup)
        with pytest.raises(fluid.core.EnforceNotMet, match="of float16: there are kernels for"):
            exe.run(main, feed={"x": np.ones((3, 2), "float16")}, fetch_list=[out])


@pytest.mark.parametrize("layer", [
    lambda x: layers.log(x), lambda x: layers.pow(x, 2.0), lambda x: layers.less_than(x, x),
    lambda x: layers.reduce_sum(x), lambda x: layers.increment(x)])
def test_halves_that_fluid_refuses_raise_on_the_line_of_the_layer(layer):
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        with pytest.raises(TypeError, match="one of .*float64.*, got float16"):
            layer(fluid.data("x", [1], "float16"))


def test_halves_are_taken_while_a_program_is_built_in_exact_mode(exact):
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        out = layers.tanh(fluid.data("x", [None, 2], "float16"))
    assert out.dtype == fluid.core.VarDesc.VarType.FP16


def test_gradients_of_an_unrelated_variable():
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x, a, b = (fluid.data(name, [3]) for name in "xab")
        for v in (x, a, b):
            v.stop_gradient = False
        loss = layers.reduce_sum(x)
        assert fluid.gradients([loss], [a]) == []
        assert fluid.gradients([loss], [a, b]) == [None, None]
        assert [g and g.name for g in fluid.gradients([loss], [a, x])] == [None, "x@GRAD"]


def test_a_sparse_hsigmoid_without_a_tree_has_dense_gradients():
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 1], "int64")
        loss = layers.mean(layers.hsigmoid(x, y, 5, is_sparse=True))
        kinds = {gradient.type for _, gradient in fluid.backward.append_backward(loss)}
    assert kinds == {fluid.core.VarDesc.VarType.LOD_TENSOR}
