"""batch_norm, what is added to it and relu in one launch on a simulated device, forward and backward: the bits of the
operators by themselves."""
import pytest
from device_runs import pytestmark, run  # noqa: F401
from device_texts import NORM, TRAINED

ADDED = NORM + """
def sums(text):
    "Forward, gradients, those of them with a sum of gradients, and those that do not write the gradient of z."
    found = re.search("sum before relu: (\\\\d+) forward, (\\\\d+) backward, (\\\\d+) of these with two", text)
    by_y = re.search("gradients of relu: \\\\d+ from X, (\\\\d+) from Y", text)
    return tuple(map(int, found.groups() if found else "000")) + (int(by_y[1]) if by_y else 0,)

def added(y, z):
    return L.elementwise_add(y, z)

def turned(y, z):
    return L.elementwise_add(z, y)

def program(shape, dtype, low=None, edit=None, dx=True, dz=True, join=added, two=False, fetch=(), narrow=None,
            rows=None, of_x=False, **norm):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        shape = [rows] + shape[1:]
        x, weight = fluid.data("x", shape, dtype), fluid.data("weight", shape, dtype)
        z = fluid.data("z", shape[-narrow:] if narrow else shape, dtype)
        x.stop_gradient, z.stop_gradient = not dx, not dz
        other = L.scale(x if of_x else z, 2.0)
        other.stop_gradient = not dz
        y = L.batch_norm(x, param_attr="scale", bias_attr="bias", **norm)
        out = L.relu(join(y, other))
        loss = L.reduce_sum(L.elementwise_mul(out, weight))
        if two:
            loss = L.elementwise_add(loss, L.reduce_sum(L.sigmoid(out)))
        grads = fluid.backward.append_backward(loss)
        got = [out.name] + [g.name for _, g in grads]
        got += [v.name + "@GRAD" for v, trained in ((x, dx), (z, dz and not of_x)) if trained]
        norm = next(op for op in main.global_block().ops if op.type == "batch_norm")
        got += [norm.output(slot)[0] for slot in ("MeanOut", "SavedMean", "SavedVariance")] + list(fetch)
    for op in main.global_block().ops:
        if low:
            op._set_attr("mixed_precision", low)
    if edit:
        edit(main.global_block())
    return main, startup, got

def feed_of(shape, dtype="float32", special=False):
    feed = batch(shape, dtype, special)
    r = np.random.RandomState(5)
    z = r.normal(0, 1, shape).astype(dtype)
    z[r.uniform(size=shape) < 0.2] = -0.0
    z[..., 0] = np.where(z[..., 0] > 0, 1e-8, 0)  # with y of that channel: no number of float16
    if special:
        z.reshape(-1)[3::13], z.reshape(-1)[4::13], z.reshape(-1)[6::17] = np.inf, -np.inf, np.nan
    return dict(feed, z=z)

def nodes(text):
    return int(re.search("(\\\\d+) nodes on", text)[1])

def alike(feed, found=(1, 1, 0, 0), on_device=True, **made):
    "The bits of the operators apart; what comes out."
    made.setdefault("rows", len(feed["x"]))
    got, text = outcome(feed, "", **made)
    assert sums(text) == found, text
    apart, plain = outcome(feed, "fuse_bn_act", **made)
    assert "ops run on a device; on the CPU: none" in text or not on_device, text
    assert sums(plain) == (0, 0, 0, 0)
    if any(found):
        assert nodes(plain) - nodes(text) == 2 * found[0] + 2 * found[1] + found[2] + 2 * found[3], text
    for a, b in zip(got, apart):
        assert a.dtype == b.dtype and a.shape == b.shape and (np.isnan(a) == np.isnan(b)).all(), (a, b)
        assert np.where(np.isnan(a), 0, a).tobytes() == np.where(np.isnan(b), 0, b).tobytes(), (a, b)
    return got
"""
SHAPES = [(6, 5, 4, 5), (6, 5, 4, 16), (700, 7), (40, 24), (3, 2, 2, 3, 8)]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("special", [False, True], ids=["numbers", "special"])
def test_bits_are_those_of_the_operators_apart(dtype, special):
    """Packs of one and of several, a matrix, rows for several chunks; NaN and infinite values on both sides, -0.0, and
    sums that float16 has no number for."""
    run(ADDED + f"""
wide = "float64" if "{dtype}" == "float64" else "float32"
made = {{"low": "{dtype}" if "{dtype}".endswith("16") else None}}
for shape in {SHAPES}:
    made.update({{"data_layout": "NHWC"}} if len(shape) > 2 else {{}})
    feed = feed_of(shape, wide, {special})
    for join in (added, turned):
        got = alike(feed, join=join, **made)
        assert (got[0] == 0).any() and (got[0] > 0).any() and np.isnan(got[0]).any() == {special}, got[0]
    alike(feed, (1, 1, 1, 0), two=True, **made)
    alike(feed, (1, 1, 1, 0), two=True, dx=False, **made)
    alike(feed, dx=False, **made)
    alike(feed, (1, 0, 0, 1), dz=False, join=turned, **made)
    alike(feed, (1, 0, 0, 1), dz=False, two=True, **made)
    if not {special}:
        got = alike(feed, (1, 1, 1, 0), two=True, **made)
        expected, text = outcome(feed, "", fluid.CPUPlace(), two=True, rows=len(feed["x"]),
                                 **{{k: v for k, v in made.items() if k != "low"}})
        assert sums(text) == (0, 0, 0, 0), text
        for a, b in zip(got, expected):
            a, b = a[..., 1:], b[..., 1:]
            bound = np.abs(b).max() * (0.1 if made["low"] else 1e-3)
            assert (np.abs(a - b) > bound).mean() < 0.05, (shape, np.abs(a - b).max(), bound)
""")


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_one_element_a_channel_passes_and_an_empty_batch(dtype):
    run(ADDED + f"""
made = {{"low": "{dtype}" if "{dtype}".endswith("16") else None}}
for rows in (1, 0):
    for channels in (7, 16):
        feed = feed_of((rows, channels), "float64" if "{dtype}" == "float64" else "float32")
        got = alike(feed, **made)
        alike(feed, (1, 1, 1, 0), two=True, **made)
        alike(feed, dx=False, join=turned, **made)
        alike(feed, (1, 0, 0, 1), dz=False, **made)
        if rows:
            np.testing.assert_allclose(got[0], np.maximum(feed["x"] + 2 * feed["z"], 0), rtol=0.02, atol=0.02)
            assert (got[0] > 0).any()
""")


def test_an_output_with_another_reader_keeps_them_apart():
    run(ADDED + """
feed = feed_of((40, 24))
main, _, _ = program([40, 24], "float32", rows=40)
ops = {op.type: op for op in main.global_block().ops}
y, = ops["batch_norm"].output("Y")
total, = ops["elementwise_add"].output("Out")
alike(feed, (0, 1, 0, 0), fetch=[y])
alike(feed, (0, 1, 0, 0), fetch=[total])
alike(feed, (1, 0, 0, 0), fetch=[total + "@GRAD"])
alike(feed, (1, 0, 0, 0), fetch=[y + "@GRAD"])
alike(feed, (1, 1, 0, 0), two=True, fetch=[ops["relu"].output("Out")[0] + "@GRAD"])

alike(feed, (0, 0, 0, 0), join=lambda y, z: L.elementwise_add(y, y), dz=False)
alike(feed, (0, 0, 0, 0), join=lambda y, z: L.elementwise_add(L.elementwise_add(y, z), y))
""")


def test_what_is_repeated_or_may_be_stays_apart():
    run(ADDED + """
alike(dict(feed_of((40, 24)), z=np.ones(24, "float32")), (0, 0, 0, 0), narrow=1)
alike(dict(feed_of((6, 5, 4, 8)), z=np.ones((4, 8), "float32")), (0, 0, 0, 0), narrow=2, data_layout="NHWC")
for z in (feed_of((6, 8))["z"], np.ones((1, 8), "float32")):  # rows that no pass knows
    alike(dict(feed_of((6, 8)), z=z), (0, 0, 0, 0), rows=None)
for join in (added, turned):
    alike(feed_of((6, 8)), join=join, rows=None, of_x=True)
    alike(feed_of((6, 8)), join=lambda y, z: join(y, y.block.var("x")), rows=None, dz=False)
later = lambda y, z: L.elementwise_add(y, L.scale(y.block.var("x"), 2.0))  # z is not there yet where batch_norm runs
alike(feed_of((6, 8)), (0, 1, 0, 0), join=later, rows=None, dz=False)
""")


def test_what_the_library_computes_stays_apart():
    run(ADDED + """
feed = feed_of((4, 3, 5, 3))
for norm in ({}, {"data_layout": "NHWC", "use_global_stats": True}, {"data_layout": "NHWC", "is_test": True}):
    alike(feed, (0, 0, 0, 0), **norm)
def guarded(block):
    for op in block.ops:
        if op.type.startswith("elementwise_add"):
            op._set_attr("op_device", "cpu")
alike(feed_of((9, 4)), (0, 0, 0, 0), on_device=False, edit=guarded)
""")


@pytest.mark.parametrize("half", [None, "bfloat16", "float16"])
@pytest.mark.parametrize("devices", [1, 2])
def test_a_residual_net_as_users_write_it(half, devices):
    """Channels first, rows of any number: a block whose shortcut is normalized, too, and two with what came before.
    Later steps launch graphs."""
    run(TRAINED + f"""
fluid.set_flags({{"FLAGS_enable_cublas_tensor_op_math": True, "FLAGS_device_graphs": 2}})
def normal(h, channels, kernel, act=None):
    h = L.conv2d(h, channels, kernel, padding=kernel // 2, bias_attr=False)
    return L.batch_norm(h, act=act)
def net():
    x, y = fluid.data("x", [None, 1, 12, 12]), fluid.data("y", [None, 1], dtype="int64")
    h = normal(x, 8, 3, "relu")
    for block in range(3):
        short = normal(h, 16, 1) if block == 0 else h
        h = normal(normal(h, 8, 3, "relu"), 16, 1)
        h = L.elementwise_add(h, short, act="relu") if block < 2 else L.relu(L.elementwise_add(short, h))
    return L.mean(L.softmax_with_cross_entropy(L.fc(L.pool2d(h, pool_type="avg", global_pooling=True), 4), y))
def trained(passes):
    fluid.set_flags({{"FLAGS_disable_passes": passes}})
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 5
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        loss = net()
        optimizer = fluid.optimizer.Momentum(0.1, 0.9)
        if {half!r}:
            optimizer = fluid.contrib.mixed_precision.decorate(optimizer, init_loss_scaling=1.0,
                                                               use_dynamic_loss_scaling=False, dtype={half!r})
        optimizer.minimize(loss)
    exe, scope = fluid.Executor(DEVICE), fluid.Scope()
    with fluid.scope_guard(scope):
        exe.run(startup)
        compiled = fluid.CompiledProgram(main)
        if {devices} > 1:
            compiled = compiled.with_data_parallel(loss.name, places=fluid.cuda_places(list(range({devices}))))
        losses = [exe.run(compiled, feed=batch_of_images(k % 3), fetch_list=[loss])[0] for k in range(6)]
        kept = {{v.name: np.array(scope.find_var(v.name).get_tensor()) for v in main.list_vars()
                if v.persistable and scope.find_var(v.name)}}
    return np.array(losses), kept, compiled.explain()
losses, kept, text = trained("")
found = re.search("sum before relu: (\\\\d+) forward, (\\\\d+) backward, (\\\\d+) of these with two", text)
assert found and tuple(map(int, found.groups())) == tuple({devices} * n for n in (3, 3, 2)), text
assert re.search("fuse_bn_act +applied, %d changes" % (14 * {devices}), text), text
assert int(re.search("graphs?, launched (\\d+) times?", text)[1]) > 0, text
apart, kept_apart, text = trained("fuse_bn_act")
assert "fuse_bn_act      skipped" in text, text
assert np.isfinite(losses).all() and losses.tobytes() == apart.tobytes(), (losses, apart)
assert all(np.array_equal(kept[name], kept_apart[name]) for name in kept) and len(kept) > 20
""", simdevice_devices=devices)


@pytest.mark.parametrize("sync", [False, True])
def test_statistics_of_all_devices_are_left_to_their_pass(sync):
    run(ADDED + f"""
main, startup, fetch = program([8, 3, 2, 8], "float32", of_x=True, data_layout="NHWC")
build = fluid.BuildStrategy()
build.sync_batch_norm = {sync}
for places in ([0], [0, 1]):
    exe = fluid.Executor(fluid.CUDAPlace(0))
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        both = fluid.CompiledProgram(main).with_data_parallel(fetch[0], build, places=fluid.cuda_places(places))
        exe.run(both, feed=feed_of((8, 3, 2, 8)), fetch_list=fetch)
        text = both.explain()
    synced = {sync} and len(places) == 2
    assert sums(text) == ((0, 0, 0, 0) if synced else (len(places), len(places), 0, 0)), text
    assert ("rounds of sums" in text) == synced, text
""", simdevice_devices=2)
