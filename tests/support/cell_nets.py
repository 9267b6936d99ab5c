"""Loops over cells, built from layers."""
from recurrent_nets import ALONE, BATCH, HIDDEN, STEPS, WIDTH, close, found
from trained_nets import PASSES, Trained

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
