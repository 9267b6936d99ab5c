"""Settings, rules and attributes that act as in Fluid 1.8.5: the expected numbers are those of 1.8.5."""
import numpy
import pytest

import anabranch.fluid as fluid

L = fluid.layers


@pytest.fixture(autouse=True)
def fresh_programs():
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard(), \
            fluid.scope_guard(fluid.Scope()):
        yield


@pytest.fixture
def exact():
    fluid.set_flags({"FLAGS_fluid_exact": "1.8.5"})
    yield
    fluid.set_flags({"FLAGS_fluid_exact": ""})


def constant(value, name=None):
    return fluid.ParamAttr(name, initializer=fluid.initializer.Constant(value))


def state(name):
    return numpy.array(fluid.global_scope().find_var(name).get_tensor()).ravel()


def started():
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return exe


# ---- use_prune

def counter(name, role):
    """A variable that an op of this role increments."""
    made = L.create_global_var([1], 0.0, "float32", persistable=True, name=name)
    op = fluid.default_main_program().global_block().append_op(
        type="increment", inputs={"X": [made]}, outputs={"Out": [made]}, attrs={"step": 1.0})
    op._set_attr("op_role", role)


def test_use_prune_keeps_the_updates():
    x, unused = fluid.data("x", [2, 2]), fluid.data("unused", [2, 2])
    y = L.fc(x, 1, param_attr=constant(1.0, "w"), bias_attr=False)
    loss = L.mean(y)
    L.mean(unused)
    roles = (0, 1, 2, 4, 16, 32, 256, 257)
    for role in roles:
        counter("c%d" % role, role)
    made = fluid.optimizer.SGD(0.1).minimize(loss)
    exe, feed = started(), {"x": numpy.ones((2, 2), "float32")}
    for fetched, expected, counted, prune in ((loss, 0.9, 1, True), (y, 0.8, 2, True), ([loss, made], 0.7, 2, False)):
        exe.run(feed=feed, fetch_list=fetched, use_prune=prune)
        numpy.testing.assert_allclose(state("w"), [expected] * 2, rtol=1e-6)
        assert [state("c%d" % r)[0] for r in roles] == [counted if r == 2 else 0 for r in roles]


def test_use_prune_of_another_version_of_the_program():
    x = fluid.data("x", [2, 2])
    loss = L.mean(L.fc(x, 1, param_attr=constant(1.0, "w"), bias_attr=False))
    exe, feed = started(), {"x": numpy.ones((2, 2), "float32")}
    exe.run(feed=feed, fetch_list=[loss], use_prune=True)
    fluid.optimizer.SGD(0.1).minimize(loss)
    exe.run(fluid.default_startup_program())
    exe.run(feed=feed, fetch_list=[loss], use_prune=True)
    numpy.testing.assert_allclose(state("w"), [0.9] * 2, rtol=1e-6)


# ---- steps without ids

def steps_of_a_table(optimizer, batches):
    """The first column of a table after each step."""
    rows = L.embedding(fluid.data("ids", [None, 1], "int64"), [4, 2], is_sparse=True, padding_idx=0,
                       param_attr=constant(1.0, "w"))
    optimizer.minimize(L.reduce_sum(L.scale(rows, 1.0)))
    exe, columns = started(), []
    for ids in batches:
        exe.run(feed={"ids": numpy.array(ids, "int64").reshape(-1, 1)})
        columns.append(state("w").reshape(4, 2)[:, 0].copy())
    return columns


@pytest.mark.parametrize("make, moved", [
    (lambda: fluid.optimizer.Adam(0.1), [0.92558998, 0.86805999, 0.82094997]),
    (lambda: fluid.optimizer.Momentum(0.1, 0.9), [0.9, 0.81, 0.729])], ids=["Adam", "Momentum"])
@pytest.mark.parametrize("ids", [[], [0, 0]], ids=["no_ids", "padding_alone"])
def test_a_step_without_ids_is_one_of_zeros(make, moved, ids):
    """In 1.8.5, too, if the ids are padding; without ids, 1.8.5 skips it. A server without a row of a step must do
    what one process does.
    """
    for row, expected in zip(steps_of_a_table(make(), [[1, 2], ids, ids]), moved):
        numpy.testing.assert_allclose(row, [1, expected, expected, 1], rtol=1e-5)


@pytest.mark.parametrize("make", [lambda: fluid.optimizer.Adam(0.1), lambda: fluid.optimizer.Momentum(0.1, 0.9),
                                  lambda: fluid.optimizer.LambOptimizer(0.1)], ids=["Adam", "Momentum", "Lamb"])
def test_a_step_without_ids_is_skipped_as_in_fluid(make, exact):
    """As if the steps without ids were not there: neither the state nor the powers of Adam move."""
    skipped = steps_of_a_table(make(), [[1, 2], [], [], [2, 3]])
    numpy.testing.assert_array_equal(skipped[0], skipped[2])
    with fluid.scope_guard(fluid.Scope()), fluid.program_guard(fluid.Program(), fluid.Program()):
        numpy.testing.assert_array_equal(steps_of_a_table(make(), [[1, 2], [2, 3]])[1], skipped[3])
    assert (skipped[3] != skipped[0]).any()


# ---- attributes

def gru_units(*pairs):
    """The hidden states of gru_unit with the activations (candidate, gates)."""
    before, half = fluid.data("before", [1, 1]), constant(0.5)
    made = [L.gru_unit(fluid.data("x", [1, 3]), before, 3, param_attr=half, bias_attr=False, activation=activation,
                       gate_activation=gate)[0] for activation, gate in pairs]
    feed = {"x": numpy.array([[.3, -.2, 2.]], "float32"), "before": numpy.array([[.7]], "float32")}
    return [value.item() for value in started().run(feed=feed, fetch_list=made)]


PAIRS = (("tanh", "sigmoid"), ("relu", "sigmoid"), ("tanh", "relu"))


def test_the_activations_of_gru_unit():
    u, r = (1 / (1 + numpy.exp(-x)) for x in (0.65, 0.15))
    expected = (1 - u) * 0.7 + u * (2 + r * 0.35)
    assert gru_units(*PAIRS)[:2] == pytest.approx([0.8807871, expected], rel=1e-6)


def test_the_activations_of_gru_unit_as_in_fluid(exact):
    assert gru_units(*PAIRS) == pytest.approx([0.8807871] * 3, rel=1e-6)


#: Results of an LSTMCell of 1.8.5 for two steps, with any activations.
CELL = [0.03972993791103363, 0.03972993791103363, 0.5052437782287598, 0.5052437782287598]


def lstm_cell(**activations):
    cell = L.LSTMCell(2, param_attr=constant(0.4), bias_attr=constant(0.1), **activations)
    outputs, _ = L.rnn(cell, fluid.data("x", [1, 2, 2]))
    value, = started().run(feed={"x": numpy.array([[[.3, -.2], [1, 2]]], "float32")}, fetch_list=[outputs])
    return value.ravel()


@pytest.mark.parametrize("argument", ["gate_activation", "activation"])
def test_the_activations_of_a_cell(argument):
    assert not numpy.allclose(lstm_cell(**{argument: L.relu}), CELL, rtol=1e-2)


@pytest.mark.parametrize("activations", [{}, {"gate_activation": L.relu}, {"activation": L.relu}])
def test_the_activations_of_a_cell_as_in_fluid(activations, exact):
    numpy.testing.assert_allclose(lstm_cell(**activations), CELL, rtol=2e-6)


#: The projections of two steps of an LSTM, all elements of a row equal, by the activations of cell and projection.
PROJECTED = {("tanh", "tanh"): (0.10702036, 0.75790101), ("tanh", "identity"): (0.10743178, 0.99179757),
             ("identity", "tanh"): (0.10780898, 1.1765027), ("relu", "sigmoid"): (0.10780898, 1.1765027),
             ("tanh", "relu"): (0.10702036, 0.75790101)}


def projected(cell, projection):
    x = fluid.data("x", [None, 8], lod_level=1)
    made, _ = L.dynamic_lstmp(x, 8, 3, use_peepholes=False, cell_activation=cell, proj_activation=projection,
                              param_attr=constant(0.9), bias_attr=constant(0.0))
    rows = fluid.create_lod_tensor(numpy.linspace(.1, 1.6, 16).reshape(2, 8).astype("float32"), [[2]],
                                   fluid.CPUPlace())
    value, = started().run(feed={"x": rows}, fetch_list=[made], return_numpy=False)
    return numpy.array(value)[:, 0]


@pytest.mark.parametrize("cell, projection", sorted(PROJECTED))
def test_the_activation_of_a_projection_as_in_fluid(cell, projection, exact):
    numpy.testing.assert_allclose(projected(cell, projection), PROJECTED[cell, projection], rtol=2e-6)


@pytest.mark.parametrize("cell, projection", sorted(PROJECTED))
def test_the_activation_of_a_projection(cell, projection):
    same = cell == projection or projection == "identity"
    assert numpy.allclose(projected(cell, projection), PROJECTED[cell, projection], rtol=1e-5) == same


# ---- operators

def run_op(kind, x, attrs, out_dtype, grad=False):
    """The output of an operator with one input, and the gradient of its sum with respect to X."""
    v = fluid.data("x", list(x.shape), str(x.dtype))
    v.stop_gradient = False
    block = fluid.default_main_program().global_block()
    out = block.create_var(name="out", dtype=out_dtype)
    block.append_op(type=kind, inputs={"X": [v]}, outputs={"Out": [out]}, attrs=attrs)
    fetched = [out] + (fluid.gradients(out, [v]) if grad else [])
    return fluid.Executor(fluid.CPUPlace()).run(feed={"x": x}, fetch_list=fetched)


X = numpy.array([[1.5, 2.5], [-3.7, 4.2]], "float32")
NUMBER = {"int32": 2, "int64": 3, "float32": 5, "float64": 6}
#: Of X along axis 1, by the operator and the dtype.
REDUCED = {
    ("reduce_sum", "float64"): [4, 0.49999976], ("reduce_mean", "float64"): [2, 0.24999988],
    ("reduce_max", "float64"): [2.5, 4.19999981], ("reduce_prod", "float64"): [3.75, -15.53999949],
    ("reduce_sum", "int64"): [3, 1], ("reduce_mean", "int64"): [1, 0], ("reduce_max", "int64"): [2, 4],
    ("reduce_prod", "int64"): [2, -12], ("reduce_sum", "int32"): [3, 1], ("reduce_mean", "int32"): [1, 0],
    ("reduce_max", "int32"): [2, 4], ("reduce_prod", "int32"): [2, -12], ("reduce_sum", "float32"): [4, 0.49999976],
    ("frobenius_norm", "int32"): [2, 5], ("frobenius_norm", "int64"): [2, 5],
    ("frobenius_norm", "float64"): [2.9154759474, 5.5973206761]}


@pytest.mark.parametrize("kind, dtype", sorted(REDUCED))
def test_reductions_in_another_dtype(kind, dtype):
    value, = run_op(kind, X, {"dim": [1], "out_dtype": NUMBER[dtype]}, dtype)
    assert value.dtype == dtype
    numpy.testing.assert_allclose(value, REDUCED[kind, dtype], rtol=1e-8 if dtype != "float32" else 1e-6)


def test_sums_of_int32_in_int64():
    value, = run_op("reduce_sum", numpy.full((1, 2), 2 * 10 ** 9, "int32"), {"dim": [1], "out_dtype": 3}, "int64")
    assert value.tolist() == [4 * 10 ** 9]


@pytest.mark.parametrize("kind, expected", [
    ("reduce_sum", [[1, 1], [1, 1]]), ("reduce_mean", [[.5, .5], [.5, .5]]), ("reduce_max", [[0, 1], [0, 1]]),
    ("reduce_prod", [[2.5, 1.5], [4.2, -3.7]])])
def test_gradients_of_reductions_in_another_dtype(kind, expected):
    value, grad = run_op(kind, X, {"dim": [1], "in_dtype": 5, "out_dtype": 6}, "float64", grad=True)
    assert (value.dtype, grad.dtype) == ("float64", "float32")
    numpy.testing.assert_allclose(grad, expected, rtol=1e-6)


@pytest.mark.parametrize("dtype", [0, 4])
def test_reductions_to_other_dtypes_are_refused(dtype):
    with pytest.raises(NotImplementedError, match="out_dtype must be the dtype of X"):
        run_op("reduce_sum", X, {"dim": [1], "out_dtype": dtype}, "float32")


def test_leaky_relu_is_a_maximum():
    value, grad = run_op("leaky_relu", numpy.array([[-1., 0., 2.]], "float32"), {"alpha": 2.0}, "float32", grad=True)
    assert value.tolist() == [[-1, 0, 4]] and grad.tolist() == [[1, 1, 2]]


ROWS = (numpy.arange(15).reshape(5, 3) % 7 * 0.3).astype("float32")


@pytest.mark.parametrize("labels, loss", [([0, 1], 1.9507407), ([1, 0], 2.6512537), ([0, 0], 2.8503618),
                                          ([1, 1], 2.4534311), ([0], 2.8503618)])
def test_warpctc_of_the_blank_as_a_label(labels, loss):
    logits, label = fluid.data("logits", [None, 3], lod_level=1), fluid.data("label", [None, 1], "int32", lod_level=1)
    logits.stop_gradient = False
    made = L.warpctc(logits, label, blank=0)
    grad, = fluid.gradients(made, [logits])

    def run(rows):
        place = fluid.CPUPlace()
        feed = {"logits": fluid.create_lod_tensor(rows, [[5]], place),
                "label": fluid.create_lod_tensor(numpy.array(labels, "int32").reshape(-1, 1), [[len(labels)]], place)}
        return [numpy.array(v) for v in fluid.Executor(place).run(feed=feed, fetch_list=[made, grad],
                                                                  return_numpy=False)]

    value, slopes = run(ROWS)
    assert value.item() == pytest.approx(loss, rel=2e-6)
    for t, k in ((0, 0), (2, 1), (4, 2)):
        moved = [ROWS.copy(), ROWS.copy()]
        moved[0][t, k] += 0.05
        moved[1][t, k] -= 0.05
        central = (run(moved[0])[0].item() - run(moved[1])[0].item()) / 0.1
        assert slopes[t, k] == pytest.approx(central, abs=2e-3)


@pytest.mark.parametrize("dtype, value, expected", [
    ("int32", 3 * 10 ** 9, -2 ** 31), ("int32", -3 * 10 ** 9, -2 ** 31), ("int32", 2 ** 31, -2 ** 31),
    ("int32", 2 ** 32 + 5, -2 ** 31), ("int32", 3.9, 3), ("int32", 2 ** 31 - 1, 2 ** 31 - 1), ("int64", -3.9, -3),
    ("int64", 1e30, 2 ** 63 - 1), ("int64", -1e30, -2 ** 63), ("int64", 2 ** 53 + 1, 2 ** 53 + 1)])
def test_fill_constant_beyond_the_range_of_the_dtype(dtype, value, expected):
    made = L.fill_constant([1], dtype, value)
    assert fluid.Executor(fluid.CPUPlace()).run(fetch_list=[made])[0].tolist() == [expected]


POLYGONS = {"square": [0, 0, 2, 0, 2, 2, 0, 2], "half": [0, 0, 2, 0, 2, 1, 0, 1], "shift": [1, 1, 3, 1, 3, 3, 1, 3],
            "bow": [0, 0, 2, 2, 2, 0, 0, 2], "wide": [0, 0, 1, 2, 2, 0, 0, 1.5], "long": [0, 0, 3, 2, 3, 0, 0, 1],
            "arrow": [0, 0, 2, 1, 0, 2, .5, 1]}
#: Of which thresholds (k + 0.5) / 64 the lowest keeps both polygons: k; none does: 64.
OVERLAPS = {("square", "half"): 32, ("square", "shift"): 9, ("square", "bow"): 0, ("bow", "half"): 0, ("bow", "bow"): 0,
            ("wide", "square"): 27, ("wide", "half"): 23, ("long", "square"): 14, ("arrow", "square"): 24,
            ("wide", "wide"): 0, ("long", "long"): 64, ("long", "wide"): 16, ("bow", "shift"): 0}


@pytest.mark.parametrize("one, other", sorted(OVERLAPS))
def test_overlaps_of_polygons_that_cross_themselves(one, other):
    boxes, scores = fluid.data("boxes", [1, 2, 8]), fluid.data("scores", [1, 1, 2])
    made = [L.multiclass_nms(boxes, scores, 0.01, 10, 10, nms_threshold=(k + 0.5) / 64, background_label=-1)
            for k in range(64)]
    feed = {"boxes": numpy.array([[POLYGONS[one], POLYGONS[other]]], "float32"),
            "scores": numpy.array([[[.9, .8]]], "float32")}
    kept = [len(numpy.array(v)) == 2
            for v in fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=made, return_numpy=False)]
    assert (kept + [True]).index(True) == OVERLAPS[one, other]


@pytest.mark.parametrize("curve, expected", [("ROC", 0.75), ("PR", (1 + 1) / 2 / 2 + (1 / 2 + 2 / 3) / 2 / 2)])
def test_the_curve_of_auc(curve, expected):
    """Of the labels 1, 0, 1, 0 by falling prediction."""
    p, y = fluid.data("p", [None, 2]), fluid.data("y", [None, 1], "int64")
    area, recent, _ = L.auc(p, y, curve=curve)
    predictions = numpy.array([[.1, .9], [.3, .7], [.5, .5], [.9, .1]], "float32")
    labels = numpy.array([[1], [0], [1], [0]])
    seen = started().run(feed={"p": predictions, "y": labels}, fetch_list=[area, recent])
    numpy.testing.assert_allclose(numpy.ravel(seen), [expected] * 2, rtol=1e-12)
    metric = fluid.metrics.Auc("auc", curve=curve)
    metric.update(predictions, labels)
    assert metric.eval() == pytest.approx(expected, rel=1e-12)


def test_the_curve_of_auc_as_in_fluid(exact):
    test_the_curve_of_auc("PR", 0.75)


@pytest.mark.parametrize("bound", [{"soft_max_up_bound": 1.0}, {"soft_max_lower_bound": 1.0}])
def test_the_gradient_of_a_teacher_at_its_bound(bound):
    x, label = fluid.data("x", [None, 1]), fluid.data("label", [None, 1])
    x.stop_gradient = False
    grad = fluid.gradients(L.teacher_student_sigmoid_loss(x, label, **bound), x)
    feed = {"x": numpy.ones((4, 1), "float32"), "label": numpy.array([[-2], [-1], [0.3], [1.5]], "float32")}
    assert not started().run(feed=feed, fetch_list=grad)[0].any()


@pytest.mark.parametrize("axes", [[1, 1], [1, -1]])
def test_a_slice_names_each_axis_once(axes):
    """Fluid 1.8.5 takes the extent from both ranges, and the position from the last one."""
    x = fluid.data("x", [2, 4])
    with pytest.raises(ValueError, match="axes must name each axis once, got axis 1 twice"):
        L.slice(x, axes, [0, 1], [1, 3])
    with pytest.raises(ValueError, match="axes must name each axis once, got axis 1 twice"):
        L.strided_slice(x, axes, [0, 1], [1, 3], [1, 1])
