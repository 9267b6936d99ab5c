"""Loops of DynamicRNN over a step, ready to be trained on sequences with states before the first step."""
from cell_nets import HIDDEN, WIDTH, joined
from trained_nets import found as found_by

import anabranch.fluid as fluid

layers = fluid.layers
NAME = "fuse_sequence_steps"
ALONE = ["remove_dead", NAME]
LENGTHS = [[3, 0, 5, 1, 5, 2], [1, 1, 2, 0, 0, 1]]


def found(explained):
    return found_by(explained, NAME)


def ragged(rng, lengths, width):
    values = rng.normal(0, 1, (sum(lengths), width)).astype("float32")
    return fluid.create_lod_tensor(values, [lengths], fluid.CPUPlace())


def feeder(states, width=WIDTH, all_lengths=LENGTHS, **first_rows):
    """One list of lengths after the other; a row of first states for each sequence."""
    count = [0]

    def feed(rng):
        lengths = all_lengths[count[0] % len(all_lengths)]
        count[0] += 1
        values = {"x": ragged(rng, lengths, width)}
        for name in ("h0", "c0")[:states]:
            values[name] = rng.normal(0, 1, (len(lengths), HIDDEN)).astype("float32")
        return values
    return feed


def in_dynamic(step, states=1, width=WIDTH, first="init", all_lengths=LENGTHS, shown=None, more=None):
    """first: "init", "reordered", or the number that first states are full of. more(rnn, x, before, after): inside."""
    given = states if isinstance(first, str) else 0

    def model():
        x = fluid.data("x", [None, width], "float32", lod_level=1)
        begin = [fluid.data(name, [None, HIDDEN], "float32") for name in ("h0", "c0")[:given]]
        for value in (x, *begin):
            value.stop_gradient = False
        doubled = [layers.scale(value, 2.0) for value in (x, *begin)]
        rnn = layers.DynamicRNN()
        with rnn.block():
            now = rnn.step_input(doubled[0])
            if given:
                before = [rnn.memory(init=value, need_reorder=first == "reordered") for value in doubled[1:]]
            else:
                before = [rnn.memory(shape=[HIDDEN], value=first) for _ in range(states)]
            after = step(now, *before)
            after = after if states > 1 else [after]
            for memory, value in zip(before, after):
                rnn.update_memory(memory, value)
            if more:
                more(rnn, now, before, after)
            rnn.output(*[after[i] for i in shown or range(states)])
        outputs = rnn()
        outputs = outputs if isinstance(outputs, list) else [outputs]
        loss = layers.sums([layers.mean(layers.square(out)) for out in outputs])
        fluid.optimizer.SGD(0.5).minimize(loss)
        return loss, feeder(given, width, all_lengths)
    return model


def run_dynamic(x, step, value=0.5):
    """Over one state that starts full of a number."""
    rnn = layers.DynamicRNN()
    with rnn.block():
        now, h = rnn.step_input(x), rnn.memory(shape=[HIDDEN], value=value)
        new = step(now, h)
        rnn.update_memory(h, new)
        rnn.output(new)
    return rnn()


def simple(x, h):
    return layers.fc([x, h], HIDDEN, act="tanh")


def simple_joined(x, h):
    return layers.fc(joined(h, x), HIDDEN, act="sigmoid", bias_attr=False)


def fetches(trained, names=("x@GRAD", "h0@GRAD", "c0@GRAD")):
    return [trained.loss.name, *[v.name for v in trained.main.list_vars() if v.name in names]]
