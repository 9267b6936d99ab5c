"""Loops against unrolled programs, bit for bit, and their gradients against central differences; arrays of tensors."""
import functools
import os
import subprocess
import sys

import numpy as np
import pytest

import anabranch.fluid as fluid

layers = fluid.layers
CPU = fluid.CPUPlace()
X = np.random.RandomState(1).randn(4, 3)
W = np.random.RandomState(2).randn(3, 3) * 0.6


def number(value, dtype="int64"):
    return layers.fill_constant([1], dtype, value)


class Loop:
    """A program over x (float64, [rows, 3]), w ([3, 3]) and n (int64, [1]): a loss and its gradients by x and w."""

    def __init__(self, build, unrolled=None, optimizer=None):
        self.main, startup, self.scope = fluid.Program(), fluid.Program(), fluid.Scope()
        self.main.random_seed = 7
        with fluid.program_guard(self.main, startup), fluid.unique_name.guard():
            x, n = fluid.data("x", [None, 3], "float64"), fluid.data("n", [1], "int64")
            x.stop_gradient = False
            w = layers.create_parameter([3, 3], "float64", name="w",
                                        default_initializer=fluid.initializer.Constant(0.0))
            self.y = build(x, w, n if unrolled is None else unrolled)
            self.loss = layers.reduce_sum(layers.square(self.y))
            self.gradients = [] if optimizer else fluid.gradients(self.loss, [x, w])
            if optimizer:
                optimizer.minimize(self.loss)
        self.exe = fluid.Executor(CPU)
        self.exe.run(startup, scope=self.scope)
        self.set_w(W)

    def set_w(self, w):
        self.scope.find_var("w").get_tensor().set(w, CPU)

    def run(self, n, x=X, fetch=None, target=None):
        return self.exe.run(target or self.main, feed={"x": x, "n": np.array([n])},
                            fetch_list=fetch or [self.loss], scope=self.scope)

    def all(self, n, x=X):
        """The loss and the gradients; None where there is no way from one to the other."""
        got = iter(self.run(n, x, [self.loss] + [g for g in self.gradients if g is not None]))
        return [next(got)] + [None if g is None else next(got) for g in self.gradients]

    def check_differences(self, n):
        self.set_w(W)
        _, *grads = self.all(n)
        for which, got in enumerate(grads):
            if got is None:
                continue
            numeric = np.zeros_like(got)
            for at in np.ndindex(*got.shape):
                ends = []
                for step in (1e-5, -1e-5):
                    moved = [X.copy(), W.copy()]
                    moved[which][at] += step
                    self.set_w(moved[1])
                    ends.append(self.run(n, moved[0])[0].item())
                numeric[at] = (ends[0] - ends[1]) / 2e-5
            np.testing.assert_allclose(got, numeric, rtol=1e-6, atol=1e-7, err_msg="xw"[which])
        self.set_w(W)


# Each takes (x, w, n), where n is a Variable: a loop; or a number: the same written out.

def turn(h, w):
    return layers.tanh(layers.matmul(h, w))


def simple(x, w, n):
    h = layers.scale(x, 1.0)
    if isinstance(n, int):
        for _ in range(n):
            h = turn(h, w)
        return h
    return layers.while_loop(lambda i, h: layers.less_than(i, n), lambda i, h: [layers.increment(i), turn(h, w)],
                             [number(0), h])[1]


def summed(x, w, n):
    """Two variables are carried; the result depends on one of them through the other alone."""
    h, s = layers.assign(x), layers.scale(x, 0.0)
    if isinstance(n, int):
        for _ in range(n):
            h, s = turn(h, w), layers.elementwise_add(s, layers.square(h))
        return s
    i = number(0)
    going_on = layers.less_than(i, n)
    with layers.While(going_on).block():
        layers.assign(layers.elementwise_add(s, layers.square(h)), s)
        layers.assign(turn(h, w), h)
        layers.increment(i)
        layers.less_than(i, n, cond=going_on)
    return s


def overwritten(x, w, n):
    """What a turn leaves is made of what it found, and nothing of it is kept but the last."""
    h, s = layers.assign(x), layers.scale(x, 2.0)
    if isinstance(n, int):
        for _ in range(n):
            h, s = turn(h, w), layers.elementwise_mul(h, x)
        return s
    i = number(0)
    going_on = layers.less_than(i, n)
    with layers.While(going_on).block():
        layers.assign(layers.elementwise_mul(h, x), s)
        layers.assign(turn(h, w), h)
        layers.increment(i)
        layers.less_than(i, n, cond=going_on)
    return s


def in_place(x, w, n):
    """The op that makes the carried variable writes it itself; its gradient op reads what was written."""
    h = layers.assign(x)
    if isinstance(n, int):
        for _ in range(n):
            h = turn(h, w)
        return h
    i = number(0)
    going_on = layers.less_than(i, n)
    with layers.While(going_on).block():
        product = layers.matmul(h, w)
        product.block.append_op(type="tanh", inputs={"X": [product]}, outputs={"Out": [h]})
        layers.increment(i)
        layers.less_than(i, n, cond=going_on)
    return h


def arrays(x, w, n):
    """Elements that are read inside and outside."""
    a = layers.create_array("float64")
    if isinstance(n, int):
        hs = [x]
        for _ in range(n):
            hs.append(turn(hs[-1], w))
        return layers.elementwise_add(hs[n], hs[0])
    i = number(0)
    layers.array_write(x, i, a)
    going_on = layers.less_than(i, n)
    with layers.While(going_on).block():
        made = turn(layers.array_read(a, i), w)
        layers.increment(i)
        layers.array_write(made, i, a)
        layers.less_than(i, n, cond=going_on)
    return layers.elementwise_add(layers.array_read(a, n), layers.array_read(a, number(0)))


def one_element(x, w, n):
    """One element is written again and again."""
    if isinstance(n, int):
        return simple(x, w, n)
    a, i, zero = layers.create_array("float64"), number(0), number(0)
    layers.array_write(x, zero, a)
    going_on = layers.less_than(i, n)
    with layers.While(going_on).block():
        layers.array_write(turn(layers.array_read(a, zero), w), zero, a)
        layers.increment(i)
        layers.less_than(i, n, cond=going_on)
    return layers.array_read(a, zero)


def read_only(x, w, n):
    """Every turn reads an array that is made outside, and adds to a number."""
    rows = [layers.scale(x, k + 1.0) for k in range(3)]
    s = layers.scale(x, 0.0)
    if isinstance(n, int):
        for k in range(n):
            s = layers.elementwise_add(s, turn(rows[min(k, 1)], w))
        return s
    a = layers.create_array("float64")
    for k in range(3):
        layers.array_write(rows[k], number(k), a)
    i, one = number(0), number(1)
    going_on = layers.less_than(i, n)
    with layers.While(going_on).block():
        layers.assign(layers.elementwise_add(s, turn(layers.array_read(a, layers.elementwise_min(i, one)), w)), s)
        layers.increment(i)
        layers.less_than(i, n, cond=going_on)
    return s


def nested(x, w, n):
    """A loop in a loop, with more turns from turn to turn."""
    h = layers.scale(x, 1.0)
    if isinstance(n, int):
        for i in range(n):
            h = layers.scale(h, 1.5)
            for _ in range(i):
                h = turn(h, w)
        return h

    def body(i, h):
        _, h = layers.while_loop(lambda j, g: layers.less_than(j, i), lambda j, g: [layers.increment(j), turn(g, w)],
                                 [number(0), layers.scale(h, 1.5)])
        return [layers.increment(i), h]
    return layers.while_loop(lambda i, h: layers.less_than(i, n), body, [number(0), h])[1]


def three_deep(x, w, n):
    if isinstance(n, int):
        h = layers.scale(x, 1.0)
        for _ in range(n):
            for _ in range(n):
                for _ in range(n):
                    h = turn(h, w)
        return h

    def level(depth, h):
        def body(i, g):
            g = level(depth - 1, g) if depth > 1 else turn(g, w)
            return [layers.increment(i), g]
        return layers.while_loop(lambda i, g: layers.less_than(i, n), body, [number(0), layers.assign(h)])[1]
    return level(3, layers.scale(x, 1.0))


def branching(x, w, n):
    """A branch in a loop: another one in the first turn."""
    h = layers.scale(x, 1.0)
    if isinstance(n, int):
        for i in range(n):
            h = layers.matmul(h, w) if i < 1 else layers.tanh(h)
        return h
    one = number(1)

    def body(i, h):
        h = layers.cond(layers.less_than(i, one), lambda: layers.matmul(h, w), lambda: layers.tanh(h))
        return [layers.increment(i), h]
    return layers.while_loop(lambda i, h: layers.less_than(i, n), body, [number(0), h])[1]


def assigned_in_a_branch(x, w, n):
    """A branch in a loop that reads and writes the carried variable, in every other turn."""
    h = layers.assign(x)
    if isinstance(n, int):
        for i in range(n):
            if i % 2 == 0:
                h = turn(h, w)
            h = layers.scale(h, 1.25)
        return h
    i, two = number(0), number(2)
    going_on = layers.less_than(i, n)
    with layers.While(going_on).block():
        even = layers.equal(layers.elementwise_mod(i, two), number(0))
        with layers.Switch() as switch:
            with switch.case(even):
                layers.assign(turn(h, w), h)
        layers.assign(layers.scale(h, 1.25), h)
        layers.increment(i)
        layers.less_than(i, n, cond=going_on)
    return h


def growing(x, w, n):
    """The carried variable has more rows from turn to turn."""
    h = layers.scale(x, 1.0)
    if isinstance(n, int):
        for _ in range(n):
            h = layers.concat([h, layers.matmul(x, w)], 0)
        return h
    return layers.while_loop(lambda i, h: layers.less_than(i, n),
                             lambda i, h: [layers.increment(i), layers.concat([h, layers.matmul(x, w)], 0)],
                             [number(0), h])[1]


LOOPS = [simple, summed, overwritten, in_place, arrays, one_element, read_only, nested, three_deep, branching,
         assigned_in_a_branch, growing]


@pytest.mark.parametrize("build", LOOPS)
@pytest.mark.parametrize("n", [0, 1, 2, 4])
def test_a_loop_is_its_turns_one_after_another(build, n):
    if build is three_deep and n == 4:
        n = 3
    loop, unrolled = Loop(build), Loop(build, n)
    want = unrolled.all(n)
    for _ in range(3):
        same(build, loop.all(n), want)


def same(build, got, want):
    """Bit for bit; but the gradient of w, which a loop in a loop adds up turn by turn before the outer one does."""
    for i, (value, expected) in enumerate(zip(got, want)):
        expected = np.zeros_like(value) if expected is None else expected
        if i == 2 and build in (nested, three_deep):
            np.testing.assert_allclose(value, expected, rtol=1e-13)
        else:
            np.testing.assert_array_equal(value, expected)


@pytest.mark.parametrize("build", LOOPS)
def test_gradients_are_central_differences(build):
    Loop(build).check_differences(3)


def test_the_original_forgets_the_gradient_that_turns_hand_on():
    """y = y w + x, three times: of x and w only the last turn counts there, of what y was before the loop nothing."""
    def gradients():
        main = fluid.Program()
        with fluid.program_guard(main, fluid.Program()):
            x, w, first = (fluid.data(name, [4, 3], "float64") for name in ("x", "w", "first"))
            x.stop_gradient = w.stop_gradient = first.stop_gradient = False
            _, y = layers.while_loop(lambda i, y: layers.less_than(i, number(3)),
                                     lambda i, y: [i + 1, layers.elementwise_add(layers.elementwise_mul(y, w), x)],
                                     [layers.fill_constant([1], "int64", 0), layers.scale(first, 2.0)])
            wanted = fluid.gradients(layers.reduce_sum(y), [x, first])
        return fluid.Executor(CPU).run(main, feed={"x": X, "w": X + 2, "first": X}, fetch_list=wanted)

    w = X + 2
    of_x, of_first = gradients()
    np.testing.assert_allclose(of_x, 1 + w + w * w)
    np.testing.assert_allclose(of_first, 2 * w * w * w)
    before = fluid.get_flags("FLAGS_fluid_exact")
    fluid.set_flags({"FLAGS_fluid_exact": "1.8.5"})
    try:
        of_x, of_first = gradients()
    finally:
        fluid.set_flags(before)
    np.testing.assert_array_equal(of_x, np.ones_like(X))
    np.testing.assert_array_equal(of_first, np.zeros_like(X))


def test_the_number_of_turns_and_of_rows_changes_from_step_to_step():
    loop = Loop(nested)
    for n, rows in ((3, 4), (0, 2), (5, 1), (1, 6), (3, 4), (2, 0), (4, 3)):
        x = np.random.RandomState(n).randn(rows, 3)
        same(nested, loop.all(n, x), Loop(nested, n).all(n, x))


def test_a_test_clone_and_a_model_file_give_the_same(tmp_path):
    loop = Loop(arrays)
    want, = loop.run(3, fetch=[loop.y])
    clone = loop.main.clone(for_test=True)
    np.testing.assert_array_equal(loop.run(3, fetch=[loop.y.name], target=clone)[0], want)
    with fluid.scope_guard(loop.scope):
        fluid.io.save_inference_model(str(tmp_path), ["x", "n"], [loop.y], loop.exe, loop.main)
    with fluid.scope_guard(fluid.Scope()):
        program, _, targets = fluid.io.load_inference_model(str(tmp_path), loop.exe)
        got, = loop.exe.run(program, feed={"x": X, "n": np.array([3])}, fetch_list=targets)
    np.testing.assert_array_equal(got, want)
    assert not any("@GRAD" in v.name for v in program.list_vars())


def test_a_program_of_bytes_trains_alike():
    loop = Loop(nested)
    want = loop.run(3, fetch=[loop.loss] + loop.gradients)
    read = fluid.Program.parse_from_string(loop.main.desc.serialize_to_string())
    got = loop.run(3, fetch=[v.name for v in [loop.loss] + loop.gradients], target=read)
    for a, b in zip(got, want):
        np.testing.assert_array_equal(a, b)


def trained(replicas, build=nested, threads=0):
    loop = Loop(build, optimizer=fluid.optimizer.SGD(0.01))
    target = loop.main
    if replicas > 1 or threads:
        execution = fluid.ExecutionStrategy()
        if threads:
            execution.num_threads = threads
        target = fluid.CompiledProgram(loop.main).with_data_parallel(
            loop.loss.name, places=[CPU] * replicas, exec_strategy=execution)
    for step in range(3):
        x = np.random.RandomState(step).randn(6, 3)
        feed = {"x": x, "n": np.array([3])}
        if replicas > 1:
            feed = [{"x": part, "n": np.array([3])} for part in np.split(x, replicas)]
        loop.exe.run(target, feed=feed, fetch_list=[loop.loss], scope=loop.scope)
    return np.array(loop.scope.find_var("w").get_tensor())


@pytest.mark.parametrize("build", [nested, arrays, assigned_in_a_branch])
def test_any_number_of_threads_gives_the_same(build):
    want = trained(1, build, 1)
    for threads in (2, 7):
        np.testing.assert_array_equal(trained(1, build, threads), want)
    for replicas in (2, 3):
        want = trained(replicas, build, 1)
        for threads in (2, 7):
            np.testing.assert_array_equal(trained(replicas, build, threads), want)


def test_thousands_of_turns_and_steps_take_no_more_memory():
    from anabranch import _core
    loop = Loop(simple, optimizer=fluid.optimizer.SGD(0.0))
    loop.run(1000)
    before = _core.resident_buffer_bytes() if hasattr(_core, "resident_buffer_bytes") else None
    for _ in range(5):
        loop.run(1000)
    for _ in range(1000):
        loop.run(3)
    if before is not None:
        assert _core.resident_buffer_bytes() <= before + 4096


def test_a_loop_without_a_gradient_works_in_one_frame():
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        i, total = number(0), number(0)
        n = fluid.data("n", [1], "int64")
        layers.while_loop(lambda i, t: layers.less_than(i, n), lambda i, t: [i + 1, t + i], [i, total])
    exe = fluid.Executor(CPU)
    for n in (0, 1, 10, 5000):
        assert exe.run(main, feed={"n": np.array([n])}, fetch_list=[total])[0].item() == n * (n - 1) // 2


def test_each_turn_draws_other_numbers():
    main = fluid.Program()
    main.random_seed = 3
    with fluid.program_guard(main, fluid.Program()):
        x = fluid.data("x", [4], "float32")
        a, b = layers.create_array("float32"), layers.create_array("float32")
        two = number(2)

        def inner(j, i):
            at = layers.elementwise_add(layers.elementwise_mul(i, two), j)
            layers.array_write(layers.dropout(x, 0.5), at, b)
            return [layers.increment(j), i]

        def body(i):
            layers.array_write(layers.uniform_random_batch_size_like(x, [4, 3]), i, a)
            layers.while_loop(lambda j, i: layers.less_than(j, two), inner, [number(0), i])
            return [layers.increment(i)]
        three = number(3)
        layers.while_loop(lambda i: layers.less_than(i, three), body, [number(0)])
    exe = fluid.Executor(CPU)
    x = np.ones(4, "float32")
    steps = [exe.run(main, feed={"x": x}, fetch_list=[a, b]) for _ in range(2)]
    masks = [tuple(np.concatenate([m.ravel() for m in drawn[1]])) for drawn in steps]
    draws = [tuple(m.ravel()) for drawn in steps for m in drawn[0]]
    assert len(set(draws)) >= 3 and len(set(masks)) == 2
    again = fluid.Executor(CPU)
    with fluid.scope_guard(fluid.Scope()):
        repeated = [again.run(main.clone(), feed={"x": x}, fetch_list=[a.name, b.name])]
    np.testing.assert_array_equal(np.concatenate(repeated[0][1]), np.concatenate(steps[0][1]))


def test_an_error_in_a_loop_names_op_block_turn_and_line():
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        x, n = fluid.data("x", [None, 3], "float64"), fluid.data("n", [1], "int64")
        h = layers.assign(x)
        i = number(0)
        going_on = layers.less_than(i, n)
        with layers.While(going_on).block():
            layers.assign(layers.concat([h, x], 0), h)
            layers.assign(layers.elementwise_mul(h, x), h)  # THE LINE
            layers.increment(i)
            layers.less_than(i, n, cond=going_on)
    exe = fluid.Executor(CPU)
    with pytest.raises(fluid.core.EnforceNotMet) as caught:
        exe.run(main, feed={"x": X, "n": np.array([4])}, fetch_list=[h])
    text = str(caught.value)
    assert "elementwise_mul" in text and "block 1" in text and "turn   0" in text and "THE LINE" in text
    np.testing.assert_array_equal(exe.run(main, feed={"x": X, "n": np.array([0])}, fetch_list=[h])[0], X)


def test_a_limit_ends_a_loop_that_does_not_end():
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        i = number(0)
        layers.while_loop(lambda i: layers.less_than(i, number(1)), lambda i: [layers.scale(i, 1.0)], [i])
    exe = fluid.Executor(CPU)
    fluid.set_flags({"FLAGS_max_loop_turns": 1000})
    try:
        with pytest.raises(fluid.core.EnforceNotMet, match="FLAGS_max_loop_turns"):
            exe.run(main, fetch_list=[i])
    finally:
        fluid.set_flags({"FLAGS_max_loop_turns": 0})


def test_arrays_begin_empty_in_each_step():
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        n, x = fluid.data("n", [1], "int64"), fluid.data("x", [2], "float32")
        a = layers.create_array("float32")

        def body(i):
            local = layers.create_array("float32")
            layers.array_write(x, layers.scale(i, 0.0), local)
            layers.array_write(layers.cast(layers.array_length(local), "float32"), i, a)
            return [layers.increment(i)]
        layers.while_loop(lambda i: layers.less_than(i, n), body, [number(0)])
        length = layers.array_length(a)
    exe = fluid.Executor(CPU)
    for n in (3, 1, 0, 2):
        got, elements = exe.run(main, feed={"n": np.array([n]), "x": np.ones(2, "float32")}, fetch_list=[length, a])
        assert got.item() == n and [e.item() for e in elements] == [1.0] * n


@pytest.mark.parametrize("what, place, text", [("write", -1, "at least 0"), ("read", 7, "never been written"),
                                               ("write", 1 << 40, "below")])
def test_places_outside_of_an_array_are_refused(what, place, text):
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        x, i = fluid.data("x", [2], "float32"), fluid.data("i", [1], "int64")
        a = layers.array_write(x, number(0) if what == "read" else i)
        out = layers.array_read(a, i)
    with pytest.raises(fluid.core.EnforceNotMet, match=text):
        fluid.Executor(CPU).run(main, feed={"x": np.ones(2, "float32"), "i": np.array([place])}, fetch_list=[out])


def test_sparse_gradients_of_turns_add_up():
    def losses(is_sparse):
        main, startup = fluid.Program(), fluid.Program()
        with fluid.program_guard(main, startup), fluid.unique_name.guard():
            ids = fluid.data("ids", [None, 1], "int64")
            three = number(3)
            table = fluid.ParamAttr("table", fluid.initializer.Constant(0.5))

            def body(i, s):
                e = layers.embedding(ids, [10, 4], is_sparse=is_sparse, param_attr=table)
                return [layers.increment(i), layers.elementwise_add(layers.scale(s, 0.5), layers.square(e))]
            s = layers.fill_constant_batch_size_like(ids, [-1, 4], "float32", 0.0)
            s.stop_gradient = False
            _, s = layers.while_loop(lambda i, s: layers.less_than(i, three), body, [number(0), s])
            loss = layers.reduce_sum(s)
            fluid.optimizer.SGD(0.1).minimize(loss)
        exe, scope = fluid.Executor(CPU), fluid.Scope()
        exe.run(startup, scope=scope)
        got = [exe.run(main, feed={"ids": np.array([[1], [3], [1]])}, fetch_list=[loss], scope=scope)[0].item()
               for _ in range(3)]
        return got, np.array(scope.find_var("table").get_tensor())
    (dense, table), (sparse, other) = losses(False), losses(True)
    np.testing.assert_allclose(dense, sparse, rtol=1e-6)
    np.testing.assert_allclose(table, other, rtol=1e-6)
    assert dense[0] > dense[1] > dense[2]


def test_a_value_that_a_branch_overwrites_has_no_gradient_then():
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        x, i = fluid.data("x", [None, 3], "float64"), fluid.data("n", [1], "int64")
        x.stop_gradient = False
        h = layers.scale(x, 2.0)
        with layers.Switch() as switch:
            with switch.case(layers.less_than(i, number(1))):
                layers.assign(layers.scale(x, 3.0), h)
        gradient, = fluid.gradients(layers.reduce_sum(h), [x])
    exe = fluid.Executor(CPU)
    for i, want in ((0, 3.0), (1, 2.0)):
        got, = exe.run(main, feed={"x": X, "n": np.array([i])}, fetch_list=[gradient])
        np.testing.assert_array_equal(got, np.full_like(X, want))


class TestRefused:
    def test_conditions(self):
        with fluid.program_guard(fluid.Program(), fluid.Program()):
            for bad in (number(0), 3, layers.fill_constant([2], "bool", True)):
                with pytest.raises(TypeError):
                    layers.While(bad)

    @pytest.mark.parametrize("arguments, error", [
        ((3, lambda x: x, []), TypeError), ((lambda x: x, 3, []), TypeError),
        ((lambda x: x, lambda x: x, 3), TypeError), ((lambda x: x, lambda x: x, []), ValueError)])
    def test_arguments_of_while_loop(self, arguments, error):
        with pytest.raises(error):
            layers.while_loop(*arguments)

    def test_a_body_of_another_structure_leaves_the_program_as_it_was(self):
        main = fluid.Program()
        with fluid.program_guard(main, fluid.Program()):
            i, n = number(0), number(3)
            with pytest.raises(ValueError):
                layers.while_loop(lambda i, n: layers.less_than(i, n), lambda i, n: [i], [i, n])
        assert main.current_block().idx == 0 and [op.type for op in main.global_block().ops][-1] != "while"


LOOPS_FOR_EVER = """
import os, signal, threading
import anabranch.fluid as fluid
layers = fluid.layers
i = layers.fill_constant([1], "int64", 0)
layers.while_loop(lambda i: layers.less_than(i, layers.fill_constant([1], "int64", 1)),
                  lambda i: [layers.scale(i, 1.0)], [i])
exe = fluid.Executor()
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    exe.run(fetch_list=[i])
except KeyboardInterrupt:
    small = fluid.Program()
    with fluid.program_guard(small, fluid.Program()):
        seven = layers.fill_constant([1], "int64", 7)
    print(exe.run(small, fetch_list=[seven])[0].item())
"""


def test_an_interrupt_ends_a_loop_and_leaves_the_executor_usable():
    done = subprocess.run([sys.executable, "-c", LOOPS_FOR_EVER], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, check=False)
    assert done.stdout.strip() == "7", done.stderr


def test_the_gradient_of_a_loop_that_another_version_has_made_is_refused():
    loop = Loop(simple)
    program = fluid.Program.parse_from_string(loop.main.desc.serialize_to_string())
    gradient = next(b for b in program.blocks if b.forward_block_idx > 0)
    carried = loop.main.block(0).ops[[op.type for op in loop.main.block(0).ops].index("while")].output("Out")
    name = next(n + "@GRAD" for n in carried if gradient.has_var(n + "@GRAD"))
    program.block(gradient.idx)._rename_var(name, "another")
    with pytest.raises(fluid.core.EnforceNotMet, match="append_backward"):
        loop.run(2, fetch=[loop.loss.name, loop.gradients[1].name], target=program)


def test_a_loop_of_a_stranger_has_a_limit(tmp_path):
    loop = Loop(simple)
    with fluid.scope_guard(loop.scope):
        fluid.io.save_inference_model(str(tmp_path), ["x", "n"], [loop.y], loop.exe, loop.main)
    fluid.set_flags({"FLAGS_max_loop_turns_untrusted": 20})
    try:
        with fluid.scope_guard(fluid.Scope()):
            for trusted in (False, True):
                program, _, targets = fluid.io.load_inference_model(str(tmp_path), loop.exe, trusted=trusted)
                run = functools.partial(loop.exe.run, program, fetch_list=targets)
                run(feed={"x": X, "n": np.array([20])})
                if trusted:
                    run(feed={"x": X, "n": np.array([21])})
                    continue
                with pytest.raises(fluid.core.EnforceNotMet, match="not trusted"):
                    run(feed={"x": X, "n": np.array([21])})
    finally:
        fluid.set_flags({"FLAGS_max_loop_turns_untrusted": 1000000})
