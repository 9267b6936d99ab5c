"""Unrolled recurrences."""
from recurrent_nets import BATCH, HIDDEN, STEPS, WIDTH

import anabranch.fluid as fluid

layers = fluid.layers


def lstm_of_two(x, h, c):
    """The products with x and with the state are apart."""
    sums = layers.fc([x, h], 4 * HIDDEN, param_attr=["wx", "wh"], bias_attr="b")
    i, f, o, j = layers.split(sums, 4, dim=1)
    c = c * layers.sigmoid(f) + layers.sigmoid(i) * layers.tanh(j)
    return layers.sigmoid(o) * layers.tanh(c), c


def unstacked(x):
    return layers.unstack(x, axis=0, num=STEPS)


def all_stacked(states):
    return [layers.stack([state[0] for state in states], axis=0)]


def unrolled(step, states=2, parts=unstacked, shown=all_stacked):
    def model():
        x = fluid.data("x", [STEPS, BATCH, WIDTH], "float32")
        first = [fluid.data(name, [BATCH, HIDDEN], "float32") for name in ("h0", "c0")[:states]]
        for value in (x, *first):
            value.stop_gradient = False
        inputs = parts(layers.scale(x, 2.0))
        now, after = [layers.scale(state, 2.0) for state in first], []
        for one in inputs:
            now = step(one, *now)
            now = list(now) if states > 1 else [now]
            after.append(now)
        loss = layers.sums([layers.mean(layers.square(out)) for out in shown(after)])
        fluid.optimizer.SGD(0.5).minimize(loss)
        shapes = {"x": (STEPS, BATCH, WIDTH), **{state.name: (BATCH, HIDDEN) for state in first}}
        return loss, lambda rng: {name: rng.normal(0, 1, shape).astype("float32") for name, shape in shapes.items()}
    return model


def gru_unit(x, h):
    sums = layers.fc(x, 3 * HIDDEN, param_attr="wx", bias_attr="bx")
    return layers.gru_unit(sums, h, 3 * HIDDEN, param_attr="wh", bias_attr="bh")[0]


def lstm_of_unit(x, h, c):
    return layers.lstm_unit(x, h, c, forget_bias=0.5, param_attr="w", bias_attr="b")
