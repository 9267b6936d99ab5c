"""Blocks for each step of sequences and for each row: against programs written out, and central differences."""
import numpy as np
import pytest
from loop_bodies import CPU, Loop, W, X, next_state, number

import anabranch.fluid as fluid
from anabranch.fluid.layers.check import one_op

layers = fluid.layers
steps = layers.control_flow


def of_lengths(lengths, width=3, seed=0):
    values = np.random.RandomState(seed).randn(sum(lengths), width)
    return fluid.create_lod_tensor(values, [list(lengths)], CPU)


class Differences:
    """A program over float64 variables; its gradients of sum(y * y) against central differences."""

    def __init__(self, build, **inputs):
        self.main, startup, self.scope = fluid.Program(), fluid.Program(), fluid.Scope()
        self.inputs = inputs
        with fluid.program_guard(self.main, startup), fluid.unique_name.guard():
            variables = []
            for name, value in inputs.items():
                array = np.array(value)
                lod = len(value.lod()) if hasattr(value, "lod") else 0
                variables.append(fluid.data(name, [None, *array.shape[1:]], str(array.dtype), lod_level=lod))
                variables[-1].stop_gradient = array.dtype != np.float64
            w = layers.create_parameter([3, 3], "float64", name="w",
                                        default_initializer=fluid.initializer.Constant(0.0))
            results = build(w, *variables)
            self.results = list(results) if isinstance(results, (list, tuple)) else [results]
            self.loss = layers.sums([layers.reduce_sum(layers.square(y)) for y in self.results])
            self.with_gradient = [v for v in variables if not v.stop_gradient]
            self.gradients = fluid.gradients(self.loss, [*self.with_gradient, w])
        self.exe = fluid.Executor(CPU)
        self.exe.run(startup, scope=self.scope)

    def run(self, fetch, moved=None, w=W):
        self.scope.find_var("w").get_tensor().set(w, CPU)
        return self.exe.run(self.main, feed={**self.inputs, **(moved or {})}, fetch_list=fetch, scope=self.scope,
                            return_numpy=False)

    def check(self):
        got = [np.array(g) for g in self.run(self.gradients)]
        for name, gradient in zip([*(v.name for v in self.with_gradient), "w"], got):
            value = W if name == "w" else np.array(self.inputs[name])
            numeric = np.zeros_like(value)
            for at in np.ndindex(*value.shape):
                ends = []
                for step in (1e-5, -1e-5):
                    other = value.copy()
                    other[at] += step
                    if name == "w":
                        ends.append(np.array(self.run([self.loss], w=other)[0]).item())
                        continue
                    if hasattr(self.inputs[name], "lod"):
                        other = fluid.create_lod_tensor(other, self.inputs[name].recursive_sequence_lengths(), CPU)
                    ends.append(np.array(self.run([self.loss], {name: other})[0]).item())
                numeric[at] = (ends[0] - ends[1]) / 2e-5
            np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-7, err_msg=name)
        return [np.array(y) for y in self.run(self.results)]


# ---- StaticRNN

def in_steps(x, w, n):
    """n steps over slices of one input; with a number the same written out."""
    count = n if isinstance(n, int) else 3
    inputs = [layers.scale(x, 0.5 * k + 1.0) for k in range(count)]
    h = layers.scale(x, -1.0)
    if isinstance(n, int):
        for now in inputs:
            h = layers.elementwise_add(next_state(h, w), now)
        return h
    stacked = layers.stack(inputs)
    rnn = layers.StaticRNN()
    with rnn.step():
        now = rnn.step_input(stacked)
        before = rnn.memory(init=h)
        made = layers.elementwise_add(next_state(before, w), now)
        rnn.update_memory(before, made)
        rnn.step_output(made)
    return layers.squeeze(layers.slice(rnn(), [0], [2], [3]), [0])


def test_static_rnn_is_its_steps_one_after_another():
    rnn, unrolled = Loop(in_steps), Loop(in_steps, 3)
    for got, expected in zip(rnn.all(3), unrolled.all(3)):
        np.testing.assert_allclose(got, expected, rtol=1e-14)
    np.testing.assert_array_equal(rnn.all(3)[0], unrolled.all(3)[0])
    rnn.check_differences(3)


def two_memories(w, x, h):
    rnn = layers.StaticRNN()
    with rnn.step():
        now = rnn.step_input(x)
        a, b = rnn.memory(init=h), rnn.memory(shape=[-1, 3], batch_ref=now, init_value=0.3)
        next_a = layers.tanh(layers.matmul(layers.elementwise_add(a, now), w))
        next_b = layers.elementwise_add(layers.scale(b, 0.5), layers.square(a))
        rnn.update_memory(a, next_a)
        rnn.update_memory(b, next_b)
        rnn.output(next_b, now)
    return rnn()


def static_input(steps_, rows):
    return np.random.RandomState(5).randn(steps_, rows, 3)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_gradients_of_static_rnn(count):
    def build(w, x, h):
        fixed = layers.reshape(x, [count, -1, 3])
        return two_memories(w, fixed, h)
    got = Differences(build, x=np.random.RandomState(5).randn(count * 2, 3),
                      h=np.random.RandomState(6).randn(2, 3)).check()
    assert got[0].shape == (count, 2, 3)


# ---- sequences

def dynamic(w, x, c, h):
    rnn = layers.DynamicRNN()
    with rnn.block():
        now = rnn.step_input(x)
        context = rnn.static_input(c)
        before, total = rnn.memory(init=h, need_reorder=True), rnn.memory(shape=[3], value=0.2, dtype="float64")
        made = layers.tanh(layers.matmul(layers.sums([now, context, before]), w))
        rnn.update_memory(before, made)
        rnn.update_memory(total, layers.elementwise_add(layers.scale(total, 0.5), made))
        rnn.output(made, layers.elementwise_mul(total, now))
    return rnn()


def computed(lengths, x, c, h):
    first, second, at = [], [], 0
    for s, length in enumerate(lengths):
        before, total = h[s], np.full(3, np.float32(0.2), "float64")
        for row in x[at:at + length]:
            made = np.tanh((row + c[s] + before) @ W)
            first.append(made)
            second.append(total * row)
            total, before = total * 0.5 + made, made
        at += length
    return np.array(first), np.array(second)


LENGTHS = [(3, 1, 5), (1,), (2, 2), (4, 0, 2, 1), (0, 3)]


@pytest.mark.parametrize("lengths", LENGTHS)
def test_dynamic_rnn(lengths):
    x, rng = of_lengths(lengths), np.random.RandomState(3)
    c, h = rng.randn(len(lengths), 3), rng.randn(len(lengths), 3)
    got = Differences(dynamic, x=x, c=c, h=h).check()
    for value, expected in zip(got, computed(lengths, np.array(x), c, h)):
        np.testing.assert_allclose(value, expected, rtol=1e-12)


def test_dynamic_rnn_meets_new_lengths_in_every_step():
    first = Differences(dynamic, x=of_lengths((1, 1)), c=np.ones((2, 3)), h=np.ones((2, 3)))
    for lengths in LENGTHS * 2:
        x, rng = of_lengths(lengths), np.random.RandomState(3)
        feed = {"x": x, "c": rng.randn(len(lengths), 3), "h": rng.randn(len(lengths), 3)}
        got = first.run([*first.results, *first.gradients], feed)
        fresh = Differences(dynamic, **feed)
        for value, expected in zip(got, fresh.run([*fresh.results, *fresh.gradients])):
            np.testing.assert_array_equal(np.array(value), np.array(expected))


def test_results_carry_the_sequences_of_the_input():
    made = Differences(dynamic, x=of_lengths((2, 3)), c=np.ones((2, 3)), h=np.ones((2, 3)))
    assert [y.recursive_sequence_lengths() for y in made.run(made.results)] == [[[2, 3]]] * 2


def test_a_batch_without_any_part_is_refused():
    made = Differences(dynamic, x=of_lengths((2, 3)), c=np.ones((2, 3)), h=np.ones((2, 3)))
    with pytest.raises(fluid.core.EnforceNotMet):
        made.run([made.loss], {"x": of_lengths((0, 0))})
    assert np.array(made.run([made.loss])[0]).size == 1


@pytest.mark.parametrize("replicas", [2, 3])
def test_dynamic_rnn_in_data_parallel(replicas):
    def losses(count, threads):
        main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
        with fluid.program_guard(main, startup), fluid.unique_name.guard():
            x = fluid.data("x", [None, 3], "float64", lod_level=1)
            w = layers.create_parameter([3, 3], "float64", name="w",
                                        default_initializer=fluid.initializer.Constant(0.3))
            rnn = layers.DynamicRNN()
            with rnn.block():
                now = rnn.step_input(x)
                before = rnn.memory(shape=[3], value=0.1, dtype="float64")
                made = layers.tanh(layers.matmul(layers.elementwise_add(now, before), w))
                rnn.update_memory(before, made)
                rnn.output(made)
            sums = one_op("sequence_pool", {"X": rnn()}, {"pooltype": "SUM"})    # the layer takes float32 only
            loss = layers.mean(layers.square(sums))
            fluid.optimizer.SGD(0.1).minimize(loss)
        exe = fluid.Executor(CPU)
        exe.run(startup, scope=scope)
        execution = fluid.ExecutionStrategy()
        execution.num_threads = threads
        target = fluid.CompiledProgram(main).with_data_parallel(loss.name, places=[CPU] * count,
                                                               exec_strategy=execution)
        for seed in range(3):
            x = of_lengths((3, 1, 2, 4, 1, 2), seed=seed)
            exe.run(target if count > 1 else main, feed={"x": x}, fetch_list=[loss], scope=scope)
        return np.array(scope.find_var("w").get_tensor())
    np.testing.assert_allclose(losses(replicas, 1), losses(1, 1), rtol=1e-12)
    for threads in (2, 7):
        np.testing.assert_array_equal(losses(replicas, threads), losses(replicas, 1))


# ---- rows

def by_sign(w, x, m):
    chosen = layers.IfElse(m)
    with chosen.true_block():
        chosen.output(layers.tanh(layers.matmul(chosen.input(x), w)))
    with chosen.false_block():
        chosen.output(layers.square(chosen.input(x)))
    return chosen()


@pytest.mark.parametrize("mask", [(1, 0, 1, 1), (0, 0, 0, 0), (1, 1, 1, 1)])
def test_if_else(mask):
    mask = np.array(mask, "bool")[:, None]
    got, = Differences(by_sign, x=X, m=mask).check()
    np.testing.assert_allclose(got, np.where(mask, np.tanh(X @ W), X ** 2), rtol=1e-12)


@pytest.mark.parametrize("mask, ran", [((1, 0, 1, 1), [5.0, 5.0]), ((0, 0, 0, 0), [1.0, 5.0]),
                                       ((1, 1, 1, 1), [5.0, 1.0])])
def test_a_side_of_if_else_without_rows_does_not_run(mask, ran):
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        x, m = fluid.data("x", [None, 3], "float64"), fluid.data("m", [None, 1], "bool")
        counts = [layers.fill_constant([1], "float64", 1.0) for _ in range(2)]
        chosen = layers.IfElse(m)
        for side, count in zip((chosen.true_block, chosen.false_block), counts):
            with side():
                layers.assign(layers.scale(count, 5.0), count)
                chosen.output(layers.elementwise_sub(chosen.input(x), layers.reduce_mean(chosen.input(x))))
        whole, = chosen()
    feed = {"x": X, "m": np.array(mask, "bool")[:, None]}
    *got, whole = fluid.Executor(CPU).run(main, feed=feed, fetch_list=[*counts, whole])
    assert [v.item() for v in got] == ran and np.isfinite(whole).all()


def divided(w, x, m):
    yes, no = steps.split_lod_tensor(x, m)
    return steps.merge_lod_tensor(layers.tanh(layers.matmul(yes, w)), layers.square(no), x, m)


@pytest.mark.parametrize("mask", [(1, 0, 1), (1, 1, 1), (0, 0, 0)])
def test_sequences_are_divided_as_wholes(mask):
    x, mask = of_lengths((2, 1, 3)), np.array(mask, "bool")[:, None]
    made = Differences(divided, x=x, m=mask)
    rows = np.repeat(mask, (2, 1, 3), axis=0)
    values = np.array(x)
    np.testing.assert_allclose(made.check()[0], np.where(rows, np.tanh(values @ W), values ** 2), rtol=1e-12)
    assert made.run(made.results)[0].recursive_sequence_lengths() == [[2, 1, 3]]


# ---- operators

def there_and_back(w, x):
    table = steps.lod_rank_table(x)
    array = steps.lod_tensor_to_array(layers.matmul(x, w), table)
    return [steps.array_to_lod_tensor(array, table), layers.array_read(array, number(0))]


@pytest.mark.parametrize("lengths", [(2, 1, 3), (1,), (3, 0, 3)])
def test_sequences_to_an_array_and_back(lengths):
    x = of_lengths(lengths)
    made = Differences(there_and_back, x=x)
    whole, first = made.check()
    np.testing.assert_allclose(whole, np.array(x) @ W, rtol=1e-12)
    assert made.run(made.results)[0].recursive_sequence_lengths() == [list(lengths)]
    assert len(first) == np.count_nonzero(lengths)


def test_reorder_and_shrink():
    def build(w, x, y):
        table = steps.lod_rank_table(x)
        ordered = layers.reorder_lod_tensor_by_rank(layers.matmul(y, w), table)
        whole = layers.reorder_lod_tensor_by_rank(layers.square(x), table)
        return [ordered, steps.shrink_memory(ordered, number(1), table), whole]
    x, y = of_lengths((2, 1, 3)), np.random.RandomState(4).randn(3, 3)
    ordered, shrunk, whole = Differences(build, x=x, y=y).check()
    np.testing.assert_allclose(ordered, (y @ W)[[2, 0, 1]], rtol=1e-12)
    np.testing.assert_array_equal(shrunk, ordered[:2])
    np.testing.assert_allclose(whole, (np.array(x) ** 2)[[3, 4, 5, 0, 1, 2]], rtol=1e-12)


@pytest.mark.parametrize("axis, stack", [(0, False), (1, False), (0, True), (1, True), (-1, True)])
def test_arrays_to_tensors(axis, stack):
    def build(w, x):
        array = layers.create_array("float64")
        for k in range(3):
            layers.array_write(layers.scale(layers.matmul(x, w), k + 1.0), number(k), array)
        joined, _ = layers.tensor_array_to_tensor(array, axis, use_stack=stack)
        again, extents = layers.tensor_array_to_tensor(array, axis, use_stack=stack)
        return [joined, layers.scale(again, 2.0)]
    parts = [(k + 1.0) * (X @ W) for k in range(3)]
    expected = np.stack(parts, axis) if stack else np.concatenate(parts, axis)
    got = Differences(build, x=X).check()
    np.testing.assert_allclose(got[0], expected, rtol=1e-12)


class TestRefused:
    def run(self, build, **feed):
        main = fluid.Program()
        with fluid.program_guard(main, fluid.Program()):
            variables = [fluid.data(n, [None, *np.array(v).shape[1:]], str(np.array(v).dtype),
                                    lod_level=len(v.lod()) if hasattr(v, "lod") else 0) for n, v in feed.items()]
            out = build(*variables)
        return fluid.Executor(CPU).run(main, feed=feed, fetch_list=[out], return_numpy=False)

    @pytest.mark.parametrize("build", [
        lambda x, y: steps.lod_rank_table(y),
        lambda x, y: steps.max_sequence_len(steps.lod_rank_table(x, 3)),
        lambda x, y: layers.reorder_lod_tensor_by_rank(y, steps.lod_rank_table(x)),
        lambda x, y: steps.shrink_memory(y, number(0), steps.lod_rank_table(x)),
        lambda x, y: steps.lod_tensor_to_array(y, steps.lod_rank_table(x)),
        lambda x, y: steps.array_to_lod_tensor(layers.array_write(y, number(0)), steps.lod_rank_table(x)),
        lambda x, y: steps.split_lod_tensor(x, layers.cast(y, "bool"))[0],
        lambda x, y: steps.merge_lod_tensor(y, y, y, layers.cast(x, "bool")),
        lambda x, y: layers.tensor_array_to_tensor(layers.create_array("float64"), 0)[0],
    ])
    def test_what_does_not_fit(self, build):
        with pytest.raises((fluid.core.EnforceNotMet, ValueError)):
            out = self.run(build, x=of_lengths((2, 1, 3)), y=np.ones((2, 3)))
            assert out is None


@pytest.mark.parametrize("step", [1, 2])
def test_random_numbers_differ_from_step_to_step_of_static_rnn(step):
    main = fluid.Program()
    main.random_seed = step
    with fluid.program_guard(main, fluid.Program()):
        x = fluid.data("x", [4, 8, 16], "float32")
        rnn = layers.StaticRNN()
        with rnn.step():
            rnn.step_output(layers.dropout(rnn.step_input(x), 0.5))
        out = rnn()
    masks, = fluid.Executor(CPU).run(main, feed={"x": np.ones((4, 8, 16), "float32")}, fetch_list=[out])
    assert len({m.tobytes() for m in masks}) == 4
