"""Loops of DynamicRNN that are an LSTM, a GRU or a simple cell become one op, with what they make of their states."""
import numpy as np
import pytest
from cell_nets import (
    HIDDEN,
    WIDTH,
    apart,
    joined,
    kept,
    linear,
    lstm_apart,
    lstm_by_unit,
    lstm_of_sums,
    moved,
    split_inputs,
    together,
    unit,
    unit_of_sums,
    unit_relu,
)
from sequence_loops import ALONE, NAME, fetches, found, in_dynamic, ragged, run_dynamic, simple, simple_joined
from trained_nets import PASSES, Trained, of_one_size

import anabranch.fluid as fluid

layers = fluid.layers


def simple_of_sums(x, h):
    return layers.relu(layers.elementwise_add(x, layers.fc(h, HIDDEN)))


def lstm_joined(x, h, c):
    i, j, f, o = layers.split(linear(joined(x, h), 4 * HIDDEN), 4, dim=1)
    c = c * layers.sigmoid(f) + layers.sigmoid(i) * layers.tanh(j)
    return layers.tanh(c) * layers.sigmoid(o), c


GRUS = [apart, together, split_inputs, moved, kept, unit, unit_relu]
LSTMS = [lstm_apart, lstm_by_unit]
SIMPLE = [simple, simple_joined]
KINDS = [*[(step, 1, "a GRU") for step in GRUS], *[(step, 2, "an LSTM") for step in LSTMS],
         *[(step, 1, "a simple cell") for step in SIMPLE]]


def is_fused(model, what, loops=1, **options):
    trained = Trained(model)
    fetch = fetches(trained)
    expected, told = trained.run([], fetch=fetch)
    assert NAME + " skipped" in told
    for on in (ALONE, PASSES):
        got, told = trained.run(on, fetch=fetch)
        assert found(told) == (loops, [what] * loops)
        of_one_size(expected, got)
    return trained


@pytest.mark.parametrize("first", ["init", "reordered", 0.25])
@pytest.mark.parametrize("step,states,what", KINDS)
def test_a_loop_is_one_op(step, states, what, first):
    is_fused(in_dynamic(step, states, first=first), what)


@pytest.mark.parametrize("step,states,width,what", [(unit_of_sums, 1, 3 * HIDDEN, "a GRU"),
                                                    (lstm_of_sums, 2, 4 * HIDDEN, "an LSTM"),
                                                    (simple_of_sums, 1, HIDDEN, "a simple cell")])
def test_x_may_be_the_sums(step, states, width, what):
    is_fused(in_dynamic(step, states, width), what)


def test_one_output_of_two_states():
    is_fused(in_dynamic(lstm_joined, 2, shown=[1]), "an LSTM")
    is_fused(in_dynamic(lstm_joined, 2, shown=[0], first=0.0), "an LSTM")


def test_layers_upon_layers_and_what_follows_them():
    def model():
        words = fluid.data("words", [None, 1], "int64", lod_level=1)
        label = fluid.data("label", [None, 1], "int64")
        x = layers.fc(layers.embedding(words, [20, 5]), 2 * HIDDEN, act="tanh")
        for step in (simple, together):
            x = run_dynamic(x, step)
        loss = layers.mean(layers.cross_entropy(layers.fc(layers.sequence_last_step(x), 3, act="softmax"), label))
        fluid.optimizer.Adam(0.05).minimize(loss)

        def feed(rng):
            lengths = rng.randint(1, 6, 7).tolist()
            ids = rng.randint(0, 20, (sum(lengths), 1)).astype("int64")
            return {"words": fluid.create_lod_tensor(ids, [lengths], fluid.CPUPlace()),
                    "label": rng.randint(0, 3, (7, 1)).astype("int64")}
        return loss, feed

    trained = Trained(model)
    expected, _ = trained.run([], steps=3)
    for on in (ALONE, PASSES):
        got, told = trained.run(on, steps=3)
        assert found(told) == (2, ["a simple cell", "a GRU"])
        of_one_size(expected, got)


@pytest.mark.parametrize("replicas", [1, 2])
def test_weights_that_two_loops_and_a_penalty_share(replicas):
    def step(x, h):
        return layers.fc(joined(x, h), HIDDEN, act="tanh", param_attr="w", bias_attr="b")

    def model():
        x = fluid.data("x", [None, WIDTH], "float32", lod_level=1)
        outputs = [run_dynamic(layers.scale(x, by), step) for by in (1.0, 2.0)]
        loss = layers.sums([layers.mean(layers.square(out)) for out in outputs])
        weight = fluid.default_main_program().global_block().var("w")
        loss = layers.elementwise_add(loss, layers.scale(layers.reduce_sum(layers.square(weight)), 0.01))
        fluid.optimizer.SGD(0.5).minimize(loss)
        return loss, lambda rng: {"x": ragged(rng, [3, 1, 2, 4, 2, 1], WIDTH)}

    trained = Trained(model)
    expected, _ = trained.run([], replicas=replicas)
    for on in (ALONE, PASSES):
        got, told = trained.run(on, replicas=replicas)
        assert found(told) == (2 * replicas, ["a simple cell"] * 2)
        of_one_size(expected, got)


@pytest.mark.parametrize("step,states,what", [(together, 1, "a GRU"), (lstm_apart, 2, "an LSTM"),
                                              (simple, 1, "a simple cell")])
def test_replicas_and_threads(step, states, what):
    lengths = [[3, 0, 5, 1, 5, 2, 1, 1, 2, 4, 1, 2]]
    trained = Trained(in_dynamic(step, states, all_lengths=lengths))
    for replicas in (1, 2, 3):
        expected, _ = trained.run([], replicas=replicas)
        alone, told = trained.run(ALONE, replicas=replicas)
        assert found(told) == (replicas, [what])
        of_one_size(expected, alone)
        for threads in (2, 7):
            got, _ = trained.run(ALONE, replicas=replicas, threads=threads)
            for a, b in zip(alone, got):
                np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("hidden,lengths", [(1, [1]), (16, [4, 9, 2, 7] * 4), (33, [6] * 25), (70, [1, 30, 2] * 17)])
def test_sizes(hidden, lengths):
    def step(x, h):
        u, r = layers.split(layers.sigmoid(layers.fc(joined(x, h), 2 * hidden)), 2, dim=1)
        return (1 - u) * h + u * layers.tanh(layers.fc([x, r * h], hidden))

    def model():
        x = fluid.data("x", [None, WIDTH], "float32", lod_level=1)
        outputs = []
        for cell in (step, lambda x, h: layers.fc([x, h], hidden, act="tanh")):
            rnn = layers.DynamicRNN()
            with rnn.block():
                now, h = rnn.step_input(x), rnn.memory(shape=[hidden], value=0.1)
                new = cell(now, h)
                rnn.update_memory(h, new)
                rnn.output(new)
            outputs.append(layers.mean(layers.square(rnn())))
        loss = layers.sums(outputs)
        fluid.optimizer.SGD(0.5).minimize(loss)
        return loss, lambda rng: {"x": ragged(rng, lengths, WIDTH)}

    trained = Trained(model)
    expected, _ = trained.run([])
    got, told = trained.run(ALONE)
    assert found(told) == (2, ["a GRU", "a simple cell"])
    of_one_size(expected, got)


def scores(rnn, x, before, after):
    """As decoders do."""
    rnn.output(layers.fc(after[0], 7, act="softmax"))


def several(rnn, x, before, after):
    """Ops that read each other, two outputs, one of which others read."""
    h = layers.fc(after[-1], HIDDEN, act="tanh")
    mixed = layers.elementwise_mul(layers.sums([h, after[0], h]), layers.scale(after[0], 0.5, bias=1.0))
    shown = layers.sigmoid(mixed)
    rnn.output(shown)
    rnn.output(layers.fc([layers.square(shown), after[0]], 3, bias_attr=False))


@pytest.mark.parametrize("first", ["reordered", 0.25])
@pytest.mark.parametrize("more", [scores, several])
@pytest.mark.parametrize("step,states,what", [(simple, 1, "a simple cell"), (unit, 1, "a GRU"),
                                              (lstm_joined, 2, "an LSTM")])
def test_what_a_step_makes_of_its_states_row_by_row(step, states, what, more, first):
    is_fused(in_dynamic(step, states, first=first, more=more), what)


@pytest.mark.parametrize("replicas", [1, 2])
def test_the_decoder_of_the_book(replicas):
    """An encoder, whose last state starts the decoder, and scores of words in each step."""
    def model():
        source, target, following = (fluid.data(name, [None, 1], "int64", lod_level=1) for name in ("s", "t", "f"))
        encoded, _ = layers.dynamic_lstm(layers.fc(layers.embedding(source, [20, 5]), 4 * HIDDEN), 4 * HIDDEN)
        words = layers.embedding(target, [20, WIDTH])
        context = layers.sequence_last_step(encoded)
        rnn = layers.DynamicRNN()
        with rnn.block():
            now, h = rnn.step_input(words), rnn.memory(init=context, need_reorder=True)
            new = layers.fc([now, h], HIDDEN, act="tanh")
            rnn.update_memory(h, new)
            rnn.output(layers.fc(new, 20, act="softmax"))
        loss = layers.mean(layers.cross_entropy(rnn(), following))
        fluid.optimizer.SGD(0.5).minimize(loss)

        def feed(rng):
            def words(lengths):
                ids = rng.randint(0, 20, (sum(lengths), 1)).astype("int64")
                return fluid.create_lod_tensor(ids, [lengths], fluid.CPUPlace())
            lengths = [2, 5, 1, 3, 4, 2]
            return {"s": words([1, 4, 2, 2, 3, 1]), "t": words(lengths), "f": words(lengths)}
        return loss, feed
    trained = Trained(model)
    expected, _ = trained.run([], replicas=replicas, steps=3)
    for on in (ALONE, PASSES):
        got, told = trained.run(on, replicas=replicas, steps=3)
        assert found(told) == (replicas, ["a simple cell"])
        of_one_size(expected, got)


def test_blocks_may_have_names_in_common():
    def cell(number):
        def step(x, h):
            with fluid.unique_name.guard():
                return layers.fc(joined(x, h), HIDDEN, act="tanh", param_attr="w%d" % number, bias_attr="b%d" % number)
        return step

    def model():
        x = fluid.data("x", [None, WIDTH], "float32", lod_level=1)
        losses = []
        for number in range(2):
            rnn = layers.DynamicRNN()
            with rnn.block():
                now, h = rnn.step_input(x), rnn.memory(shape=[HIDDEN], value=0.5)
                new = cell(number)(now, h)
                rnn.update_memory(h, new)
                with fluid.unique_name.guard():
                    shown = layers.scale(new, 2.0 + number)
                with fluid.unique_name.guard("seen"):
                    rnn.output(layers.square(shown))
            losses.append(layers.mean(rnn()))
        loss = layers.sums(losses)
        fluid.optimizer.SGD(0.1).minimize(loss)
        return loss, lambda rng: {"x": ragged(rng, [3, 1, 0, 4, 2, 1], WIDTH)}
    trained = Trained(model)
    assert all("scale_0.tmp_0" in trained.main.block(1 + i).vars for i in range(2))
    expected, _ = trained.run([])
    for on in (ALONE, PASSES):
        got, told = trained.run(on)
        assert found(told) == (2, ["a simple cell"] * 2)
        of_one_size(expected, got)


@pytest.mark.parametrize("replicas", [1, 3])
def test_scores_alone_and_their_sequences(replicas):
    def model():
        x = fluid.data("x", [None, WIDTH], "float32", lod_level=1)
        rnn = layers.DynamicRNN()
        with rnn.block():
            now, h = rnn.step_input(x), rnn.memory(shape=[HIDDEN], value=0.5)
            new = simple(now, h)
            rnn.update_memory(h, new)
            rnn.output(layers.fc(new, 5, act="softmax", param_attr="shared"))
        out = rnn()
        kept["out"] = out.name
        weight = fluid.default_main_program().global_block().var("shared")
        penalty = layers.scale(layers.reduce_sum(layers.square(weight)), 0.01)
        loss = layers.elementwise_add(layers.mean(layers.square(out)), penalty)
        fluid.optimizer.SGD(0.5).minimize(loss)
        return loss, lambda rng: {"x": ragged(rng, [3, 1, 0, 4, 2, 1], WIDTH)}

    kept = {}
    trained = Trained(model)
    fetch = [trained.loss.name, kept["out"]]
    expected, _ = trained.run([], fetch=fetch, replicas=replicas)
    for on in (ALONE, PASSES):
        got, told = trained.run(on, fetch=fetch, replicas=replicas)
        assert found(told) == (replicas, ["a simple cell"])
        of_one_size(expected, got)
    feed, lods = trained.feed(np.random.RandomState(0)), []
    for on in ([], ALONE):
        out, = trained.exe.run(trained.compiled(on), feed=feed, fetch_list=[kept["out"]], scope=trained.begin(),
                               return_numpy=False)
        lods.append(out.recursive_sequence_lengths())
    assert lods == [[[3, 1, 0, 4, 2, 1]]] * 2
