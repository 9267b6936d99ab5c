"""Networks of images and of sequences on a simulated device: they learn what they learn on the CPU."""
import pytest
from device_runs import pytestmark, run  # noqa: F401

IMAGES = """
def images():
    x, y = fluid.data("x", [None, 3, 8, 8]), fluid.data("y", [None, 1], dtype="int64")
    h = fluid.layers.conv2d(x, 8, 3, padding=1, bias_attr=False)
    h = fluid.layers.batch_norm(h, act="relu")
    h = fluid.layers.pool2d(h, 2, pool_stride=2)
    h = fluid.layers.conv2d(h, 8, 3, padding=1, groups=8, use_cudnn=False)
    h = fluid.layers.pool2d(fluid.layers.image_resize(h, [6, 6]), pool_type="avg", global_pooling=True)
    return fluid.layers.mean(fluid.layers.softmax_with_cross_entropy(fluid.layers.fc(h, 4), y))

def batch_of_images(step):
    r = np.random.RandomState(step)
    x = r.rand(8, 3, 8, 8).astype("float32")
    return {"x": x, "y": (x.mean((1, 2, 3)) > 0.5).astype("int64")[:, None]}
"""
WORDS = """
def words():
    x, y = fluid.data("x", [None, 1], dtype="int64", lod_level=1), fluid.data("y", [None, 1])
    h = fluid.layers.embedding(x, [30, 6], padding_idx=3)
    h = fluid.layers.sequence_conv(h, 8, 3, act="relu")
    weight = fluid.layers.sequence_softmax(fluid.layers.fc(h, 1))
    pooled = fluid.layers.sequence_pool(fluid.layers.elementwise_mul(h, weight, axis=0), "sum")
    h = h + fluid.layers.sequence_expand(pooled, x)
    h = fluid.layers.sequence_pool(h, "max")
    return fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(h, 1), y))

def batch_of_words(step):
    r = np.random.RandomState(step)
    lengths = r.randint(1, 6, 5).tolist()
    ids = r.randint(0, 30, (sum(lengths), 1)).astype("int64")
    starts = np.cumsum([0] + lengths)
    y = np.array([[ids[a:b].mean() / 30] for a, b in zip(starts, starts[1:])], "float32")
    return {"x": fluid.create_lod_tensor(ids, [lengths], fluid.CPUPlace()), "y": y}
"""
LEARN = """
import re

def learn(make, batch, place, steps=12):
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 5
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        loss = make()
        fluid.optimizer.SGD(0.1).minimize(loss)
    exe, scope = fluid.Executor(place), fluid.Scope()
    with fluid.scope_guard(scope):
        exe.run(startup)
        losses = [exe.run(main, feed=batch(k), fetch_list=[loss])[0].item() for k in range(steps)]
        kept = [v.name for v in main.list_vars() if v.persistable and scope.find_var(v.name)]
        values = {name: np.array(scope.find_var(name).get_tensor()) for name in sorted(kept)}
    return losses, values, list(exe._bound.values())[-1].bound.engine.explain()
"""
OPS = {"images": "mul conv2d depthwise_conv2d batch_norm pool2d bilinear_interp",
       "words": "lookup_table sequence_conv sequence_softmax sequence_pool sequence_expand"}


@pytest.mark.parametrize("order", ["random", "starved"])
@pytest.mark.parametrize("net", ["images", "words"])
def test_a_network_learns_on_a_device_what_it_learns_on_the_cpu(net, order):
    run(IMAGES + WORDS + LEARN + f"""
losses, values, said = learn({net}, batch_of_{net}, fluid.CUDAPlace(0))
expected, cpu, _ = learn({net}, batch_of_{net}, fluid.CPUPlace())
np.testing.assert_allclose(losses, expected, rtol=2e-5)
assert losses[-1] < losses[0]
assert len(cpu) > 4
on_cpu = re.search("ops run on a device; on the CPU: (.*)", said)[1].split(", ")
for op in {OPS[net].split()!r}:
    assert op not in on_cpu and op + "_grad" not in on_cpu, on_cpu
for name in cpu:
    np.testing.assert_allclose(values[name], cpu[name], rtol=1e-4, atol=1e-6, err_msg=name)
""", simdevice_order=order)
