"""Loops of DynamicRNN that stay as they are, and why; what a fused loop accepts, and its limits."""
import numpy as np
import pytest
from cell_nets import HIDDEN, WIDTH, reset_after, together
from sequence_loops import ALONE, NAME, fetches, found, in_dynamic, ragged, simple
from trained_nets import Trained

import anabranch.fluid as fluid

layers = fluid.layers
NO_STATE = "its memory is not a state of a GRU or of a simple cell"


def without_state(x, h):
    return layers.fc([x, x], HIDDEN, act="tanh")


def hard(x, h):
    return layers.hard_sigmoid(layers.fc([x, h], HIDDEN))


def stays(model, why, on=ALONE, **options):
    trained = Trained(model)
    fetch = fetches(trained, options.pop("names", ("x@GRAD", "h0@GRAD")))
    expected, _ = trained.run([], fetch=fetch, **options)
    got, told = trained.run(on, fetch=fetch, **options)
    assert found(told) == (0, ["left as it is: " + why])
    for a, b in zip(expected, got):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("step", [reset_after, without_state, hard])
def test_an_unknown_cell_stays_and_says_why(step):
    stays(in_dynamic(step), NO_STATE)


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
    expected, _ = trained.run([])
    got, told = trained.run(ALONE)
    count, (why,) = found(told)
    assert count == 0 and why.startswith("left as it is: fc_") and why.endswith("is given out twice")
    for a, b in zip(expected, got):
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
    expected, _ = outcome(trained, [], feed)
    got, _ = outcome(trained, ALONE, feed)
    if isinstance(expected, type):
        assert got is expected
    else:
        np.testing.assert_allclose(expected, got, rtol=2e-6)


def test_limits_of_iterations_hold():
    trained = Trained(in_dynamic(simple))
    feed = trained.feed(np.random.RandomState(0))
    for most, works in ((4, False), (5, True)):
        fluid.set_flags({"FLAGS_max_loop_iterations": most})
        try:
            (expected, _), (got, told) = outcome(trained, [], feed), outcome(trained, ALONE, feed)
        finally:
            fluid.set_flags({"FLAGS_max_loop_iterations": 0})
        assert isinstance(expected, np.ndarray) == isinstance(got, np.ndarray) == works
        assert found(told)[0] == 1 if works else expected is got and "disabled for this step" in told


def test_limits_of_models_from_strangers_hold():
    def model():
        loss, feed = in_dynamic(simple)()
        next(op for op in loss.block.ops if op.type == "while")._set_attr("op_max_iterations", limit[0])
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
    expected, got = outcome(trained, [], dense)[0], outcome(trained, ALONE, dense)[0]
    assert isinstance(expected, type) and got is expected


def test_first_states_with_sequences():
    trained = Trained(in_dynamic(together))
    rng = np.random.RandomState(0)
    x, first = ragged(rng, [2, 1], WIDTH), rng.normal(0, 1, (3, HIDDEN)).astype("float32")
    for lengths in ([1, 1, 1], [1, 2], [2, 1], [3]):
        feed = {"x": x, "h0": fluid.create_lod_tensor(first, [lengths], fluid.CPUPlace())}
        expected, got = outcome(trained, [], feed)[0], outcome(trained, ALONE, feed)[0]
        if isinstance(expected, type):
            assert got is expected
        else:
            np.testing.assert_allclose(expected, got, rtol=2e-6)


def test_bfloat16_products_leave_loops():
    build = fluid.BuildStrategy()
    build.use_bfloat16 = True
    lines = build.explain().splitlines()
    for name in ("fuse_recurrent", NAME, "fuse_unrolled"):
        line, = (line for line in lines if line.split()[0] == name)
        assert "skipped: use_bfloat16 is True: products of a step are rounded one by one" in line
