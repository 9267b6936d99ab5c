"""Loops of DynamicRNN that are an LSTM, a GRU or a simple cell become one op: which do, which stay and why."""
import numpy as np
import pytest
from models import PASSES, Trained, of_one_size
from test_fuse_cells import (
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
    reset_after,
    split_inputs,
    together,
    unit,
    unit_of_sums,
    unit_relu,
)

import anabranch.fluid as fluid

layers = fluid.layers
NAME = "fuse_sequence_steps"
ALONE = ["remove_dead", NAME]
LENGTHS = [[3, 0, 5, 1, 5, 2], [1, 1, 2, 0, 0, 1]]


def found(explained):
    """(how many, what is said of each loop)"""
    lines = explained.splitlines()
    at = next(i for i, line in enumerate(lines) if line.split()[:1] == [NAME])
    notes = []
    for line in lines[at + 1:]:
        if not line.startswith("      #"):
            break
        notes.append(line.rsplit("): ", 1)[1].rpartition(":: ")[2])  # behind the user's line
    return int(lines[at].split("applied, ")[1].split()[0]), notes


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
    """Over one state that begins full of a number."""
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


def fetches(trained, names=("x@GRAD", "h0@GRAD", "c0@GRAD")):
    return [trained.loss.name, *[v.name for v in trained.main.list_vars() if v.name in names]]


def is_fused(model, what, loops=1, **options):
    trained = Trained(model)
    fetch = fetches(trained)
    want, told = trained.run([], fetch=fetch)
    assert NAME + " skipped" in told
    for on in (ALONE, PASSES):
        got, told = trained.run(on, fetch=fetch)
        assert found(told) == (loops, [what] * loops)
        of_one_size(want, got)
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
    want, _ = trained.run([], steps=3)
    for on in (ALONE, PASSES):
        got, told = trained.run(on, steps=3)
        assert found(told) == (2, ["a simple cell", "a GRU"])
        of_one_size(want, got)


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
    want, _ = trained.run([], replicas=replicas)
    for on in (ALONE, PASSES):
        got, told = trained.run(on, replicas=replicas)
        assert found(told) == (2 * replicas, ["a simple cell"] * 2)
        of_one_size(want, got)


@pytest.mark.parametrize("step,states,what", [(together, 1, "a GRU"), (lstm_apart, 2, "an LSTM"),
                                              (simple, 1, "a simple cell")])
def test_replicas_and_threads(step, states, what):
    lengths = [[3, 0, 5, 1, 5, 2, 1, 1, 2, 4, 1, 2]]
    trained = Trained(in_dynamic(step, states, all_lengths=lengths))
    for replicas in (1, 2, 3):
        want, _ = trained.run([], replicas=replicas)
        alone, told = trained.run(ALONE, replicas=replicas)
        assert found(told) == (replicas, [what])
        of_one_size(want, alone)
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
    want, _ = trained.run([])
    got, told = trained.run(ALONE)
    assert found(told) == (2, ["a GRU", "a simple cell"])
    of_one_size(want, got)


def without_state(x, h):
    return layers.fc([x, x], HIDDEN, act="tanh")


def hard(x, h):
    return layers.hard_sigmoid(layers.fc([x, h], HIDDEN))


NO_STATE = "its memory is no state of a GRU or of a simple cell"


@pytest.mark.parametrize("step", [reset_after, without_state, hard])
def test_what_is_no_cell_stays_and_says_why(step):
    stays(in_dynamic(step), NO_STATE)


def stays(model, why, on=ALONE, **options):
    trained = Trained(model)
    fetch = fetches(trained, options.pop("names", ("x@GRAD", "h0@GRAD")))
    want, _ = trained.run([], fetch=fetch, **options)
    got, told = trained.run(on, fetch=fetch, **options)
    assert found(told) == (0, ["left as it is: " + why])
    for a, b in zip(want, got):
        np.testing.assert_array_equal(a, b)


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
    """An encoder, whose last state begins the decoder, and scores of words in each step."""
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
    want, _ = trained.run([], replicas=replicas, steps=3)
    for on in (ALONE, PASSES):
        got, told = trained.run(on, replicas=replicas, steps=3)
        assert found(told) == (replicas, ["a simple cell"])
        of_one_size(want, got)


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
    want, _ = trained.run([])
    for on in (ALONE, PASSES):
        got, told = trained.run(on)
        assert found(told) == (2, ["a simple cell"] * 2)
        of_one_size(want, got)


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
    want, _ = trained.run([], fetch=fetch, replicas=replicas)
    for on in (ALONE, PASSES):
        got, told = trained.run(on, fetch=fetch, replicas=replicas)
        assert found(told) == (replicas, ["a simple cell"])
        of_one_size(want, got)
    feed, lods = trained.feed(np.random.RandomState(0)), []
    for on in ([], ALONE):
        out, = trained.exe.run(trained.compiled(on), feed=feed, fetch_list=[kept["out"]], scope=trained.begin(),
                               return_numpy=False)
        lods.append(out.recursive_sequence_lengths())
    assert lods == [[[3, 1, 0, 4, 2, 1]]] * 2


@pytest.mark.parametrize("make,why", [
    (lambda after, x: layers.softmax(after, axis=0), "softmax works on more than rows of its states"),
    (lambda after, x: layers.elementwise_add(after, layers.fc(x, HIDDEN)),
     "mul works on more than rows of its states"),
    (lambda after, x: layers.dropout(after, 0.5, seed=1), "dropout works on more than rows of its states")])
def test_other_work_on_a_state_stays_and_says_why(make, why):
    trained = Trained(in_dynamic(simple, more=lambda rnn, x, before, after: rnn.output(make(after[0], x))))
    _, told = trained.run(ALONE)
    assert found(told) == (0, ["left as it is: " + why])


def test_what_is_within_a_cell_is_not_given_out():
    def step(x, h):
        inside.append(layers.fc([x, h], HIDDEN))
        return layers.tanh(inside[-1])
    inside = []
    trained = Trained(in_dynamic(step, more=lambda rnn, x, before, after: rnn.output(inside[-1])))
    _, told = trained.run(ALONE)
    assert found(told) == (0, ["left as it is: %s is given out" % inside[-1].name])


def test_a_state_that_is_given_out_twice_stays():
    trained = Trained(in_dynamic(simple, shown=[0, 0]))
    want, _ = trained.run([])
    got, told = trained.run(ALONE)
    count, (why,) = found(told)
    assert count == 0 and why.startswith("left as it is: fc_") and why.endswith("is given out twice")
    for a, b in zip(want, got):
        np.testing.assert_array_equal(a, b)


def test_a_second_step_input_and_a_static_input_stay():
    def second(rnn, x, before, after):
        rnn.step_input(x.block.program.global_block().var("x"))
    stays(in_dynamic(simple, more=second), "it has 2 step inputs, not 1")

    def static(rnn, x, before, after):
        rnn.static_input(x.block.program.global_block().var("h0"))
    stays(in_dynamic(simple, more=static), "it has a static input")


def test_what_is_fetched_or_read_elsewhere_stays():
    trained = Trained(in_dynamic(simple))
    block = trained.main.global_block()
    arrays = [v.name for v in block.vars.values() if v.type == fluid.core.VarDesc.VarType.LOD_TENSOR_ARRAY
              and "@" not in v.name]
    loop, = (op for op in block.ops if op.type == "while")
    assert len(arrays) == 3
    for name in [*arrays, *(n for n in loop.output("Out") if n not in arrays)]:
        target, scope = trained.compiled(ALONE), trained.begin()
        trained.exe.run(target, feed=trained.feed(np.random.RandomState(0)), fetch_list=[name], scope=scope,
                        return_numpy=False)
        assert found(target.explain()) == (0, ["left as it is: %s is read elsewhere" % name])


def test_the_array_of_outputs_may_have_no_other_reader():
    def model():
        loss, feed = in_dynamic(simple, first=0.5)()
        block = loss.block
        array = next(n for n in block.vars if "output_array" in n and "@" not in n)
        lengths.append(layers.array_length(block.var(array)).name)
        return loss, feed
    lengths = []
    trained = Trained(model)
    _, told = trained.run(ALONE, fetch=lengths)
    count, (why,) = found(told)
    assert count == 0 and why.endswith("is read elsewhere")


def test_a_gradient_that_another_made_stays():
    def model():
        loss, feed = in_dynamic(simple)()
        ops = loss.block.program.block(2).ops
        next(op for op in ops if op.type == "tanh_grad")._set_attr("use_mkldnn", True)
        return loss, feed
    _, told = Trained(model).run(ALONE)
    count, (why,) = found(told)
    assert count == 0 and "in its gradient is not what append_backward makes" in why


def test_a_loop_of_other_steps_is_not_mentioned():
    def model():
        x = fluid.data("x", [None, WIDTH], "float32", lod_level=1)
        total, i = layers.fill_constant([1], "float32", 0.0), layers.fill_constant([1], "int64", 0)
        three = layers.fill_constant([1], "int64", 3)
        going_on = layers.less_than(i, three)
        loop = layers.While(going_on)
        with loop.block():
            layers.assign(total + layers.reduce_sum(x), total)
            layers.increment(i)
            layers.less_than(i, three, cond=going_on)
        return layers.mean(total), lambda rng: {"x": ragged(rng, [2, 1], WIDTH)}
    _, told = Trained(model).run(ALONE)
    assert found(told) == (0, [])


def outcome(trained, on, feed):
    """The loss, or the error and what the pass said."""
    target, scope = trained.compiled(on), trained.begin()
    try:
        got = trained.exe.run(target, feed=feed, fetch_list=[trained.loss], scope=scope)[0]
        return got, target.explain()
    except fluid.core.EnforceNotMet as e:
        return type(e), target.explain()


@pytest.mark.parametrize("lengths,rows", [([2, 0, 1], 3), ([2, 0, 1], 2), ([2, 0, 1], 1), ([2, 0, 1], 9), ([0, 0], 2),
                                          ([4], 1)])
def test_what_is_accepted_is_accepted(lengths, rows):
    """First states with more or fewer rows than sequences; no sequence, or only empty ones."""
    trained = Trained(in_dynamic(together))
    rng = np.random.RandomState(0)
    feed = {"x": ragged(rng, lengths, WIDTH), "h0": rng.normal(0, 1, (rows, HIDDEN)).astype("float32")}
    want, _ = outcome(trained, [], feed)
    got, _ = outcome(trained, ALONE, feed)
    if isinstance(want, type):
        assert got is want
    else:
        np.testing.assert_allclose(want, got, rtol=2e-6)


def test_limits_of_turns_hold():
    trained = Trained(in_dynamic(simple))
    feed = trained.feed(np.random.RandomState(0))
    for most, works in ((4, False), (5, True)):
        fluid.set_flags({"FLAGS_max_loop_turns": most})
        try:
            (want, _), (got, told) = outcome(trained, [], feed), outcome(trained, ALONE, feed)
        finally:
            fluid.set_flags({"FLAGS_max_loop_turns": 0})
        assert isinstance(want, np.ndarray) == isinstance(got, np.ndarray) == works
        assert found(told)[0] == 1 if works else want is got and "set aside" in told


def test_limits_of_models_from_strangers_hold():
    def model():
        loss, feed = in_dynamic(simple)()
        next(op for op in loss.block.ops if op.type == "while")._set_attr("op_most_turns", limit[0])
        return loss, feed
    limit = [4]
    strict = Trained(model)
    feed = strict.feed(np.random.RandomState(0))
    assert outcome(strict, [], feed)[0] is outcome(strict, ALONE, feed)[0]
    limit[0] = 5
    got, told = outcome(Trained(model), ALONE, feed)
    assert isinstance(got, np.ndarray) and found(told)[0] == 1


def test_sequences_of_sequences_are_left_to_the_loop():
    trained = Trained(in_dynamic(simple, first=0.5))
    values = np.random.RandomState(0).normal(0, 1, (6, WIDTH)).astype("float32")
    feed = {"x": fluid.create_lod_tensor(values, [[2, 1], [1, 1, 4]], fluid.CPUPlace())}
    assert outcome(trained, [], feed)[0] == outcome(trained, ALONE, feed)[0]
    dense = {"x": values}
    want, got = outcome(trained, [], dense)[0], outcome(trained, ALONE, dense)[0]
    assert isinstance(want, type) and got is want


def test_first_states_with_sequences():
    trained = Trained(in_dynamic(together))
    rng = np.random.RandomState(0)
    x, first = ragged(rng, [2, 1], WIDTH), rng.normal(0, 1, (3, HIDDEN)).astype("float32")
    for lengths in ([1, 1, 1], [1, 2], [2, 1], [3]):
        feed = {"x": x, "h0": fluid.create_lod_tensor(first, [lengths], fluid.CPUPlace())}
        want, got = outcome(trained, [], feed)[0], outcome(trained, ALONE, feed)[0]
        if isinstance(want, type):
            assert got is want
        else:
            np.testing.assert_allclose(want, got, rtol=2e-6)


def test_bfloat16_products_leave_loops():
    trained = Trained(in_dynamic(simple))
    build = fluid.BuildStrategy()
    build.use_bfloat16 = True
    assert NAME + " skipped: use_bfloat16" in build.explain()
    assert trained.loss.shape == (1,)
