"""Fully connected layers on a simulated device: bias and relu are fused into the product."""
import pytest
from device_runs import pytestmark, run  # noqa: F401
from device_texts import NETS

FC = """
import re

L = fluid.layers

def said(exe):
    return list(exe._bound.values())[-1].bound.engine.explain()

def fused(text):
    return int(re.search("fuse_fc +applied, (\\\\d+) changes?", text)[1])

def nodes(text):
    return int(re.search("(\\\\d+) nodes on", text)[1])

def without(*passes):
    "Chains of elementwise operators, which another pass makes, would not leave the nodes to be counted."
    fluid.set_flags({"FLAGS_disable_passes": ",".join(["fuse_elementwise"] + [p for p in passes if p])})

without()

def random(*shape):
    return np.random.RandomState(len(shape)).normal(0, 1, shape).astype("float32")

def layer(feed, make, place, shapes=None, **tensors):
    "The results of make(x) for the feed, and the explanation of the plan. tensors: parameters that are set."
    shapes = shapes or {name: [None] + list(x.shape[1:]) for name, x in feed.items()}
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 7
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        out = make(*(fluid.data(name, shape) for name, shape in shapes.items()))
    exe, scope = fluid.Executor(place), fluid.Scope()
    with fluid.scope_guard(scope):
        exe.run(startup)
        for name, value in tensors.items():
            scope.find_var(name).get_tensor().set(value, fluid.CPUPlace())
        return exe.run(main, feed=feed, fetch_list=out), said(exe)

def compare(make, changes, left, **feed):
    "The same bits with the pass as without, near to the CPU's, by this many products and nodes fewer."
    got, text = layer(feed, make, fluid.CUDAPlace(0))
    assert fused(text) == changes, text
    without("fuse_fc")
    apart, plain = layer(feed, make, fluid.CUDAPlace(0))
    without("")
    cpu, _ = layer(feed, make, fluid.CPUPlace())
    assert nodes(plain) - nodes(text) == left, (text, plain)
    assert "ops run on a device; on the CPU: none" in text, text
    for a, b, c in zip(got, apart, cpu):
        assert a.shape == b.shape == c.shape and a.tobytes() == b.tobytes(), (a, b)
        np.testing.assert_allclose(a, c, rtol=1e-6, atol=1e-6)
    return got[0]
"""


def test_a_product_fuses_bias_and_relu():
    run(FC + """
x = random(5, 6)
got = compare(lambda x: [L.fc(x, 4, act="relu")], 1, 2, x=x)
assert (got == 0).any() and (got > 0).any()
got = compare(lambda x: [L.fc(x, 4, act="relu", bias_attr=False)], 1, 1, x=x)
assert (got == 0).any() and (got > 0).any()
bias = fluid.initializer.Constant(3.0)
got = compare(lambda x: [L.fc(x, 4, bias_attr=fluid.ParamAttr(initializer=bias))], 1, 1, x=x)
assert got.mean() > 2 and (got < 3).any()
compare(lambda x: [L.fc(x, 4, bias_attr=False)], 0, 0, x=x)
got = compare(lambda x: [L.fc(x, 4, num_flatten_dims=2, act="relu")], 1, 2, x=random(2, 3, 6))
assert got.shape == (2, 3, 4)
compare(lambda x: [L.fc(x, 4, num_flatten_dims=1, act="relu")], 1, 2, x=random(2, 3, 6))
""")


def test_other_activations_stay_after_the_sum():
    run(FC + """
for act in ("sigmoid", "tanh", "gelu", "square"):
    compare(lambda x: [L.fc(x, 4, act=act)], 1, 1, x=random(5, 6))
compare(lambda x: [L.tanh(L.fc(x, 4, bias_attr=False))], 0, 0, x=random(5, 6))
""")


def test_what_others_read_or_the_cpu_is_to_run_stays():
    run(FC + """
def twice(x):
    h = L.fc(x, 4)
    return [L.relu(h), h]
compare(twice, 1, 1, x=random(5, 6))  # the sum is fetched
def guarded(x):
    with fluid.device_guard("cpu"):
        return [L.fc(x, 4, act="relu")]
_, text = layer({"x": random(5, 6)}, guarded, fluid.CUDAPlace(0))
assert fused(text) == 0 and "ops run on a device" not in text, text
def relu_guarded(x):
    h = L.fc(x, 4)
    with fluid.device_guard("cpu"):
        return [L.relu(h)]
got, text = layer({"x": random(5, 6)}, relu_guarded, fluid.CUDAPlace(0))
assert fused(text) == 0 and re.search("on the CPU: relu", text), text
np.testing.assert_allclose(got[0], layer({"x": random(5, 6)}, relu_guarded, fluid.CPUPlace())[0][0], atol=1e-6)
""")


def test_a_bias_of_one_element_and_sums_of_nothing():
    """Libraries fuse neither: kernels after the product do the same."""
    run(FC + """
x = random(5, 6)
def net(x):
    return [L.fc(x, 4, act="relu", param_attr="w", bias_attr="b")]
one = np.array([0.5], "float32")
(got,), text = layer({"x": x}, net, fluid.CUDAPlace(0), b=one)
assert fused(text) == 1, text
(cpu,), _ = layer({"x": x}, net, fluid.CPUPlace(), b=one)
np.testing.assert_allclose(got, cpu, atol=1e-6)
assert (got > 0).any() and (got == 0).any()

def product(x, w):
    bias = L.assign(np.array([-1, 0, 2], "float32"))
    return [L.relu(L.elementwise_add(L.mul(x, w), bias))]
nothing = {"x": np.zeros((4, 0), "float32"), "w": np.zeros((0, 3), "float32")}
(got,), text = layer(nothing, product, fluid.CUDAPlace(0), {"x": [None, None], "w": [None, 3]})
assert fused(text) == 1, text
assert (got == [[0, 0, 2]] * 4).all(), got
""")


def test_a_nan_stays_a_nan():
    run(FC + """
x = random(5, 6)
x[2, 3] = np.nan
(got,), text = layer({"x": x}, lambda x: [L.fc(x, 4, act="relu")], fluid.CUDAPlace(0))
assert fused(text) == 1 and np.isnan(got[2]).all() and not np.isnan(got[[0, 1, 3, 4]]).any(), got
""")


@pytest.mark.parametrize("order", ["random", "starved"])
def test_training_gives_the_bits_of_separate_kernels(order):
    run(FC + """
def text_and(made):
    kept = []
    class Watched(fluid.Executor):
        def __init__(self, place):
            super().__init__(place)
            kept.append(self)
    plain, fluid.Executor = fluid.Executor, Watched
    got = made()
    fluid.Executor = plain
    return got, said(kept[-1])
(losses, params), text = text_and(lambda: train(fluid.CUDAPlace(0)))
assert fused(text) == 2, text
without("fuse_fc")
(apart, others), plain = text_and(lambda: train(fluid.CUDAPlace(0)))
assert nodes(plain) - nodes(text) == 3, (text, plain)
without("")
expected, cpu = train(fluid.CPUPlace())
assert losses == apart and losses[-1] < losses[0] / 2
np.testing.assert_allclose(losses, expected, rtol=1e-5)
for name in cpu:
    assert params[name].tobytes() == others[name].tobytes(), name
    np.testing.assert_allclose(params[name], cpu[name], atol=1e-6)
""", simdevice_order=order)


@pytest.mark.parametrize("reduce", ["AllReduce", "Reduce"])
def test_two_devices_fuse_the_layers_of_both(reduce):
    run(FC + """
def learn():
    main, startup, _, loss = net()
    exe, scope, build = fluid.Executor(fluid.CUDAPlace(0)), fluid.Scope(), fluid.BuildStrategy()
    build.reduce_strategy = fluid.BuildStrategy.ReduceStrategy.%s
    with fluid.scope_guard(scope):
        exe.run(startup)
        compiled = fluid.CompiledProgram(main).with_data_parallel(loss.name, build, places=fluid.cuda_places())
        losses = [exe.run(compiled, feed=batch(k), fetch_list=[loss])[0].mean().item() for k in range(8)]
    return losses, compiled.explain()
losses, text = learn()
assert fused(text) == 4, text
without("fuse_fc")
assert learn()[0] == losses and losses[-1] < losses[0]
""" % reduce, simdevice_devices=2)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_in_16_bits_sums_are_rounded_once(dtype):
    run(NETS + FC + f"""
dtype = {dtype!r}
def made(x):
    bias = fluid.ParamAttr(initializer=fluid.initializer.Normal())
    h = L.fc(x, 8, num_flatten_dims=2, act="relu", bias_attr=bias)
    for op in fluid.default_main_program().global_block().ops:
        op._set_attr("mixed_precision", dtype)
    return [h]
x = random(4, 3, 16)
(got,), text = layer({{"x": x}}, made, fluid.CUDAPlace(0))
assert fused(text) == 1 and "in " + dtype + ": elementwise_add, mul, relu" in text, text
without("mixed_precision")
(exact,), _ = layer({{"x": x}}, made, fluid.CUDAPlace(0))
without("fuse_fc")
(apart,), _ = layer({{"x": x}}, made, fluid.CUDAPlace(0))
without("")
step = 2.0 ** (-11 if dtype == "float16" else -8)
assert (got != exact).any() and (got == 0).any() and (got > 0).any()
assert np.abs(got - exact).max() < 16 * step and np.abs(apart - exact).max() < 32 * step
assert np.abs(got - exact).mean() < np.abs(apart - exact).mean(), (got - exact, apart - exact)
""")
