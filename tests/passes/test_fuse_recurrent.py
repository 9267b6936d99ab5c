"""Blocks for each step that are an LSTM become one op: which do, which stay and why, and what comes out."""
import numpy as np
import pytest
from recurrent_nets import ALONE, BATCH, HIDDEN, STEPS, WIDTH, cell, close, found, gates, layers
from trained_nets import PASSES, Trained

import anabranch.fluid as fluid


def static(step=cell, shown=("h",), learn_first=True, **options):
    """A StaticRNN over `step`, trained on what it shows, and on what its first state is made of."""
    def model():
        x = fluid.data("x", [STEPS, BATCH, WIDTH], "float32")
        x.stop_gradient = False
        first = [fluid.data(name, [BATCH, HIDDEN], "float32") for name in ("h0", "c0")]
        for state in first:
            state.stop_gradient = not learn_first
        outputs = run_static(layers.scale(x, 2.0), [layers.scale(s, 2.0) for s in first], step, shown, options)
        loss = layers.sums([layers.mean(layers.square(out)) for out in outputs])
        fluid.optimizer.SGD(0.5).minimize(loss)

        def feed(rng):
            return {"x": rng.normal(0, 1, (STEPS, BATCH, WIDTH)).astype("float32"),
                    "h0": rng.normal(0, 1, (BATCH, HIDDEN)).astype("float32"),
                    "c0": rng.normal(0, 1, (BATCH, HIDDEN)).astype("float32")}
        return loss, feed
    return model


def run_static(x, first, step, shown, options):
    rnn = layers.StaticRNN()
    with rnn.step():
        h, c = (rnn.memory(init=state) for state in first)
        states = dict(zip("hc", step(rnn.step_input(x), h, c, **options)))
        rnn.update_memory(h, states["h"])
        rnn.update_memory(c, states["c"])
        for name in shown:
            rnn.step_output(states[name])
    outputs = rnn()
    return outputs if isinstance(outputs, (list, tuple)) else [outputs]


def gradients_of(trained):
    block = trained.main.global_block()
    return [name for name in ("x@GRAD", "h0@GRAD", "c0@GRAD", "w@GRAD", "b@GRAD") if block.has_var(name)]


@pytest.mark.parametrize("on", [ALONE, PASSES])
@pytest.mark.parametrize("options", [
    {}, {"turned": True}, {"places": (0, 1, 2, 3)}, {"places": (3, 2, 1, 0)}, {"bias": False},
    {"shown": ("h", "c")}, {"shown": ("c",)}, {"shown": ("h", "h", "c")}, {"learn_first": False}])
def test_an_lstm_is_one_op(on, options):
    trained = Trained(static(**options))
    fetch = gradients_of(trained)
    assert {"w@GRAD"} <= set(fetch)
    expected, told = trained.run([name for name in on if name != "fuse_recurrent"], fetch=fetch)
    assert "fuse_recurrent   skipped" in told
    got, told = trained.run(on, fetch=fetch)
    assert found(told) == (1, ["an LSTM"])
    close(expected, got)


def other_gate(x, h, c):
    return cell(x, h, c, activation="hard_sigmoid")


def with_memory_read(x, h, c):
    h, c = cell(x, h, c)
    return layers.elementwise_mul(h, c), c


def one_gate_twice(x, h, c):
    return cell(x, h, c, places=(1, 0, 2, 2))


def without_x(x, h, c):
    return cell(h, h, c)


def more_outside(x, h, c):
    return cell(layers.elementwise_mul(x, x), h, c)


@pytest.mark.parametrize("step,why", [
    (other_gate, "its memories are not the cell and state of an LSTM"),
    (with_memory_read, "its memories are not the cell and state of an LSTM"),
    (one_gate_twice, "its memories are not the cell and state of an LSTM"),
    (without_x, "its memories are not the cell and state of an LSTM"),
    (more_outside, "its memories are not the cell and state of an LSTM")])
def test_an_unknown_lstm_stays_and_says_why(step, why):
    trained = Trained(static(step))
    expected, _ = trained.run([])
    got, told = trained.run(ALONE)
    assert found(told) == (0, ["left as it is: " + why])
    for a, b in zip(expected, got):
        np.testing.assert_array_equal(a, b)


def test_cells_of_rnn_are_recognized_with_their_forget_bias():
    def model():
        x = fluid.data("x", [BATCH, STEPS, WIDTH], "float32")
        out, (h, c) = layers.rnn(layers.LSTMCell(HIDDEN), x)
        loss = layers.mean(layers.square(out)) + layers.mean(h) + layers.mean(layers.square(c))
        fluid.optimizer.SGD(0.5).minimize(loss)
        return loss, lambda rng: {"x": rng.normal(0, 1, (BATCH, STEPS, WIDTH)).astype("float32")}

    trained = Trained(model)
    expected, _ = trained.run([])
    got, told = trained.run(ALONE)
    assert found(told) == (1, ["an LSTM"])
    close(expected, got)


@pytest.mark.parametrize("replicas", [1, 2])
def test_weights_that_two_recurrences_and_a_penalty_share(replicas):
    """The gradient of the first recurrence is added to what there is of it already."""
    def model():
        x = fluid.data("x", [None, STEPS, WIDTH], "float32")
        first = [layers.fill_constant_batch_size_like(x, [-1, HIDDEN], "float32", 0.1) for _ in range(2)]
        turned = layers.transpose(x, [1, 0, 2])
        outputs = [run_static(layers.scale(turned, by), first, cell, ("h",), {})[0] for by in (1.0, 2.0)]
        weight = fluid.default_main_program().global_block().var("w")
        loss = layers.sums([layers.mean(layers.square(layers.transpose(out, [1, 0, 2]))) for out in outputs])
        loss = layers.elementwise_add(loss, layers.scale(layers.reduce_sum(layers.square(weight)), 0.01))
        fluid.optimizer.SGD(0.5).minimize(loss)
        return loss, lambda rng: {"x": rng.normal(0, 1, (12, STEPS, WIDTH)).astype("float32")}

    trained = Trained(model)
    expected, _ = trained.run([], replicas=replicas)
    for on in (ALONE, PASSES):
        got, told = trained.run(on, replicas=replicas)
        assert found(told) == (2 * replicas, ["an LSTM", "an LSTM"])
        close(expected, got)


def test_outputs_with_two_readers_stay():
    trained = Trained(static(shown=("h", "h")))
    outputs = next(op for op in trained.main.global_block().ops if op.type == "recurrent").output("outputs")
    expected, _ = trained.run([], fetch=outputs)
    got, told = trained.run(ALONE, fetch=outputs[:1])
    assert found(told)[0] == 1
    np.testing.assert_allclose(expected[0], got[0], rtol=2e-6, atol=2e-7)
    got, told = trained.run(ALONE, fetch=outputs)
    assert found(told) == (0, ["left as it is: one state is an output twice, and both are needed after the run"])
    np.testing.assert_array_equal(expected[0], got[0])


def test_a_gradient_that_another_made_stays():
    def model():
        loss, feed = static()()
        ops = loss.block.program.block(2).ops
        assert loss.block.program.block(2).forward_block_idx == 1
        next(op for op in ops if op.type == "tanh_grad")._set_attr("use_mkldnn", True)
        return loss, feed
    _, told = Trained(model).run(ALONE)
    count, notes = found(told)
    assert count == 0 and "in its gradient is not what append_backward makes" in notes[0]


def test_shapes_that_do_not_fit_are_refused_by_the_ops_of_the_block():
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        x = fluid.data("x", [None, BATCH, WIDTH], "float32")
        first = [fluid.data("h0", [None, HIDDEN], "float32"), fluid.data("c0", [None, HIDDEN], "float32")]
        out, = run_static(x, first, cell, ("h",), {})
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        target = fluid.CompiledProgram(main)
        feed = {"x": np.ones((2, BATCH, WIDTH), "float32"), "h0": np.zeros((BATCH, HIDDEN), "float32"),
                "c0": np.zeros((BATCH + 1, HIDDEN), "float32")}
        with pytest.raises(fluid.core.EnforceNotMet, match="elementwise_mul"):
            exe.run(target, feed=feed, fetch_list=[out])
        assert "disabled for this step" in target.explain()
        exe.run(target, feed=dict(feed, c0=feed["c0"][:BATCH]), fetch_list=[out])
        assert found(target.explain())[0] == 1


@pytest.mark.parametrize("replicas,threads", [(1, 2), (2, 1), (2, 2), (3, 1)])
def test_replicas_and_threads(replicas, threads):
    def model():
        x = fluid.data("x", [None, STEPS, WIDTH], "float32")
        zeros = [layers.fill_constant_batch_size_like(x, [-1, HIDDEN], "float32", 0.1) for _ in range(2)]
        out, = run_static(layers.transpose(x, [1, 0, 2]), zeros, cell, ("h",), {})
        loss = layers.mean(layers.square(layers.transpose(out, [1, 0, 2])))
        fluid.optimizer.SGD(0.5).minimize(loss)
        return loss, lambda rng: {"x": rng.normal(0, 1, (12, STEPS, WIDTH)).astype("float32")}

    trained = Trained(model)
    expected, _ = trained.run([], replicas=replicas)
    got, told = trained.run(ALONE, replicas=replicas, threads=threads)
    assert found(told) == (replicas, ["an LSTM"])
    close(expected, got)
    alone, _ = trained.run(ALONE, replicas=replicas)
    for a, b in zip(alone, got):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("hidden,batch", [(1, 1), (15, 2), (16, 13), (33, 25), (70, 49)])
def test_threads_and_sizes(hidden, batch):
    def model():
        x = fluid.data("x", [STEPS, batch, WIDTH], "float32")
        first = [fluid.data(name, [batch, hidden], "float32") for name in ("h0", "c0")]

        def step(x, h, c):
            i, j, f, o = layers.split(gates(layers.concat([x, h], 1), 4 * hidden), 4, dim=1)
            c = layers.sigmoid(f) * c + layers.sigmoid(i) * layers.tanh(j)
            return layers.sigmoid(o) * layers.tanh(c), c
        out, = run_static(x, first, step, ("h",), {})
        loss = layers.mean(layers.square(out))
        fluid.optimizer.SGD(0.5).minimize(loss)
        return loss, lambda rng: {
            "x": rng.normal(0, 1, (STEPS, batch, WIDTH)).astype("float32"),
            **{name: rng.normal(0, 1, (batch, hidden)).astype("float32") for name in ("h0", "c0")}}

    trained = Trained(model)
    expected, _ = trained.run([])
    got, told = trained.run(ALONE)
    assert found(told) == (1, ["an LSTM"])
    close(expected, got)


def test_the_flag_turns_it_off():
    trained = Trained(static())
    fluid.set_flags({"FLAGS_fuse_recurrent": False})
    try:
        expected, told = trained.run(PASSES)
        assert "fuse_recurrent   skipped: FLAGS_fuse_recurrent is 0" in told
    finally:
        fluid.set_flags({"FLAGS_fuse_recurrent": True})
    got, _ = trained.run([name for name in PASSES if name != "fuse_recurrent"])
    for a, b in zip(expected, got):
        np.testing.assert_array_equal(a, b)
