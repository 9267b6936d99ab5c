"""The cells that users write for a step - GRU and LSTM, by units, by products joined or apart, masked after the end -
become one op; what is alike but computes otherwise stays and says why."""
import numpy as np
import pytest
from models import PASSES, Trained
from test_fuse_recurrent import ALONE, BATCH, HIDDEN, STEPS, WIDTH, close, found

import anabranch.fluid as fluid

layers = fluid.layers
WITHOUT_DEAD = ["remove_dead", *ALONE]     # the gradient of a mask that is not read


def linear(parts, width=HIDDEN, bias=None):
    return layers.fc(parts, width, bias_attr=bias)


def joined(x, h):
    return layers.concat([x, h], axis=1)


def mix(old, new, update):
    """The update gate is the share of the candidate."""
    return (1 - update) * old + update * new


def apart(x, h):
    """Each gate is a separate product, with two weights."""
    update, reset = layers.sigmoid(linear([x, h])), layers.sigmoid(linear([h, x]))
    return mix(h, layers.tanh(linear([x, reset * h])), update)


def together(x, h):
    """Both gates in one product, split before the activation."""
    reset, update = layers.split(linear(joined(x, h), 2 * HIDDEN), 2, dim=1)
    candidate = layers.tanh(linear(joined(x, layers.sigmoid(reset) * h)))
    return mix(h, candidate, layers.sigmoid(update))


def split_inputs(x, h):
    """x for all gates in one product, the state in another one."""
    of_update, of_reset, of_candidate = layers.split(linear(x, 3 * HIDDEN), 3, dim=1)
    update, reset = layers.split(linear(h, 2 * HIDDEN, bias=False), 2, dim=1)
    update, reset = layers.sigmoid(of_update + update), layers.sigmoid(of_reset + reset)
    return mix(h, layers.tanh(of_candidate + linear(h * reset, bias=False)), update)


def moved(x, h):
    update, reset = layers.sigmoid(linear(joined(x, h))), layers.sigmoid(linear(joined(h, x), bias=False))
    return h + update * (layers.tanh(linear(joined(reset * h, x))) - h)


def moved_back(x, h):
    update, reset = layers.sigmoid(linear(joined(x, h))), layers.sigmoid(linear(joined(h, x)))
    return h - update * (h - layers.tanh(linear(joined(reset * h, x))))


def kept(x, h):
    """The update gate is the share of the old state."""
    update, reset = layers.sigmoid(linear(joined(x, h))), layers.sigmoid(linear(joined(h, x)))
    return update * h + layers.tanh(linear(joined(reset * h, x))) * (1 - update)


def unit(x, h, **options):
    return layers.gru_unit(linear(x, 3 * HIDDEN), h, 3 * HIDDEN, **options)[0]


def unit_kept(x, h):
    return unit(x, h, origin_mode=True, bias_attr=False)


def unit_relu(x, h):
    return unit(x, h, activation="relu", gate_activation="sigmoid")


def unit_of_sums(x, h):
    """x are the sums: x has no weight."""
    return layers.gru_unit(x, h, 3 * HIDDEN)[0]


def lstm_apart(x, h, c):
    """As the Fluid book writes it: four gates, each with two weights."""
    gate = lambda: linear([h, x])
    forget, add, out = layers.sigmoid(gate()), layers.sigmoid(gate()), layers.sigmoid(gate())
    c = layers.sums([forget * c, add * layers.tanh(gate())])
    return out * layers.tanh(c), c


def lstm_by_unit(x, h, c):
    return layers.lstm_unit(x, h, c, forget_bias=0.5)


def lstm_of_sums(x, h, c):
    """x are the sums, in the order of the parts."""
    i, f, j, o = layers.split(x + linear(h, 4 * HIDDEN), 4, dim=1)
    c = c * layers.sigmoid(f) + layers.sigmoid(i) * layers.tanh(j)
    return layers.tanh(c) * layers.sigmoid(o), c


def in_static(step, states=1, width=WIDTH, steps=STEPS, batch=BATCH):
    def model():
        x = fluid.data("x", [steps, batch, width], "float32")
        first = [fluid.data(name, [batch, HIDDEN], "float32") for name in ("h0", "c0")[:states]]
        for value in (x, *first):
            value.stop_gradient = False
        doubled = [layers.scale(value, 2.0) for value in (x, *first)]
        rnn = layers.StaticRNN()
        with rnn.step():
            before = [rnn.memory(init=state) for state in doubled[1:]]
            after = step(rnn.step_input(doubled[0]), *before)
            after = after if states > 1 else [after]
            for memory, value in zip(before, after):
                rnn.update_memory(memory, value)
                rnn.step_output(value)
        outputs = rnn()
        outputs = outputs if states > 1 else [outputs]
        loss = layers.sums([layers.mean(layers.square(out)) for out in outputs])
        fluid.optimizer.SGD(0.5).minimize(loss)
        shapes = {"x": (steps, batch, width), **{state.name: (batch, HIDDEN) for state in first}}
        return loss, lambda rng: {name: rng.normal(0, 1, shape).astype("float32") for name, shape in shapes.items()}
    return model


def in_rnn(cell, lengths=True, **options):
    def model():
        x = fluid.data("x", [None, STEPS, WIDTH], "float32")
        x.stop_gradient = False
        if lengths:
            options["sequence_length"] = fluid.data("lengths", [None], "int64")
        outputs, last = layers.rnn(cell(HIDDEN), x, **options)
        last = last if isinstance(last, (list, tuple)) else [last]
        loss = layers.sums([layers.mean(layers.square(out)) for out in (outputs, *last)])
        fluid.optimizer.SGD(0.5).minimize(loss)

        def feed(rng):
            values = {"x": rng.normal(0, 1, (12, STEPS, WIDTH)).astype("float32")}
            return dict(values, lengths=rng.randint(0, STEPS + 1, 12)) if lengths else values
        return loss, feed
    return model


def is_fused(model, what, **options):
    """One op replaces the recurrence, and one its gradient; all gradients are as without."""
    trained = Trained(model)
    fetch = [v.name for v in trained.main.list_vars() if v.name in ("x@GRAD", "h0@GRAD", "c0@GRAD")]
    expected, told = trained.run([], fetch=fetch)
    assert "fuse_recurrent   skipped" in told
    for on in (WITHOUT_DEAD, PASSES):
        got, told = trained.run(on, fetch=fetch, **options)
        assert found(told) == (options.get("replicas", 1), [what])
        close(expected, got)


@pytest.mark.parametrize("step", [apart, together, split_inputs, moved, moved_back, kept, unit, unit_kept, unit_relu])
def test_a_gru_is_one_op(step):
    is_fused(in_static(step), "a GRU")


@pytest.mark.parametrize("step", [lstm_apart, lstm_by_unit])
def test_an_lstm_of_other_products_is_one_op(step):
    is_fused(in_static(step, states=2), "an LSTM")


def simple(x, h):
    return layers.fc([x, h], HIDDEN, act="tanh")


def simple_joined(x, h):
    return layers.sigmoid(linear(joined(h, x), bias=False))


def simple_of_sums(x, h):
    return layers.relu(layers.elementwise_add(x, linear(h)))


class SimpleCell(layers.RNNCell):
    def __init__(self, hidden):
        self.hidden = hidden

    def call(self, inputs, states):
        new = layers.fc([inputs, states], self.hidden, act="tanh")
        return new, new

    @property
    def state_shape(self):
        return [self.hidden]


@pytest.mark.parametrize("step,width", [(simple, WIDTH), (simple_joined, WIDTH), (simple_of_sums, HIDDEN)])
@pytest.mark.parametrize("batch,steps", [(3, 5), (1, 1), (49, 7)])
def test_a_product_and_its_activation_are_one_op(step, width, batch, steps):
    is_fused(in_static(step, width=width, batch=batch, steps=steps), "a simple cell")


@pytest.mark.parametrize("lengths", [True, False])
def test_simple_cells_of_rnn_with_and_without_lengths(lengths):
    is_fused(in_rnn(SimpleCell, lengths), "a simple cell")


def test_x_may_be_the_sums_of_the_gates():
    is_fused(in_static(unit_of_sums, width=3 * HIDDEN), "a GRU")
    is_fused(in_static(lstm_of_sums, states=2, width=4 * HIDDEN), "an LSTM")


@pytest.mark.parametrize("cell,what", [(layers.GRUCell, "a GRU"), (layers.LSTMCell, "an LSTM")])
@pytest.mark.parametrize("options", [{}, {"lengths": False}, {"is_reverse": True}])
def test_cells_of_rnn_with_and_without_lengths(cell, what, options):
    is_fused(in_rnn(cell, **options), what)


@pytest.mark.parametrize("cell,what", [(layers.GRUCell, "a GRU"), (layers.LSTMCell, "an LSTM")])
def test_masked_cells_on_threads_and_replicas(cell, what):
    trained = Trained(in_rnn(cell))
    alone, _ = trained.run(WITHOUT_DEAD)
    for threads in (2, 7):
        got, told = trained.run(WITHOUT_DEAD, threads=threads)
        assert found(told) == (1, [what])
        for a, b in zip(alone, got):
            np.testing.assert_array_equal(a, b)
    expected, _ = trained.run([], replicas=2)
    got, told = trained.run(WITHOUT_DEAD, replicas=2, threads=2)
    assert found(told) == (2, [what])
    close(expected, got)


@pytest.mark.parametrize("batch,steps", [(1, 1), (25, 3), (49, 7)])
@pytest.mark.parametrize("step,states", [(together, 1), (unit, 1), (lstm_apart, 2)])
def test_other_sizes(step, states, batch, steps):
    is_fused(in_static(step, states, batch=batch, steps=steps), "a GRU" if states == 1 else "an LSTM")


def reset_after(x, h):
    """The reset gate takes part in the product with the state: another cell."""
    update, reset = layers.sigmoid(linear([x, h])), layers.sigmoid(linear([x, h]))
    return mix(h, layers.tanh(linear(x) + reset * linear(h)), update)


def other_shares(x, h):
    update, reset = layers.sigmoid(linear([x, h])), layers.sigmoid(linear([x, h]))
    return (2 - update) * h + update * layers.tanh(linear([x, reset * h]))


def one_weight_twice(x, h):
    gate = lambda: layers.sigmoid(layers.fc(joined(x, h), HIDDEN, param_attr="shared", bias_attr=False))
    return mix(h, layers.tanh(linear([x, gate() * h])), gate())


def hard_gates(x, h):
    update, reset = layers.hard_sigmoid(linear([x, h])), layers.hard_sigmoid(linear([x, h]))
    return mix(h, layers.tanh(linear([x, reset * h])), update)


def dropped(x, h):
    return apart(x, h) * h


@pytest.mark.parametrize("step", [reset_after, other_shares, one_weight_twice, hard_gates, dropped])
def test_an_unknown_gru_stays_and_says_why(step):
    trained = Trained(in_static(step))
    expected, _ = trained.run([])
    got, told = trained.run(WITHOUT_DEAD)
    assert found(told) == (0, ["left as it is: its memory is not a state of a GRU or of a simple cell"])
    for a, b in zip(expected, got):
        np.testing.assert_array_equal(a, b)


def test_a_mask_that_is_trained_stays():
    def model():
        x = fluid.data("x", [STEPS, BATCH, WIDTH], "float32")
        share = layers.create_parameter([STEPS, BATCH], "float32", name="share")
        rnn = layers.StaticRNN()
        with rnn.step():
            h = rnn.memory(shape=[-1, HIDDEN], batch_ref=x, ref_batch_dim_idx=1)
            now, mask = rnn.step_input(x), rnn.step_input(share)
            new = together(now, h)
            rnn.update_memory(h, layers.elementwise_mul(new, mask, axis=0)
                              - layers.elementwise_mul(h, mask - 1, axis=0))
            rnn.step_output(new)
        loss = layers.mean(layers.square(rnn()))
        fluid.optimizer.SGD(0.5).minimize(loss)
        return loss, lambda rng: {"x": rng.normal(0, 1, (STEPS, BATCH, WIDTH)).astype("float32")}
    trained = Trained(model)
    expected, _ = trained.run([])
    got, told = trained.run(WITHOUT_DEAD)
    assert found(told) == (0, ["left as it is: share has a gradient"])
    for a, b in zip(expected, got):
        np.testing.assert_array_equal(a, b)
