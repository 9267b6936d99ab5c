"""A variable that one step writes more than once: each reader sees the value, shape and sequences of its time."""

import numpy as np
import pytest

import anabranch.fluid as fluid

layers = fluid.layers
BATCHES = [(2, 2), (2, 3), (3, 2), (2, 500), (500, 2), (2, 2)]


def variable(name, shape, dtype="float32", **kind):
    return fluid.default_main_program().global_block().create_var(name=name, shape=shape, dtype=dtype, **kind)


def rows(x, z):
    t = variable("t", [-1, 6])
    layers.assign(x, output=t)
    before = layers.scale(t, 2.0)
    layers.assign(z, output=t)
    return before, layers.scale(t, 3.0), lambda x, z: (2 * x, 3 * z)


def fed(x, z):
    before = layers.scale(x, 2.0)
    layers.assign(z, output=x)
    return before, layers.scale(x, 3.0), lambda x, z: (2 * x, 3 * z)


def reshaped(x, z):
    h = layers.scale(x, 1.0)
    before = layers.softmax(h)
    layers.reshape(h, [-1, 2, 3], inplace=True)
    return before, layers.scale(h, 3.0), lambda x, z: (softmax(x), 3 * x.reshape(-1, 2, 3))


def reshaped_feed(x, z):  # fluid.data would check what is fed against the new shape, as the original does
    x = layers.data("p", [6])
    before = layers.reduce_sum(x, dim=1, keep_dim=True)
    layers.reshape(x, [-1, 3], inplace=True)
    return before, layers.scale(x, 3.0), lambda x, z: (x.sum(1, keepdims=True), 3 * x.reshape(-1, 3))


def filled(x, z):
    t = layers.fill_constant([2, 3], "float32", 1.0)
    before = layers.scale(t, 2.0)
    layers.fill_constant([4000, 50], "float32", 5.0, out=t)
    return before, layers.scale(t, 3.0), lambda x, z: (np.full((2, 3), 2.0), np.full((4000, 50), 15.0))


def summed(x, z):
    t = layers.scale(x, 1.0)
    before = layers.scale(t, 2.0)
    layers.sums([z, z], out=t)
    return before, layers.scale(t, 3.0), lambda x, z: (2 * x, 6 * z)


def squeezed(x, z):
    h = layers.unsqueeze(x, [1])
    before = layers.scale(h, 2.0)
    layers.assign(z, output=h)
    return before, layers.scale(h, 3.0), lambda x, z: (2 * x[:, None], 3 * z)


def counted(x, z):
    n = layers.fill_constant([1], "float32", 1.0)
    before = layers.scale(n, 10.0)
    layers.increment(n, 2.0, in_place=True)
    return before, layers.scale(n, 10.0), lambda x, z: (np.array([10.0]), np.array([30.0]))


def softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def same(got, expected):
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected, rtol=2e-5)


@pytest.mark.parametrize("passes", ["", "all"])
@pytest.mark.parametrize(
    "write", [rows, fed, reshaped, reshaped_feed, filled, summed, squeezed, counted], ids=lambda f: f.__name__
)
def test_each_reader_sees_the_value_of_its_time(write, passes, monkeypatch):
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        x, z = fluid.data("x", [None, 6]), fluid.data("z", [None, 6])
        before, after, expected = write(x, z)
    fluid.set_flags({"FLAGS_disable_passes": passes})
    try:
        executor = fluid.Executor()
        random = np.random.RandomState(0)
        for n, m in BATCHES:
            xs, zs = random.rand(n, 6).astype("float32"), random.rand(m, 6).astype("float32")
            got = executor.run(program, feed={"x": xs, "z": zs, "p": xs}, fetch_list=[before, after])
            for one, other in zip(got, expected(xs, zs)):
                same(one, other)
    finally:
        fluid.set_flags({"FLAGS_disable_passes": ""})


def test_replicas_see_the_values_of_their_time():
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        x, z = fluid.data("x", [None, 6]), fluid.data("z", [None, 6])
        before, after, expected = fed(x, z)
    compiled = fluid.CompiledProgram(program).with_data_parallel(places=fluid.cpu_places(3))
    for n in (6, 9, 3):
        xs, zs = np.random.rand(n, 6).astype("float32"), np.random.rand(2 * n, 6).astype("float32")
        got = fluid.Executor().run(compiled, feed={"x": xs, "z": zs}, fetch_list=[before, after])
        for one, other in zip(got, expected(xs, zs)):
            same(one, other)


ALIASED = {
    "concat": ({"X": ["x", "x"]}, "Out", {"axis": 0}, lambda x: np.concatenate([x, x])),
    "pad": ({"X": ["x"]}, "Out", {"paddings": [50, 0, 0, 0]}, lambda x: np.pad(x, ((50, 0), (0, 0)))),
    "stack": ({"X": ["x", "x"]}, "Y", {"axis": 0}, lambda x: np.stack([x, x])),
    "transpose": ({"X": ["x"]}, "Out", {"axis": [1, 0]}, lambda x: x.T),
    "reduce_sum": ({"X": ["x"]}, "Out", {"dim": [1], "keep_dim": True}, lambda x: x.sum(1, keepdims=True)),
    "cast": ({"X": ["x"]}, "Out", {"in_dtype": 5, "out_dtype": 6}, lambda x: x.astype("float64")),
    "top_k": ({"X": ["x"]}, "Out", {"k": 2}, lambda x: -np.sort(-x, 1)[:, :2]),
    "elementwise_add": ({"X": ["w"], "Y": ["x"]}, "Out", {"axis": -1}, lambda x: np.zeros((5, 2, 4), "float32") + x),
}


@pytest.mark.parametrize("type", sorted(ALIASED))
def test_an_output_may_be_an_input(type):
    inputs, slot, attrs, expected = ALIASED[type]
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        layers.data("x", [4])
        if type == "elementwise_add":
            w = layers.fill_constant([5, 2, 4], "float32", 0.0)
            inputs = {"X": [w], "Y": ["x"]}
        outputs = {slot: ["x"]}
        if type == "top_k":
            outputs["Indices"] = [variable("places", [-1, 2], "int64")]
        program.global_block().append_op(type=type, inputs=inputs, outputs=outputs, attrs=attrs)
    values = np.arange(8, dtype="float32").reshape(2, 4)
    executor = fluid.Executor()
    for _ in range(3):
        (got,) = executor.run(program, feed={"x": values}, fetch_list=["x"])
        same(got, expected(values))


def test_two_outputs_are_two_variables():
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        fluid.data("x", [None, 4])
        with pytest.raises(fluid.core.EnforceNotMet, match="must be different variables, got y twice"):
            variable("y", [-1, 2])
            program.global_block().append_op(
                type="top_k", inputs={"X": ["x"]}, outputs={"Out": ["y"], "Indices": ["y"]}, attrs={"k": 2}
            )


def test_each_reader_sees_the_sequences_of_its_time():
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        x, z = (fluid.data(name, [None, 2], lod_level=1) for name in "xz")
        t = layers.scale(x, 1.0)
        before = layers.sequence_pool(t, "sum")
        layers.assign(z, output=t)
        after = layers.sequence_pool(t, "sum")
    executor = fluid.Executor()
    for lengths in (([1, 2], [3, 1, 1]), ([2, 2, 2, 2], [1]), ([1, 2], [3, 1, 1])):
        feed = {
            name: fluid.create_lod_tensor(np.ones((sum(n), 2), "float32"), [n], fluid.CPUPlace())
            for name, n in zip("xz", lengths)
        }
        for got, expected in zip(executor.run(program, feed=feed, fetch_list=[before, after]), lengths):
            same(got, np.repeat(np.array(expected, "float32")[:, None], 2, 1))


def test_labels_that_a_loss_reshapes_in_place_are_fed_again():
    """npair_loss makes a column of its labels, in the variable that is fed."""
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        x, y = (fluid.data(name, [4, 3]) for name in "xy")
        label = layers.data("label", [4], append_batch_size=False)
        loss = layers.npair_loss(x, y, label, l2_reg=0.0)
    executor, random = fluid.Executor(), np.random.RandomState(0)
    for _ in range(3):
        xs, ys = random.rand(2, 4, 3).astype("float32")
        labels = random.randint(0, 2, 4).astype("float32")
        (got,) = executor.run(program, feed={"x": xs, "y": ys, "label": labels}, fetch_list=[loss])
        equal = (labels[:, None] == labels).astype("float32")
        log_p = np.log(softmax(xs @ ys.T))
        assert got.item() == pytest.approx(-(equal / equal.sum(1, keepdims=True) * log_p).sum(1).mean(), rel=1e-5)


# ---- persistable variables


def test_a_persistable_variable_of_any_shape():
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        x = fluid.data("x", [None], "int64")
        kept = layers.create_global_var([1, 1], 0.0, "float32", persistable=True, name="kept")
        old = layers.scale(kept, 1.0)
        layers.assign(layers.sequence_mask(x, dtype="float32"), output=kept)
        new = layers.scale(kept, 2.0)
    executor, scope = fluid.Executor(), fluid.Scope()
    with fluid.scope_guard(scope):
        executor.run(startup)
        before = np.zeros((1, 1))
        for n in (3, 2, 5, 2000, 20000, 4):
            was, now, stored = executor.run(main, feed={"x": np.array([1, n])}, fetch_list=[old, new, kept])
            mask = np.arange(n) < np.array([[1], [n]])
            same(was, before)
            same(now, 2.0 * mask)
            same(stored, 1.0 * mask)
            same(np.array(scope.find_var("kept").get_tensor()), 1.0 * mask)
            before = 1.0 * mask


def test_a_program_that_gives_a_variable_another_shape():
    reader, writer, startup = fluid.Program(), fluid.Program(), fluid.Program()
    with fluid.program_guard(reader, startup):
        kept = layers.create_global_var([1, 1], 0.0, "float32", persistable=True, name="kept")
        doubled = layers.scale(kept, 2.0)
    with fluid.program_guard(writer, fluid.Program()):
        f = fluid.data("f", [None, None])
        layers.assign(f, output=variable("kept", [-1, -1], persistable=True))
    executor = fluid.Executor()
    with fluid.scope_guard(fluid.Scope()):
        executor.run(startup)
        for n in (3, 2, 5, 20000, 1):
            executor.run(writer, feed={"f": np.full((n, 3), n, "float32")})
            (got,) = executor.run(reader, fetch_list=[doubled])
            same(got, np.full((n, 3), 2.0 * n))


def test_sequences_of_a_persistable_variable_may_change():
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        kept = program.global_block().create_var(
            name="kept", shape=[-1, 1], dtype="float32", persistable=True, lod_level=1
        )
        sums = layers.sequence_pool(kept, "sum")
    executor, scope = fluid.Executor(), fluid.Scope()
    with fluid.scope_guard(scope):
        tensor = scope.var("kept").get_tensor()
        tensor.set(np.arange(6, dtype="float32").reshape(6, 1), fluid.CPUPlace())
        for lengths, expected in (([3, 3], [3, 12]), ([1] * 6, list(range(6))), ([6], [15])):
            tensor.set_recursive_sequence_lengths([lengths])
            (got,) = executor.run(program, fetch_list=[sums])
            same(got, np.array(expected, "float32").reshape(-1, 1))


def test_a_variable_put_into_the_scope_by_hand():
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        t = variable("t", [-1, 3])
        doubled = layers.scale(t, 2.0)
    executor, scope = fluid.Executor(), fluid.Scope()
    with fluid.scope_guard(scope):
        with pytest.raises(fluid.core.EnforceNotMet, match='"t" has no value'):
            executor.run(program, fetch_list=[doubled])
        for n in (2, 20000, 1):
            scope.var("t").get_tensor().set(np.full((n, 3), n, "float32"), fluid.CPUPlace())
            (got,) = executor.run(program, fetch_list=[doubled])
            same(got, np.full((n, 3), 2.0 * n))


def test_a_variable_that_lost_its_memory():
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        kept = variable("kept", [2, 3], persistable=True)
        doubled = layers.scale(kept, 2.0)
    executor, scope = fluid.Executor(), fluid.Scope()
    with fluid.scope_guard(scope):
        tensor = scope.var("kept").get_tensor()
        tensor.set(np.ones((2, 3), "float32"), fluid.CPUPlace())
        executor.run(program, fetch_list=[doubled])
        tensor._clear()
        with pytest.raises(fluid.core.EnforceNotMet, match="kept holds no value"):
            executor.run(program, fetch_list=[doubled])
        tensor.set(np.ones((2, 3), "float32"), fluid.CPUPlace())
        same(executor.run(program, fetch_list=[doubled])[0], np.full((2, 3), 2.0))


# ---- control flow


@pytest.mark.parametrize("again", ["once", "twice"])
def test_a_condition_that_is_written_again(again):
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        x = fluid.data("x", [None, 2])
        limit = layers.fill_constant([1], "float32", 0.3)
        c = layers.less_than(limit, layers.reduce_sum(x))
        o = layers.cond(c, lambda: layers.scale(x, 2.0), lambda: layers.scale(x, 3.0))
        layers.less_than(layers.reduce_sum(o), limit, cond=c)
        if again == "twice":
            p = o
            o = layers.cond(c, lambda: layers.scale(p, 10.0), lambda: layers.scale(p, 100.0))
    executor = fluid.Executor()
    for sign in (1, -1, 1, -1):
        xs = np.full((2, 2), sign, "float32")
        got, held = executor.run(program, feed={"x": xs}, fetch_list=[o, c])
        first = 2 * xs if sign > 0 else 3 * xs
        second = 10 if first.sum() < 0.3 else 100
        same(got, first * (second if again == "twice" else 1))
        assert held.tolist() == [bool(first.sum() < 0.3)]


def test_a_branch_that_writes_a_variable_which_others_have_read():
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        x = fluid.data("x", [None, 2])
        t = layers.scale(x, 1.0)
        before = layers.scale(t, 2.0)
        positive = layers.less_than(layers.fill_constant([1], "float32", 0.0), layers.reduce_sum(x))
        with layers.Switch() as switch:
            with switch.case(positive):
                layers.assign(layers.fill_constant([70, 3], "float32", 5.0), output=t)
        after = layers.scale(t, 3.0)
    executor = fluid.Executor()
    for sign in (1, -1, 1, -1, -1):
        xs = np.full((2, 2), sign, "float32")
        was, now = executor.run(program, feed={"x": xs}, fetch_list=[before, after])
        same(was, 2 * xs)
        same(now, np.full((70, 3), 15.0, "float32") if sign > 0 else 3 * xs)


def test_a_block_may_write_what_it_reads():
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        x = fluid.data("x", [None, 4])
        always = layers.fill_constant([1], "bool", True)

        def body():
            h = layers.scale(x, 1.0)
            s = layers.softmax(h)
            layers.reshape(h, [-1, 2], inplace=True)
            program.current_block().append_op(
                type="concat", inputs={"X": [h, h]}, outputs={"Out": [h]}, attrs={"axis": 0}
            )
            return layers.reduce_sum(s), layers.scale(h, 2.0)

        total, doubled = layers.cond(always, body, lambda: (layers.reduce_sum(x), layers.scale(x, 1.0)))
    executor = fluid.Executor()
    for n in (2, 5, 1):
        xs = np.random.rand(n, 4).astype("float32")
        got, twice = executor.run(program, feed={"x": xs}, fetch_list=[total, doubled])
        assert got[0] == pytest.approx(n, rel=1e-5)
        pairs = xs.reshape(-1, 2)
        same(twice, 2 * np.concatenate([pairs, pairs]))
