"""Constants, copies and results that are not read."""
import numpy as np
import pytest
from trained_nets import PASSES, Trained, changes

import anabranch.fluid as fluid

layers = fluid.layers


def forward(build):
    def model():
        x = fluid.data("x", [None, 3], "float32")
        loss = build(x)
        return loss, lambda rng: {"x": rng.normal(0, 1, (4, 3)).astype("float32")}
    return Trained(model)


def on_and_off(trained, fetch=None, **how):
    expected, _ = trained.run([], fetch=fetch, **how)
    got, told = trained.run(PASSES, fetch=fetch, **how)
    for a, b in zip(expected, got):
        np.testing.assert_array_equal(a, b)
    return told


def test_scaled_constants_are_constants():
    def build(x):
        c = layers.fill_constant([3], "float32", 0.1)
        c = layers.scale(layers.scale(c, 3.0, 0.7), -0.3, 0.2, bias_after_scale=False)
        return layers.elementwise_mul(x, c)

    told = on_and_off(forward(build))
    assert changes(told, "fold_constants") == 2 and changes(told, "remove_dead") == 2
    assert "2 nodes on 1 replica " in told


def test_a_scaled_constant_at_the_end_is_a_constant():
    trained = forward(lambda x: layers.scale(layers.fill_constant([3], "float32", 0.5), 3.0, 0.25))
    told = on_and_off(trained)
    assert changes(told, "fold_constants") == 1 and "1 node on 1 replica " in told


@pytest.mark.parametrize("slots", [("X", "Y", "Out@GRAD"), ("Y", "Out@GRAD", "X"), ("Out@GRAD", "Y", "X")])
def test_operands_whose_shapes_are_read_are_found_in_any_order_of_slots(slots):
    """The gradient of a sum reads another value of the same shape in place of its operand."""
    def build(x):
        block = x.block
        values = {"X": layers.scale(x, 2.0), "Y": layers.fill_constant([3], "float32", 1.0),
                  "Out@GRAD": layers.relu(x)}
        made = [block.create_var(name="dx", shape=[-1, 3], dtype="float32"),
                block.create_var(name="dy", shape=[3], dtype="float32")]
        block.append_op(type="elementwise_add_grad", inputs={slot: [values[slot]] for slot in slots},
                        outputs={"X@GRAD": [made[0]], "Y@GRAD": [made[1]]}, attrs={"axis": -1})
        return layers.elementwise_add(made[0], made[1])

    trained = forward(build)
    told = on_and_off(trained)
    assert changes(told, "shape_reads") == 1 and changes(told, "remove_dead") == 1


def test_copies_are_not_made():
    def build(x):
        h = layers.assign(layers.scale(layers.cast(x, "float32"), 1.0))
        return layers.elementwise_add(layers.relu(h), layers.cast(layers.cast(h, "float64"), "float32"))

    told = on_and_off(forward(build))
    assert changes(told, "remove_copies") == 2 and "5 nodes" in told


def test_a_copy_of_what_is_written_later_is_made():
    def build(x):
        count = layers.create_global_var([1], 1.0, "float32", persistable=True, name="count")
        before = layers.assign(count)
        layers.increment(count)
        return layers.elementwise_add(layers.elementwise_mul(x, before), count)

    trained = forward(build)
    told = on_and_off(trained)
    assert changes(told, "remove_copies") == 0


def test_a_copy_that_a_block_takes_step_by_step_is_made():
    """The block knows it by its name."""
    def model():
        x = fluid.data("x", [4, 3, 2], "float32")
        x.stop_gradient = False
        rnn = layers.StaticRNN()
        steps = layers.assign(layers.scale(x, 1.0))
        with rnn.step():
            rnn.step_output(layers.tanh(rnn.step_input(steps)))
        loss = layers.mean(layers.square(rnn()))
        fluid.gradients(loss, x)
        return loss, lambda rng: {"x": rng.normal(0, 1, (4, 3, 2)).astype("float32")}

    trained = Trained(model)
    on_and_off(trained, fetch=[trained.loss.name, "x@GRAD"])


@pytest.mark.parametrize("fetched", [False, True])
def test_copies_that_are_fetched_are_made(fetched):
    trained = forward(lambda x: layers.relu(layers.assign(x)))
    copy = trained.main.global_block().ops[0].output("Out")[0]
    told = on_and_off(trained, fetch=[trained.loss.name] + [copy] * fetched)
    assert changes(told, "remove_copies") == (0 if fetched else 1)


def test_gradients_without_readers_are_left_out():
    def build(x):
        y = layers.softmax(x)
        layers.reduce_sum(layers.square(y))
        kept = layers.create_global_var([1], 0.0, "float32", persistable=True, name="kept")
        layers.assign(layers.mean(x), kept)
        return layers.relu(x)

    trained = forward(build)
    told = on_and_off(trained)
    assert changes(told, "remove_dead") == 3
    loss = trained.loss.name
    told = on_and_off(trained, fetch=[loss, trained.main.global_block().ops[0].output("Out")[0]])
    assert changes(told, "remove_dead") == 2


def test_a_run_without_fetches_runs_everything():
    trained = forward(lambda x: layers.relu(layers.square(x)))
    scope = fluid.Scope()
    target = fluid.CompiledProgram(trained.main)
    trained.exe.run(target, feed=trained.feed(np.random), scope=scope)
    assert changes(target.explain(), "remove_dead") == 0


@pytest.mark.parametrize("op", ["add", "sub", "mul", "max"])
def test_memory_is_not_taken_from_an_operand_that_turns_out_to_be_smaller(op):
    def model():
        x, y = fluid.data("x", [None, 700], "float32"), fluid.data("y", [None, 700], "float32")
        x.stop_gradient = y.stop_gradient = False
        h = getattr(layers, "elementwise_" + op)(layers.softmax(x), layers.softmax(y))
        loss = layers.reduce_sum(layers.square(layers.softmax(h)))
        fluid.gradients(loss, [x, y])
        return loss, lambda rng: {"x": rng.normal(0, 1, (rows[0], 700)).astype("float32"),
                                  "y": rng.normal(0, 1, (rows[1], 700)).astype("float32")}

    for rows in ((1, 9), (9, 1), (9, 9)):  # noqa: B007 (the model reads it)
        trained = Trained(model)
        expected, _ = trained.run([], fetch=[trained.loss.name, "x@GRAD", "y@GRAD"])
        for on in (["reuse_input"], PASSES):
            got, _ = trained.run(on, fetch=[trained.loss.name, "x@GRAD", "y@GRAD"])
            for a, b in zip(expected, got):
                np.testing.assert_array_equal(a, b)


def test_residual_sums_still_take_memory():
    def model():
        x = fluid.data("x", [None, 8], "float32")
        h = layers.softmax(x)
        loss = layers.mean(layers.softmax(layers.elementwise_add(layers.softmax(layers.fc(h, 8, act="relu")), h)))
        return loss, lambda rng: {"x": rng.normal(0, 1, (4, 8)).astype("float32")}
    _, told = Trained(model).run(["reuse_input"])
    assert changes(told, "reuse_input") >= 3


@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_a_cast_of_what_is_fed_in_another_dtype_is_made(dtype):
    """A variable of layers.data takes arrays of any dtype: its declaration says nothing of them."""
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        out = layers.scale(layers.cast(layers.data("x", [3]), "float32"), 0.5)
    given = np.arange(6).reshape(2, 3).astype(dtype)
    got, = fluid.Executor().run(program, feed={"x": given}, fetch_list=[out])
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, given.astype("float32") / 2)


def test_a_gradient_has_the_shape_of_its_variable_when_a_parameter_is_larger_than_declared():
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, startup), fluid.scope_guard(scope):
        x = fluid.data("x", [None, 3], "float32")
        x.stop_gradient = False
        bias = layers.create_parameter([3], "float32", name="bias")
        loss = layers.mean(layers.square(layers.elementwise_add(layers.scale(x, 2.0), bias)))
        gradient, = fluid.gradients(loss, x)
        exe, target = fluid.Executor(fluid.CPUPlace()), fluid.CompiledProgram(main)
        exe.run(startup)
        for shape in [(3,), (4, 3), (3,)]:
            value = np.ones(shape, "float32")
            scope.find_var("bias").get_tensor().set(value, fluid.CPUPlace())
            got, = exe.run(target, feed={"x": np.ones((1, 3), "float32")}, fetch_list=[gradient])
            np.testing.assert_allclose(got, np.full((1, 3), 4.0, "float32"))
            assert ("disabled for this step" in target.explain()) == (len(shape) == 2)
