"""Elementwise operators on a simulated device: chains of them are one launch, with the bits of separate kernels."""
import pytest
from device_runs import pytestmark, run  # noqa: F401

CHAINS = """
import re

L = fluid.layers

def said(exe):
    return list(exe._bound.values())[-1].bound.engine.explain()

def fused(text):
    found = re.search("fuse_elementwise +applied, (\\\\d+) changes?", text)
    assert found, text
    return int(found[1])

def nodes(text):
    return int(re.search("(\\\\d+) nodes on", text)[1])

def random(*shape):
    return np.random.RandomState(len(shape)).uniform(-0.9, 0.9, shape).astype("float32")

def step(feed, make, place, shapes=None, lr=None, low=None):
    "The results of make(*fed), and the explanation of the plan; with lr its last value is trained to be small, twice."
    shapes = shapes or {name: [None] + list(x.shape[1:]) for name, x in feed.items()}
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 7
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        fed = [fluid.data(name, shape) for name, shape in shapes.items()]
        for x in fed:
            x.stop_gradient = False
        out = make(*fed)
        if lr:
            fluid.optimizer.SGD(lr).minimize(out[-1])
    for op in main.global_block().ops if low else ():
        op._set_attr("mixed_precision", low)
    exe, scope = fluid.Executor(place), fluid.Scope()
    with fluid.scope_guard(scope):
        exe.run(startup)
        for _ in range(3):
            got = exe.run(main, feed=feed, fetch_list=out)
        params = [np.array(scope.find_var(p.name).get_tensor()) for p in main.all_parameters()]
    return [np.asarray(x) for x in got] + params, said(exe)

def compare(make, changes, left, feed, rtol=2e-5, **how):
    "The same bits with the pass as without, near to the CPU's; `changes` nodes fewer. None: any number."
    fluid.set_flags({"FLAGS_disable_passes": "share_sum_gradients"})
    got, text = step(feed, make, fluid.CUDAPlace(0), **how)
    fluid.set_flags({"FLAGS_disable_passes": "share_sum_gradients, fuse_elementwise"})
    apart, plain = step(feed, make, fluid.CUDAPlace(0), **how)
    fluid.set_flags({"FLAGS_disable_passes": ""})
    cpu, _ = step(feed, make, fluid.CPUPlace(), **how)
    assert changes is None or fused(text) == changes, text
    assert left is None or nodes(plain) - nodes(text) == left, (text, plain)
    assert "ops run on a device; on the CPU: none" in text, text
    for a, b, c in zip(got, apart, cpu):
        assert a.shape == b.shape == c.shape and a.tobytes() == b.tobytes(), (a, b)
        np.testing.assert_allclose(a, c, rtol=rtol, atol=1e-5)
    return text

def trained(build):
    "make(): build(x, parameter) of a value, its mean to be small."
    def make(x):
        def parameter(*shape):
            return L.create_parameter(list(shape), "float32")
        h = build(L.elementwise_mul(x, parameter(*x.shape[1:])), parameter)
        return [h, L.reduce_mean(h)]
    return make
"""

UNARY = ["abs", "acos", "asin", "atan", "brelu", "ceil", "cos", "elu", "erf", "exp", "floor", "gelu", "hard_shrink",
         "hard_sigmoid", "hard_swish", "leaky_relu", "logsigmoid", "relu", "relu6", "round", "selu", "sigmoid", "sin",
         "soft_relu", "softplus", "softshrink", "softsign", "square", "stanh", "swish", "tanh", "tanh_shrink",
         "thresholded_relu"]


def test_functions_of_one_tensor_and_their_gradients():
    run(CHAINS + f"""
for name in {UNARY!r}:
    compare(trained(lambda x, _: L.tanh(getattr(L, name)(L.sigmoid(x)))), 2, 5, {{"x": random(7, 5)}}, lr=0.1)
for name in "sqrt", "rsqrt", "log", "reciprocal":
    compare(trained(lambda x, _: L.tanh(getattr(L, name)(L.exp(x)))), 2, 5, {{"x": random(7, 5)}}, lr=0.1)
compare(trained(lambda x, _: L.tanh(L.gelu(L.sigmoid(x), approximate=True))), 2, 5, {{"x": random(7, 5)}}, lr=0.1)
""")


def test_gradients_that_fluid_has_otherwise():
    run(CHAINS + """
compare(trained(lambda x, _: L.tanh(L.hard_swish(L.scale(x, 9.0)))), 2, 5, {"x": random(7, 5)}, lr=0.1)
""", fluid_exact="1.8.5")


def test_functions_of_two_tensors_and_their_gradients():
    run(CHAINS + """
for name in "add", "sub", "mul", "div", "max", "min", "pow":
    op = getattr(L, "elementwise_" + name)
    compare(trained(lambda x, _: L.tanh(op(L.sigmoid(x), L.exp(x)))), 2, 8, {"x": random(7, 5)}, lr=0.1)
compare(lambda x: [L.exp(L.elementwise_mod(x, L.exp(x)))], 1, 2, {"x": random(7, 5)})
""")


def test_scales_clips_and_sums_of_many():
    run(CHAINS + """
def build(x, _):
    x = L.exp(x)
    y = L.scale(x, 0.5, 0.3, bias_after_scale=False)
    return L.sums([L.clip(y, 0.4, 1.1), L.scale(x, 2.0, 0.1), x, L.relu(y), y])
compare(trained(build), None, None, {"x": random(7, 5)}, lr=0.1)
compare(lambda x: [L.exp(L.sums([L.scale(x, 0.1 * i) for i in range(8)]))], 1, 2, {"x": random(7, 5)})
compare(lambda x: [L.exp(L.sums([L.tanh(x)]))], 1, 2, {"x": random(7, 5)})
""")


@pytest.mark.parametrize("order", ["random", "starved"])
def test_smaller_operands(order):
    run(CHAINS + """
laid = [([3, 4, 5], -1), ([5], -1), ([1], -1), ([3], 1), ([3, 4], 1), ([3, 1, 1], 1), ([1, 5], -1), ([3, 1, 5], 1)]
for rows in 1, 2, 60:
    for extents, axis in laid:
        def build(x, parameter):
            p = parameter(*extents)
            p.stop_gradient = True
            y = L.elementwise_mul(L.elementwise_add(L.relu(x), p, axis=axis), p, axis=axis)
            return L.elementwise_sub(L.tanh(y), p, axis=axis)
        compare(trained(build), None, None, {"x": random(rows, 3, 4, 5)}, lr=0.1)
compare(lambda x, b: [L.tanh(L.elementwise_add(L.relu(x), b))], 1, 2, {"x": random(60, 4), "b": random(4)},
        shapes={"x": [None, 4], "b": [4]})
""", simdevice_order=order)


def test_extents_that_turn_out_to_differ():
    """They are taken to be equal; where they are not, the steps run one by one, and the next batch together again."""
    run(CHAINS + """
def make(x, y):
    h = L.elementwise_mul(L.relu(x), L.tanh(y))
    z = L.square(L.elementwise_add(L.sigmoid(h), L.abs(y)))
    return [z] + fluid.gradients(L.reduce_sum(z), [x, y])
for x_rows, y_rows in (4, 1), (1, 4), (4, 4), (1, 1):
    text = compare(make, None, None, {"x": random(x_rows, 3), "y": random(y_rows, 3)},
                   shapes={"x": [None, 3], "y": [None, 3]})
    assert fused(text) > 0, text

main = fluid.Program()
with fluid.program_guard(main, fluid.Program()):
    x, y = fluid.data("x", [None, 3]), fluid.data("y", [None, 3])
    z = L.elementwise_add(L.relu(x), L.tanh(y))
exe = fluid.Executor(fluid.CUDAPlace(0))
for x_rows, y_rows in [(4, 4), (1, 4), (4, 4), (4, 1), (1, 4), (1, 4), (1, 4), (0, 0), (9, 9), (9, 9)]:
    a, b = random(x_rows, 3), random(y_rows, 3)
    got, = exe.run(main, feed={"x": a, "y": b}, fetch_list=[z])
    np.testing.assert_allclose(got, np.maximum(a, 0) + np.tanh(b), rtol=1e-6)
assert fused(said(exe)) == 1
""")


def test_what_is_fetched_or_read_by_others_is_made():
    run(CHAINS + """
def make(x):
    a = L.relu(x)
    b = L.square(a)
    c = L.sigmoid(b)
    return [a, b, c, L.tanh(c)]
compare(make, 1, 3, {"x": random(7, 5)})
compare(lambda x: make(x)[1:2], 1, None, {"x": random(7, 5)})
def read(x):
    h = L.sigmoid(L.relu(x))
    return [L.elementwise_add(L.softmax(h), L.tanh(h))]
compare(read, 1, None, {"x": random(7, 5)})
""")


def test_what_the_cpu_is_to_run_stays():
    run(CHAINS + """
def make(x):
    with fluid.device_guard("cpu"):
        h = L.tanh(x)
    return [L.square(L.relu(h))]
x = random(7, 5)
(got,), text = step({"x": x}, make, fluid.CUDAPlace(0))
assert fused(text) == 1 and re.search("on the CPU: tanh", text), text
np.testing.assert_allclose(got, np.square(np.maximum(np.tanh(x), 0)), rtol=1e-5)
""")


@pytest.mark.parametrize("lanes", [0, 1])
def test_a_chain_of_a_thousand_operators_is_few_launches(lanes):
    run(CHAINS + """
def make(x):
    y = x
    for _ in range(500):
        y = L.elementwise_add(L.scale(y, 0.5), x)
    return [y]
for rows in 1, 300:
    text = compare(make, 2, 998, {"x": random(rows, 1)})
    assert re.search(r"[0-9] graphs?, launched", text), text
""", simdevice_lanes=lanes)


def test_large_tensors_have_several_elements_per_lane():
    run(CHAINS + """
def make(x, b):
    h = L.elementwise_mul(L.elementwise_add(L.relu(x), b), x)
    return [h, L.reduce_mean(L.gelu(L.elementwise_div(L.elementwise_sub(L.tanh(h), x), L.exp(h))))]
for rows, width in (100001, 3), (1 << 17, 2), (2, 1 << 17):
    text = compare(make, None, None, {"x": random(rows, width), "b": random(width)},
                   shapes={"x": [None, width], "b": [width]})
    assert fused(text) > 0, text
def loss(x):
    return [L.reduce_mean(L.square(L.elementwise_mul(L.sigmoid(x), L.scale(x, 0.3, 0.1))))]
compare(lambda x: loss(x) + fluid.gradients(loss(x), [x]), None, None, {"x": random(100001, 3)})
""")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_16_bit_floats_are_rounded_after_each_step(dtype):
    run(CHAINS + """
def make(x, b):
    y = L.relu(L.elementwise_add(L.elementwise_mul(L.scale(x, 1.7, 0.3), x), b))
    s = L.sum([y, x, L.gelu(y), L.tanh(x), L.elementwise_div(x, L.exp(y))])
    z = L.clip(L.elementwise_sub(s, y), -0.7, 2.1)
    return [z, fluid.gradients(L.reduce_mean(z), [x])[0]]

for rows, width in (1, 1), (7, 5), (100001, 3), (1 << 15, 8):
    how = dict(shapes={"x": [None, width], "b": [width]}, low="%s")
    feed = {"x": random(rows, width), "b": random(width)}
    got, text = step(feed, make, fluid.CUDAPlace(0), **how)
    fluid.set_flags({"FLAGS_disable_passes": "fuse_elementwise"})
    apart, plain = step(feed, make, fluid.CUDAPlace(0), **how)
    fluid.set_flags({"FLAGS_disable_passes": ""})
    assert fused(text) >= 2 and nodes(plain) - nodes(text) >= 10, text
    assert "on the CPU: none" in text and "%s" in text, text
    for a, b in zip(got, apart):
        assert a.tobytes() == b.tobytes(), (a, b)
""" % (dtype, dtype))


def test_results_that_many_steps_wait_for_are_cut():
    """Of a node's results, 16 can wait for later steps; more of them make another node."""
    run(CHAINS + """
for wide in 5, 15, 16, 17, 40:
    def make(x):
        many = [L.scale(x, 0.1 * k, 0.5) for k in range(wide)]
        many = [L.tanh(h) for h in many]
        y = x
        for h in many:
            y = L.elementwise_mul(L.elementwise_add(y, h), h)
        return [y]
    compare(make, None, None, {"x": random(3, 4)})
def inputs(x):
    y = L.relu(x)
    for k in range(60):
        y = L.elementwise_add(y, L.create_parameter([4], "float32"))
    return [y]
compare(inputs, 3, None, {"x": random(3, 4)})
""")


def test_results_that_stay_in_memory_are_cut():
    """A launch leaves at most 128 results in memory, here those of tanh, of a chain that may be longer."""
    run(CHAINS + """
for many, changes in (64, 1), (65, 1), (127, 1), (129, 2), (200, 2):
    def make(x):
        kept, y = [], x
        for k in range(many):
            y = L.tanh(L.scale(y, 1.0 + 0.1 * k))
            kept.append(y)
        return kept
    text = compare(make, changes, None, {"x": random(3, 4)})
def alternating(x):
    "Those that another kernel reads stay there, too; what the launch itself reads does not."
    kept, y = [], x
    for k in range(150):
        y = L.scale(y, 0.9, 0.01)
        kept.append(L.reduce_sum(L.tanh(y)))
    return kept
compare(alternating, 2, None, {"x": random(3, 4)})
""")


def test_kernels_that_are_not_made_are_told_once():
    text = CHAINS + """
for k in range(3):
    compare(lambda x: [L.tanh(L.scale(x, 0.5 + k))], 1, 1, {"x": random(3, 4)})
"""
    told = "anabranch: simdevice compiles no kernels for chains of operators, which read their steps from tables: "
    assert run(text, simdevice_compiles=0).count(told) == 1
    assert told not in run(text)
    assert told not in run(text, simdevice_compiles=0, device_compile=0)


@pytest.mark.parametrize("reduce", ["AllReduce", "Reduce"])
def test_two_devices_fuse_the_chains_of_both(reduce):
    run(CHAINS + """
def learn():
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 7
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        make = trained(lambda x, p: L.square(L.sigmoid(L.elementwise_add(L.tanh(x), p(5)))))
        loss = make(fluid.data("x", [None, 5]))[1]
        fluid.optimizer.SGD(0.1).minimize(loss)
    exe, scope, build = fluid.Executor(fluid.CUDAPlace(0)), fluid.Scope(), fluid.BuildStrategy()
    build.reduce_strategy = fluid.BuildStrategy.ReduceStrategy.%s
    with fluid.scope_guard(scope):
        exe.run(startup)
        compiled = fluid.CompiledProgram(main).with_data_parallel(loss.name, build, places=fluid.cuda_places())
        losses = [exe.run(compiled, feed={"x": random(8, 5)}, fetch_list=[loss])[0].tobytes() for k in range(4)]
    return losses, compiled.explain()
losses, text = learn()
assert fused(text) >= 4, text
fluid.set_flags({"FLAGS_disable_passes": "fuse_elementwise"})
assert learn()[0] == losses
""" % reduce, simdevice_devices=2)
