"""Steps of a cell that a loop of Python leaves one after another become one op, in whichever form x comes and states
are read; what differs between the steps, or is read between them, keeps them as they are."""
import numpy as np
import pytest
from recurrent_nets import BATCH, HIDDEN, STEPS, WIDTH, cell, close
from trained_nets import PASSES, Trained, of_one_size
from trained_nets import found as found_by
from unrolled_nets import all_stacked, gru_unit, layers, lstm_of_two, lstm_of_unit, unrolled, unstacked

import anabranch.fluid as fluid

ALONE = ["remove_dead", "fuse_unrolled"]


def found(explained):
    return found_by(explained, "fuse_unrolled")


def named_gates(x, h, prefix="first"):
    """A GRU with named parameters."""
    fc = lambda parts, width, name: layers.fc(parts, width, param_attr=prefix + name, bias_attr=prefix + name + "_b")
    reset, update = layers.split(fc(layers.concat([x, h], axis=1), 2 * HIDDEN, "gates"), 2, dim=1)
    new = layers.tanh(fc(layers.concat([x, layers.sigmoid(reset) * h], axis=1), HIDDEN, "candidate"))
    update = layers.sigmoid(update)
    return (1 - update) * h + update * new


def sliced(x):
    return [layers.squeeze(layers.slice(x, axes=[0], starts=[t], ends=[t + 1]), axes=[0]) for t in range(STEPS)]


def turned(x):
    return layers.unstack(x, axis=0, num=STEPS)[::-1]


def last_only(states):
    return list(states[-1])


def some(states):
    return [states[0][0], layers.stack([state[0] for state in states], axis=0), states[2][-1], states[2][-1] * 2.0]


def is_fused(model, what, count=1, fetch=(), near=close, **options):
    trained = Trained(model)
    fetch = [*fetch, *(v.name for v in trained.main.list_vars() if v.name in ("x@GRAD", "h0@GRAD", "c0@GRAD"))]
    expected, told = trained.run([], fetch=fetch)
    assert "fuse_unrolled    skipped" in told
    for on in (ALONE, PASSES):
        got, told = trained.run(on, fetch=fetch, **options)
        assert found(told) == (count, ["%d %s" % (STEPS, what)] * (count // options.get("replicas", 1)))
        near(expected, got)


@pytest.mark.parametrize("shown", [all_stacked, last_only, some])
@pytest.mark.parametrize("parts", [unstacked, sliced, turned])
def test_steps_of_an_lstm_are_one_op(parts, shown):
    is_fused(unrolled(cell, parts=parts, shown=shown), "an LSTM")


@pytest.mark.parametrize("step", [lstm_of_unit, lstm_of_two])
def test_other_ways_to_write_an_lstm(step):
    is_fused(unrolled(step), "an LSTM")


@pytest.mark.parametrize("shown", [all_stacked, last_only])
@pytest.mark.parametrize("step", [named_gates, gru_unit])
def test_steps_of_a_gru_are_one_op(step, shown):
    is_fused(unrolled(step, states=1, shown=shown), "a GRU")


def simple(x, h):
    return layers.fc([x, h], HIDDEN, act="tanh", param_attr=["wx", "wh"], bias_attr="b")


def simple_joined(x, h):
    return layers.sigmoid(layers.fc(layers.concat([h, x], axis=1), HIDDEN, param_attr="w", bias_attr=False))


@pytest.mark.parametrize("parts", [unstacked, sliced])
@pytest.mark.parametrize("step", [simple, simple_joined])
def test_steps_of_a_simple_cell_are_one_op(step, parts):
    is_fused(unrolled(step, states=1, parts=parts, shown=some), "a simple cell", near=of_one_size)


def test_threads_change_no_bit():
    trained = Trained(unrolled(cell, shown=some))
    alone, _ = trained.run(ALONE)
    for threads in (2, 7):
        got, told = trained.run(ALONE, threads=threads)
        assert found(told) == (1, ["%d an LSTM" % STEPS])
        for a, b in zip(alone, got):
            np.testing.assert_array_equal(a, b)


def test_layer_after_layer():
    def second(states):
        (h, c), after = [layers.scale(state, 0.5) for state in states[-1]], []
        for state in states:
            h, c = layers.lstm_unit(state[0], h, c, param_attr="w2", bias_attr="b2")
            after.append((h, c))
        return all_stacked(after) + list(after[-1])
    is_fused(unrolled(lstm_of_unit, shown=second), "an LSTM", count=2)


def test_x_of_two_products_whose_gradient_goes_on_stays():
    """The shares of the gradient of x are added up with others elsewhere."""
    def second(states):
        h, after = layers.scale(states[-1][0], 0.5), []
        for state in states:
            h = named_gates(state[0], h, "second")
            after.append([h])
        return all_stacked(after)
    trained = Trained(unrolled(named_gates, states=1, shown=second))
    expected, _ = trained.run([])
    got, told = trained.run(ALONE)
    count, notes = found(told)
    assert count == 1 and sum(" does not have the expected form" in note for note in notes) == 1
    close(expected, got)


def test_inference_has_no_gradient():
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        x = fluid.data("x", [STEPS, None, WIDTH], "float32")
        h, c = fluid.data("h", [None, HIDDEN], "float32"), fluid.data("c", [None, HIDDEN], "float32")
        first = [h, c]
        for one in unstacked(x):
            h, c = cell(one, h, c)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        rng = np.random.RandomState(1)
        feed = {"x": rng.normal(0, 1, (STEPS, BATCH, WIDTH)).astype("float32"),
                **{v.name: rng.normal(0, 1, (BATCH, HIDDEN)).astype("float32") for v in first}}
        got = []
        for on in (True, False):
            fluid.set_flags({"FLAGS_fuse_recurrent": on})
            try:
                target = fluid.CompiledProgram(main)
                got.append(exe.run(target, feed=feed, fetch_list=[h, c]))
            finally:
                fluid.set_flags({"FLAGS_fuse_recurrent": True})
            if on:
                assert found(target.explain()) == (1, ["%d an LSTM" % STEPS])
        close(got[1], got[0])


def fed_back(x, h, c):
    return cell(layers.elementwise_add(x, layers.fc(h, WIDTH, param_attr="back", bias_attr=False)), h, c)


def test_what_a_step_feeds_to_the_next_stays():
    trained = Trained(unrolled(fed_back))
    expected, _ = trained.run([])
    got, told = trained.run(ALONE)
    assert found(told)[0] == 0
    for a, b in zip(expected, got):
        np.testing.assert_array_equal(a, b)


def test_what_is_read_between_the_gates_stays():
    trained = Trained(unrolled(cell))
    inner = next(op for op in trained.main.global_block().ops if op.type == "tanh").output("Out")
    expected, _ = trained.run([], fetch=inner)
    got, told = trained.run(ALONE, fetch=inner)
    assert found(told) == (0, ["%d left as they are: %s is read elsewhere" % (STEPS, inner[0])])
    for a, b in zip(expected, got):
        np.testing.assert_array_equal(a, b)


def test_a_gradient_that_another_made_stays():
    def model():
        loss, feed = unrolled(cell)()
        next(op for op in loss.block.ops if op.type == "tanh_grad")._set_attr("use_mkldnn", True)
        return loss, feed
    _, told = Trained(model).run(ALONE)
    count, notes = found(told)
    assert count == 0 and "in its gradient is not what append_backward makes" in notes[0]
