"""Batch norms over several devices, which the CPU plays: the statistics are those of the whole batch."""
import textwrap

import pytest
from device_runs import pytestmark, run  # noqa: F401

NETS = """
import re

def made(dtype, layout, momentum, low):
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 3
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        shape = [None, 3, 4, 4] if layout == "NCHW" else [None, 4, 4, 3]
        x, y = fluid.data("x", shape, dtype), fluid.data("y", [None, 1], dtype)
        if momentum == "tensor":
            momentum = fluid.layers.fill_constant([1], "float32", 0.8)
        h = fluid.layers.batch_norm(x, data_layout=layout, momentum=momentum)
        h = fluid.layers.fc(fluid.layers.tanh(h), 6)
        h = fluid.layers.batch_norm(h, act="tanh", momentum=0.7)
        loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(h, 1), y))
        rule = fluid.optimizer.Momentum(0.05, 0.9)
        if low:
            rule = fluid.contrib.mixed_precision.decorate(rule, init_loss_scaling=1.0, dtype=low,
                                                          use_dynamic_loss_scaling=False)
        rule.minimize(loss)
    return main, startup, loss

def train(places, sync=True, rows=(16, 16, 16), reduce="AllReduce", dtype="float64", layout="NCHW", momentum=0.9,
          low=None):
    main, startup, loss = made(dtype, layout, momentum, low)
    exe, scope = fluid.Executor(places[0]), fluid.Scope()
    build = fluid.BuildStrategy()
    build.sync_batch_norm = sync
    build.reduce_strategy = getattr(fluid.BuildStrategy.ReduceStrategy, reduce)
    losses = []
    with fluid.scope_guard(scope):
        exe.run(startup)
        compiled = fluid.CompiledProgram(main).with_data_parallel(loss.name, build, places=places)
        for step, n in enumerate(rows):
            r = np.random.RandomState(step)
            x = (r.randn(n, *main.global_block().var("x").shape[1:]) * 3 + 20).astype(dtype)
            x += np.arange(n).reshape(-1, 1, 1, 1)  # replicas differ
            y = np.tanh(x.mean((1, 2, 3)) - 25).reshape(-1, 1).astype(dtype)
            got = exe.run(compiled, feed={"x": x, "y": y}, fetch_list=[loss])[0].reshape(-1)
            parts = [len(part) for part in np.array_split(np.arange(n), len(places)) if len(part)]
            losses.append(float(np.dot(got, parts[:len(got)]) / n) if len(got) == len(parts) else None)
        kept = sorted(v.name for v in main.list_vars() if v.persistable and scope.find_var(v.name))
        values = {name: np.array(scope.find_var(name).get_tensor()) for name in kept}
    return losses, values, compiled.explain()

def same(got, expected, tolerance):
    assert got[1].keys() == expected[1].keys() and len(got[1]) > 10
    for a, b in zip(got[0], expected[0]):
        assert a is None or b is None or abs(a - b) <= tolerance * (1 + abs(b)), (got[0], expected[0])
    for name, value in expected[1].items():
        np.testing.assert_allclose(got[1][name], value, rtol=tolerance, atol=tolerance, err_msg=name)
"""


def go(text, **flags):
    return run(NETS + textwrap.dedent(text), **flags)


@pytest.mark.parametrize("count", [2, 4])
def test_statistics_are_those_of_one_batch_of_the_whole(count):
    go("""
    count = %d
    for options, tolerance in (({}, 1e-9), ({"layout": "NHWC", "momentum": "tensor"}, 1e-9),
                               ({"dtype": "float32"}, 2e-3), ({"rows": (16, 2 * count + 1, 2, 16)}, 1e-9)):
        whole = train([fluid.CPUPlace()], **options)
        got = train(fluid.cuda_places(), **options)
        assert len(fluid.cuda_places()) == count
        same(got, whole, tolerance)
        assert "ops run on a device; on the CPU: none" in got[2], got[2]
        assert re.search("4 rounds of sums over %%d replicas, 320 bytes" %% count, got[2]), got[2]
        owned = train(fluid.cuda_places(), reduce="Reduce", **options)
        assert all(np.array_equal(owned[1][name], value) for name, value in got[1].items())
    apart = train(fluid.cuda_places(), sync=False)
    assert np.abs(apart[1]["batch_norm_0.w_2"] - train([fluid.CPUPlace()])[1]["batch_norm_0.w_2"]).max() > 0.1
    assert "sync_batch_norm is False" in apart[2]
    """ % count, simdevice_devices=count)


def test_orders_of_queues_give_equal_bits():
    text = "print(train(fluid.cuda_places(), dtype='float32')[:2])"
    ways = [{}, {"simdevice_order": "latest"}, {"simdevice_seed": 5}]
    assert len({go(text, simdevice_devices=2, **flags) for flags in ways}) == 1


def test_replicas_of_the_cpu_keep_their_own_statistics():
    go("""
    got, plain = train(fluid.cpu_places(2)), train(fluid.cpu_places(2), sync=False)
    assert all(np.array_equal(plain[1][name], value) for name, value in got[1].items())
    assert re.search("sync_batch_norm +skipped: the program runs on the CPU", got[2])
    """)


def test_one_element_a_channel_passes():
    go("""
    def trained(places):
        main, startup = fluid.Program(), fluid.Program()
        with fluid.program_guard(main, startup), fluid.unique_name.guard():
            x = fluid.data("x", [None, 3])
            x.stop_gradient = False
            loss = fluid.layers.mean(fluid.layers.batch_norm(x))
            fluid.backward.append_backward(loss)
        exe = fluid.Executor(places[0])
        build = fluid.BuildStrategy()
        build.sync_batch_norm = True
        with fluid.scope_guard(fluid.Scope()):
            exe.run(startup)
            compiled = fluid.CompiledProgram(main).with_data_parallel(loss.name, build, places=places)
            return [exe.run(compiled, feed={"x": np.ones((n, 3), "float32")}, fetch_list=[loss])[0] for n in (1, 2)]
    one, two = trained(fluid.cuda_places())
    assert one.tolist() == [1.0] and np.abs(two).max() < 1e-6, (one, two)
    """, simdevice_devices=2)


def test_images_of_16_bits_have_float32_statistics():
    go("""
    for low, tolerance in (("float16", 0.01), ("bfloat16", 0.05)):
        expected, got = (train(fluid.cuda_places(), dtype="float32", low=kind) for kind in (None, low))
        said = re.search("in %s: (.*)" % low, got[2])[1].split(", ")
        assert {"batch_norm", "batch_norm_grad"} <= set(said), said
        assert "rounds of sums over 2 replicas" in got[2] and "on the CPU: none" in got[2], got[2]
        same((got[0], {name: got[1][name] for name in expected[1]}), expected, tolerance)  # except for the scale
        assert got[0] != expected[0]
    """, simdevice_devices=2)
