"""Gradients against central differences in float64: branches, variables that are written again, several losses."""
import inplace_programs
import numpy as np
import pytest

import anabranch.fluid as fluid

L = fluid.layers


@pytest.fixture(autouse=True)
def own_programs():
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
        yield


def leaf(name, shape):
    var = fluid.data(name, shape, "float64")
    var.stop_gradient = False
    return var


def run(feed, fetch, program=None):
    return fluid.Executor(fluid.CPUPlace()).run(program or fluid.default_main_program(), feed=feed, fetch_list=fetch)


def check_differences(loss, leaves, feed, rtol=1e-6):
    """The gradients of a loss by fed variables are its central differences."""
    gradients = fluid.gradients([loss], leaves)
    got = run(feed, [loss] + gradients)
    distance = 1e-6
    for var, gradient in zip(leaves, got[1:]):
        expected = np.zeros_like(feed[var.name])
        for at in np.ndindex(*expected.shape):
            ends = []
            for sign in (1, -1):
                moved = dict(feed, **{var.name: feed[var.name].copy()})
                moved[var.name][at] += sign * distance
                ends.append(float(np.sum(run(moved, [loss])[0])))
            expected[at] = (ends[0] - ends[1]) / (2 * distance)
        assert np.abs(expected).max() > 0
        np.testing.assert_allclose(gradient, expected, rtol=rtol, atol=1e-7, err_msg=var.name)
    return got


def number(*values):
    return np.array(values, "float64")


# ---- branches

def nested(i, a, depth):
    if depth == 0:
        return a * a
    return L.cond(L.less_than(i, L.fill_constant([1], "float64", 4.0)),
                  lambda: nested(i, a, depth - 1), lambda: nested(i, a, depth - 1) * a)


@pytest.mark.parametrize("value", [3.0, 5.0])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_variable_that_both_branches_read_has_its_gradient_once(depth, value):
    i = leaf("i", [1])
    out = nested(i, L.scale(i, 2.0), depth)
    check_differences(out, [i], {"i": number(value)})


@pytest.mark.parametrize("depth", [1, 3])
def test_branches_on_replicas(depth):
    i = leaf("i", [-1, 1])
    a = L.scale(i, 2.0)
    out = L.mean(nested(L.reduce_max(i), a, depth))
    gradient, = fluid.gradients([out], [a])
    target = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(
        loss_name=out.name, places=[fluid.CPUPlace()] * 2)
    value = number([3.0], [5.0])
    got, = run({"i": value}, [gradient], target)
    np.testing.assert_allclose(got, [[2 * 6.0], [(2 + depth) * 10.0 ** (1 + depth)]])


# ---- variables that are written again

def test_an_op_is_differentiated_by_what_it_saw():
    x, w = leaf("x", [3]), leaf("w", [3])
    a = L.scale(x, 1.0)
    z = L.square(a)
    L.assign(w, output=a)
    check_differences(L.reduce_sum(z * z + a), [x, w], {"x": number(1, 2, 3), "w": number(5, 6, 7)})


def test_a_variable_that_is_reshaped_in_place_after_it_was_read():
    x = leaf("x", [2, 3])
    a = L.scale(x, 1.0)
    s = L.square(L.softmax(a))
    L.reshape(a, [3, 2], inplace=True)
    t = L.softmax(a)
    loss = L.reduce_sum(s) + L.reduce_sum(L.square(t * t))
    check_differences(loss, [x], {"x": number([0.1, 0.5, -0.3], [1.0, 0.2, 0.4])})


def test_a_factor_that_is_filled_and_counted_up():
    x = leaf("x", [1])
    a = L.scale(x, 3.0)
    b = a * x
    L.increment(a, 0.5)
    c = a * x
    L.fill_constant([1], "float64", 2.0, out=a)
    a.stop_gradient = False  # the layer stops it
    check_differences(L.reduce_sum(b + c + a * x), [x], {"x": number(1.5)})


def test_an_op_in_place_is_differentiated_by_both_its_sides():
    x = leaf("x", [3])
    a = L.scale(x, 1.0)
    block = fluid.default_main_program().global_block()
    for op in ("square", "sqrt", "exp", "tanh"):
        block.append_op(type=op, inputs={"X": [a]}, outputs={"Out": [a]})
    check_differences(L.reduce_sum(a), [x], {"x": number(0.3, 0.5, 0.7)})


def test_what_a_branch_writes_again():
    x, s = leaf("x", [2]), leaf("s", [1])

    def branch():
        a = L.scale(x, 1.0)
        b = L.square(a)
        L.assign(b * 3.0, output=a)
        return a * b
    out = L.cond(L.less_than(s, L.fill_constant([1], "float64", 0.0)), branch, lambda: x * x)
    loss = L.reduce_sum(out)
    for value in (-1.0, 1.0):
        check_differences(loss, [x], {"x": number(1.5, -0.5), "s": number(value)})


def test_a_variable_that_branches_read_and_later_ops_write():
    x, s = leaf("x", [2]), leaf("s", [1])
    a = L.scale(x, 1.0)
    out = L.cond(L.less_than(s, L.fill_constant([1], "float64", 0.0)), lambda: a * a, lambda: a * a * a)
    L.assign(L.scale(x, -4.0), output=a)
    for value in (-1.0, 1.0):
        check_differences(L.reduce_sum(out * a), [x], {"x": number(1.5, -0.5), "s": number(value)})


def test_programs_keep_their_gradients_through_files_and_pruning():
    x, w = leaf("x", [3]), leaf("w", [3])
    unused = L.scale(w, 3.0)
    a = L.scale(x, 1.0)
    L.assign(unused, output=a)
    L.assign(L.scale(x, 2.0), output=a)
    z = L.square(a)
    L.assign(w, output=a)
    gradient, = fluid.gradients([L.reduce_sum(z)], [x])
    main = fluid.default_main_program()
    feed = {"x": number(1, 2, 3), "w": number(5, 6, 7)}
    read = fluid.Program.parse_from_string(main.desc.serialize_to_string())
    for program in (main, main.clone(), read, main._prune([gradient])):
        np.testing.assert_array_equal(run(feed, [gradient.name], program)[0], 8 * feed["x"])


@pytest.mark.parametrize("value", [0.0, 2.0])
@pytest.mark.parametrize("again", ["", "replaced"])
def test_the_gradient_of_a_branch_reads_what_the_branch_has_read(value, again):
    """Counting up changes the variable in place: the values that the branch has read must stay for its gradient."""
    x, s = leaf("x", [1]), leaf("s", [1])
    v = L.scale(x, 1.0)
    z = L.cond(s < 1.0, lambda: L.scale(v, 2.0), lambda: v * v * v)
    L.increment(v, 0.5, in_place=True)
    if again:
        L.sums([x, x], out=v)
    gradient, = fluid.gradients([L.reduce_sum(z)], [x])
    got = run({"x": number(0.25), "s": number(value)}, [gradient])
    np.testing.assert_allclose(got[0], [2.0 if value < 1 else 3 * 0.25 ** 2], rtol=1e-12)


@pytest.mark.parametrize("seed", [*range(40), 2380])
def test_random_programs_in_place(seed):
    program = inplace_programs.random_program(seed)
    net = program.build(fluid)
    names = program.compared
    gradients = [g for g in net.gradients if g is not None]
    for step, rows in enumerate((3, 2, 3)):
        feed = program.feed(rows, 10 * seed + step)
        got = run(feed, [net.variables[n] for n in names] + [net.loss] + gradients, net.main)
        values, loss = program.values(feed)
        for name, value in zip(names, got):
            np.testing.assert_allclose(value, values[name], rtol=1e-9, atol=1e-9, err_msg="%s\n%s" % (name, program))
        np.testing.assert_allclose(got[len(names)], [loss], rtol=1e-9)
        parts = iter(got[len(names) + 1:])
        for name, gradient, expected in zip(inplace_programs.LEAVES, net.gradients, program.differences(feed)):
            value = np.zeros_like(expected) if gradient is None else next(parts)
            np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-6, err_msg="%s\n%s" % (name, program))


# ---- append_backward and gradients

def two_layers():
    x = fluid.data("x", [None, 4], "float32")
    h = L.fc(x, 3, param_attr="w1", bias_attr="b1")
    return x, L.fc(h, 1, param_attr="w2", bias_attr="b2")


def test_parameters_come_in_the_order_of_the_list():
    loss = L.mean(two_layers()[1])
    pairs = fluid.backward.append_backward(loss, parameter_list=["w2", "b1", "w1"])
    assert [(p.name, g.name) for p, g in pairs] == [(n, n + "@GRAD") for n in ("w2", "b1", "w1")]


def test_minimize_gives_the_order_of_the_list():
    loss = L.mean(two_layers()[1])
    pairs = fluid.optimizer.SGD(0.1).minimize(loss, parameter_list=["w2", "b1", "w1"])[1]
    assert [p.name for p, _ in pairs] == ["w2", "b1", "w1"]
    assert [g.name.split("@")[0] for _, g in pairs] == ["w2", "b1", "w1"]


def test_the_forward_part_reads_an_earlier_gradient():
    x = fluid.data("x", [None, 4])
    w = L.create_parameter([4, 3], "float32", name="w", default_initializer=fluid.initializer.Constant(0.1))
    v = L.create_parameter([3, 1], "float32", name="v", default_initializer=fluid.initializer.Constant(0.2))
    a = L.mul(x, w)
    loss = L.mean(L.mul(L.tanh(a), v))
    g, = fluid.gradients([loss], [a])
    g.stop_gradient = True
    pairs = {p.name: q for p, q in fluid.backward.append_backward(loss + L.reduce_sum(g * a))}
    assert sorted(pairs) == ["v", "w"]
    feed = np.linspace(-1, 1, 8, dtype="float32").reshape(2, 4)
    exe = fluid.Executor(fluid.CPUPlace())
    with fluid.scope_guard(fluid.Scope()):
        exe.run(fluid.default_startup_program())
        dw, = exe.run(feed={"x": feed}, fetch_list=[pairs["w"]])
    da = (1 - np.tanh(feed.sum(1, keepdims=True) * 0.1) ** 2) * 0.2 / 2 * np.ones((1, 3))
    np.testing.assert_allclose(dw, 2 * feed.T @ da, rtol=1e-5)  # g stands for what it holds: twice the same


def test_a_loss_of_shape_1_1():
    x, out = two_layers()
    pairs = fluid.backward.append_backward(L.reduce_mean(out, keep_dim=True))
    assert len(pairs) == 4
    exe = fluid.Executor(fluid.CPUPlace())
    with fluid.scope_guard(fluid.Scope()):
        exe.run(fluid.default_startup_program())
        np.testing.assert_allclose(exe.run(feed={"x": np.ones((2, 4), "float32")}, fetch_list=["b2@GRAD"])[0], [1.0])


def test_a_loss_of_several_elements_is_refused():
    with pytest.raises(AssertionError, match="one element"):
        fluid.backward.append_backward(L.square(leaf("x", [2])))


def test_a_loss_of_unknown_extent_may_have_one_element():
    x = leaf("x", [-1])
    fluid.backward.append_backward(L.square(x))
    exe = fluid.Executor(fluid.CPUPlace())
    got, = exe.run(feed={"x": np.array([3.0])}, fetch_list=["x@GRAD"])
    np.testing.assert_allclose(got, [6.0])
    with pytest.raises(ValueError, match="square_grad"):
        exe.run(feed={"x": np.ones(3)}, fetch_list=["x@GRAD"])


def test_inputs_without_influence():
    x, other = leaf("x", [3]), leaf("other", [3])
    loss = L.reduce_sum(x)
    assert fluid.gradients([loss], [other]) == []
    assert fluid.backward.calc_gradient([loss], [other]) is None
    first, second = fluid.gradients([loss], [x, other])
    assert first.name == "x@GRAD" and second is None


def test_callbacks_see_gradient_ops_and_not_the_seed():
    loss = L.mean(two_layers()[1])
    before, seen = len(loss.block.ops), []
    fluid.backward.append_backward(loss, callbacks=[lambda block, context: seen.append(block.ops[-1].type)])
    made = [op.type for op in loss.block.ops[before:]]
    assert made[0] == "fill_constant" and seen == made[1:]


def test_callbacks_get_the_operator_that_was_appended():
    x = leaf("x", [3])
    seen = []

    def look(block, context):
        op = context["__current_op_desc__"]
        seen.append((op.type(), [context[name] for name in op.output_arg_names() if name in context]))

    fluid.backward.append_backward(L.mean(L.relu(x)), callbacks=[look])
    assert seen == [("mean_grad", ["relu_0.tmp_0"]), ("relu_grad", ["x"])]


@pytest.mark.parametrize("strided", [False, True])
def test_a_slice_at_positions_that_are_computed(strided):
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()), fluid.unique_name.guard():
        x = fluid.data("x", [5, 2])
        x.stop_gradient = False
        start = fluid.layers.fill_constant([1], "int32", 1)
        if strided:
            y = fluid.layers.strided_slice(x, axes=[0], starts=[start], ends=[5], strides=[2])
        else:
            y = fluid.layers.slice(x, axes=[0], starts=[start], ends=[4])
        (gradient,) = fluid.gradients(fluid.layers.reduce_sum(y), [x])
    (got,) = fluid.Executor().run(main, feed={"x": np.ones((5, 2), "float32")}, fetch_list=[gradient])
    assert got[:, 0].tolist() == ([0, 1, 0, 1, 0] if strided else [0, 1, 1, 1, 0])
