"""Variables that a program writes again - gradients with decay and clips, powers of Adamax - stay on the device."""
import textwrap

import pytest
from device_runs import pytestmark, run  # noqa: F401

NETS = """
import re

CLIPS = {"value": lambda: fluid.clip.GradientClipByValue(0.1), "norm": lambda: fluid.clip.GradientClipByNorm(0.1),
         "global": lambda: fluid.clip.GradientClipByGlobalNorm(0.1), "none": lambda: None}

def made(rule="Adam", clip="global", sparse=False):
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 3
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x, y = fluid.data("x", [None, 13]), fluid.data("y", [None, 1])
        hidden = fluid.layers.fc(x, 8, act="relu")
        if sparse:
            words = fluid.data("words", [None], "int64")
            hidden = hidden + fluid.embedding(words, [20, 8], is_sparse=True)
        loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, 1), y))
        getattr(fluid.optimizer, rule)(0.05, grad_clip=CLIPS[clip](), regularization=None if sparse else
                                       fluid.regularizer.L2Decay(0.01)).minimize(loss)
    return main, startup, loss

def data(step, sparse):
    r = np.random.RandomState(step)
    x = r.rand(16, 13).astype("float32")
    words = {"words": r.randint(0, 20, 16)} if sparse else {}
    return {"x": x, "y": x.sum(1, keepdims=True), **words}

def train(places, reduce="AllReduce", sparse=False, **options):
    main, startup, loss = made(sparse=sparse, **options)
    exe, scope = fluid.Executor(places[0]), fluid.Scope()
    build = fluid.BuildStrategy()
    build.reduce_strategy = getattr(fluid.BuildStrategy.ReduceStrategy, reduce)
    with fluid.scope_guard(scope):
        exe.run(startup)
        compiled = fluid.CompiledProgram(main).with_data_parallel(loss.name, build, places=places)
        losses = [exe.run(compiled, feed=data(k, sparse), fetch_list=[loss])[0].tolist() for k in range(5)]
        kept = [v.name for v in main.list_vars() if v.persistable and scope.find_var(v.name)]
        values = {name: np.array(scope.find_var(name).get_tensor()) for name in sorted(kept)}
    return losses, values, compiled.explain()

def all_there(explained):
    assert "ops run on a device; on the CPU: none" in explained, explained
    copied = set(re.findall("cop(?:y|ies) (to the (?:device|host) for [a-z0-9_]+)", explained))
    feeds = {"to the device for " + op
             for op in ("fused_fc", "fused_elementwise", "elementwise_sub", "lookup_table_v2")}
    assert copied <= feeds | {"to the host for mean"}, copied

def same(got, expected):
    assert got[1].keys() == expected[1].keys() and len(got[1]) >= 4
    np.testing.assert_allclose(got[0], expected[0], rtol=1e-4)
    for name, value in expected[1].items():
        np.testing.assert_allclose(got[1][name], value, rtol=2e-4, atol=1e-6, err_msg=name)
"""


def go(text, **flags):
    return run(NETS + textwrap.dedent(text), **flags)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_decay_clips_and_updates_run_where_the_gradients_are(count):
    go("""
    count = %d
    for options in ({}, {"clip": "norm"}, {"clip": "value"}, {"rule": "Adamax"}, {"sparse": True},
                    {"sparse": True, "clip": "norm"}):
        got = train(fluid.cuda_places(), **options)
        assert len(got[0][0]) == count
        all_there(got[2])
        same(got, train(fluid.cpu_places(count), **options))
        if count > 1:
            owned = train(fluid.cuda_places(), "Reduce", **options)
            all_there(owned[2])
            assert owned[0] == got[0]
            for name, value in got[1].items():
                assert np.array_equal(owned[1][name], value), (name, options)
    """ % count, simdevice_devices=count)


def test_orders_of_queues_give_equal_bits():
    text = "print(train(fluid.cuda_places(), %r)[:2])"
    ways = [("AllReduce", {}), ("Reduce", {"simdevice_order": "latest"}), ("AllReduce", {"simdevice_seed": 5}),
            ("Reduce", {"simdevice_order": "starved"})]
    assert len({go(text % reduce, simdevice_devices=2, **flags) for reduce, flags in ways}) == 1


def test_values_of_one_name_keep_the_kinds_types_and_shapes_of_their_time():
    go("""
    def again(place):
        main = fluid.Program()
        with fluid.program_guard(main, fluid.Program()):
            x = fluid.data("x", [None, 4])
            h = fluid.layers.scale(x, 2.0)
            sums = [fluid.layers.reduce_sum(h)]
            block = main.global_block()
            def write(op, **attrs):
                block.append_op(op, {"X": [h]}, {"Out": [h]}, attrs)
            block.append_op("concat", {"X": [h, h]}, {"Out": [h]}, {"axis": 1})
            sums.append(fluid.layers.reduce_sum(fluid.layers.square(h)))
            write("cast", in_dtype=5, out_dtype=3)          # to int64
            write("scale", scale=3.0)
            write("cast", in_dtype=3, out_dtype=6)          # to float64
            write("tanh")
            sums.append(fluid.layers.reduce_sum(h))
            exe = fluid.Executor(place)
            got = exe.run(main, feed={"x": np.arange(12, dtype="float32").reshape(3, 4)}, fetch_list=sums + [h])
        engine = [kept.bound.engine for kept in exe._bound.values() if kept.program is main][0]
        return got, engine.explain()
    (got, explained), (expected, _) = again(fluid.CUDAPlace(0)), again(fluid.CPUPlace())
    assert "on the CPU: none" in explained, explained
    for a, b in zip(got, expected):
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-6)
    assert got[-1].shape == (3, 8) and got[-1].dtype == np.float64
    """)


def test_a_loop_that_writes_what_ops_write_again_gives_the_numbers_of_the_cpu():
    go("""
    def looped(place):
        main = fluid.Program()
        with fluid.program_guard(main, fluid.Program()):
            x = fluid.data("x", [3, 4])
            h = fluid.layers.scale(x, 0.5)
            i, n = fluid.layers.fill_constant([1], "int64", 0), fluid.layers.fill_constant([1], "int64", 3)
            cond = fluid.layers.less_than(i, n)
            with fluid.layers.While(cond).block():
                fluid.layers.assign(fluid.layers.square(h) + x, h)
                fluid.layers.increment(i)
                fluid.layers.less_than(i, n, cond=cond)
            fluid.layers.assign(fluid.layers.tanh(h), h)
            out = fluid.layers.reduce_sum(h)
            return fluid.Executor(place).run(main, feed={"x": np.eye(3, 4, dtype="float32")}, fetch_list=[out, h])
    for a, b in zip(looped(fluid.CUDAPlace(0)), looped(fluid.CPUPlace())):
        np.testing.assert_allclose(a, b, rtol=1e-5)
    """)


@pytest.mark.parametrize("count", [2, 4])
def test_reduce_spreads_parameters_by_bytes(count):
    go("""
    import glob, tempfile
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        h = fluid.layers.cast(fluid.data("x", [None, 13]), "float64")
        for width in (4, 4, 4, 4):
            h = fluid.layers.fc(h, width, bias_attr=False)
        h = fluid.layers.fc(fluid.layers.cast(h, "float32"), 1000, bias_attr=False)
        loss = fluid.layers.mean(h)
        fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
    exe = fluid.Executor(fluid.CUDAPlace(0))
    exe.run(startup)
    build = fluid.BuildStrategy()
    build.reduce_strategy = fluid.BuildStrategy.ReduceStrategy.Reduce
    build.debug_graphviz_path = tempfile.mkdtemp() + "/graph"
    compiled = fluid.CompiledProgram(main).with_data_parallel(loss.name, build, places=fluid.cuda_places())
    exe.run(compiled, feed={"x": np.ones((8, 13), "float32")}, fetch_list=[loss])
    text = open(glob.glob(build.debug_graphviz_path + "_*_place_on_devices.dot")[0]).read()
    owners = [int(n) - 1 for n in re.findall('pastel19/([0-9])", label="momentum"', text)]
    # The large one, float32, comes first; three of 128 bytes and one of 416 share the other devices.
    assert len(owners) == 5 and sorted(owners) == {2: [0, 1, 1, 1, 1], 4: [0, 1, 1, 2, 3]}[%d], owners
    """ % count, simdevice_devices=count)
