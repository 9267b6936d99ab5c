"""Parts of programs that several tests of devices run."""

NETS = """
import re

L = fluid.layers

def images():
    x, y = fluid.data("x", [None, 1, 12, 12]), fluid.data("y", [None, 1], dtype="int64")
    h = L.batch_norm(L.conv2d(x, 8, 3, padding=1, bias_attr=False), act="relu")
    h = L.pool2d(h, 2, pool_stride=2)
    h = L.elementwise_add(h, L.batch_norm(L.conv2d(h, 8, 3, padding=1, bias_attr=False)), act="relu")
    h = L.pool2d(h, pool_type="avg", global_pooling=True)
    return L.mean(L.softmax_with_cross_entropy(L.fc(h, 4), y))

def batch_of_images(step):
    r = np.random.RandomState(step)
    y = r.randint(0, 4, (16, 1))
    x = r.normal(0, 0.5, (16, 1, 12, 12))
    for k in range(16):
        x[k, 0, 3 * y[k, 0]:3 * y[k, 0] + 3] += 1
    return {"x": x.astype("float32"), "y": y.astype("int64")}

LENGTH, WIDTH, HEADS = 6, 16, 2

def heads(x):
    x = L.fc(x, WIDTH, num_flatten_dims=2)
    return L.transpose(L.reshape(x, [0, 0, HEADS, WIDTH // HEADS]), [0, 2, 1, 3])

def words():
    x, y = fluid.data("x", [None, LENGTH], dtype="int64"), fluid.data("y", [None, 1], dtype="int64")
    h = L.layer_norm(fluid.embedding(x, [20, WIDTH]), begin_norm_axis=2)
    weight = L.softmax(L.matmul(heads(h), heads(h), transpose_y=True, alpha=(WIDTH // HEADS) ** -0.5))
    seen = L.reshape(L.transpose(L.matmul(weight, heads(h)), [0, 2, 1, 3]), [0, 0, WIDTH])
    h = L.layer_norm(h + L.fc(seen, WIDTH, num_flatten_dims=2), begin_norm_axis=2)
    h = L.layer_norm(h + L.fc(L.fc(h, 32, num_flatten_dims=2, act="gelu"), WIDTH, num_flatten_dims=2),
                     begin_norm_axis=2)
    return L.mean(L.softmax_with_cross_entropy(L.fc(L.reduce_mean(h, dim=1), 2), y))

def batch_of_words(step):
    x = np.random.RandomState(step).randint(0, 20, (16, LENGTH))
    return {"x": x, "y": (x.mean(1) > 9.5).astype("int64")[:, None]}

def learn(make, batch, place, steps=20, rate=0.5, lists=None, **decorated):
    "Losses of the steps that were not skipped, scales of all, and what the plan says."
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 5
    amp = fluid.contrib.mixed_precision
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        loss = make()
        optimizer = fluid.optimizer.SGD(rate)
        fetch = [loss]
        if decorated:
            optimizer = amp.decorate(optimizer, lists, **decorated)
            fetch.append(optimizer.get_loss_scaling())
        optimizer.minimize(loss)
    exe, scope = fluid.Executor(place), fluid.Scope()
    losses, scales, skipped = [], [decorated.get("init_loss_scaling", 1.0)], []
    with fluid.scope_guard(scope):
        exe.run(startup)
        value = lambda: np.array(scope.find_var(main.all_parameters()[0].name).get_tensor())
        while len(losses) < steps:
            before = value()
            got = exe.run(main, feed=batch(len(losses)), fetch_list=fetch)
            scales.append(got[-1].item() if decorated else 1.0)
            skipped.append(bool((value() == before).all()))
            if not skipped[-1]:
                losses.append(got[0].item())
        assert all(np.array(scope.find_var(p.name).get_tensor()).dtype == "float32" for p in main.all_parameters())
    said = list(exe._bound.values())[-1].bound.engine.explain()
    return np.array(losses), np.array(scales), skipped, {
        t: set(re.search(f"in {t}: (.*)", said)[1].split(", ")) if f"in {t}: " in said else set()
        for t in ("float16", "bfloat16")}
"""


GRAPHS = """
import re

def dropped():
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 3
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x, y = fluid.data("x", [None, 13]), fluid.data("y", [None, 1])
        hidden = fluid.layers.dropout(fluid.layers.fc(x, 8, act="tanh"), 0.3)
        loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, 1), y))
        test = main.clone(for_test=True)
        fluid.optimizer.Adam(0.05).minimize(loss)
    return main, startup, test, loss

def rows(step, n):
    x = np.random.RandomState(step).rand(n, 13).astype("float32")
    return {"x": x, "y": x.sum(1, keepdims=True)}

class Run:
    def __init__(self, graphs, net=dropped, parallel=None):
        fluid.set_flags({"FLAGS_device_graphs": 2 if graphs else 0})
        self.main, startup, self.test, self.loss = net()
        self.exe, self.scope = fluid.Executor(fluid.CUDAPlace(0)), fluid.Scope()
        with fluid.scope_guard(self.scope):
            self.exe.run(startup)
        self.compiled = fluid.CompiledProgram(self.main)
        if parallel:
            build = fluid.BuildStrategy()
            build.reduce_strategy = getattr(fluid.BuildStrategy.ReduceStrategy, parallel)
            self.compiled = self.compiled.with_data_parallel(self.loss.name, build, places=fluid.cuda_places())
        self.out = []
    def __call__(self, feed, program=None, fetch=()):
        with fluid.scope_guard(self.scope):
            self.out += self.exe.run(program or self.compiled, feed=feed, fetch_list=[self.loss, *fetch])
    def tensor(self, number=0):
        return self.scope.find_var(self.main.all_parameters()[number].name).get_tensor()
    def launched(self):
        return tuple(map(int, re.search("in (\\\\d+) graphs?, launched (\\\\d+) times?",
                                        self.compiled.explain()).groups()))

# act(run) does the same with graphs and without; with at least `least` launches of graphs.
def equal_bits(act, least, **made):
    runs = []
    for graphs in (True, False):
        runs.append(Run(graphs, **made))
        act(runs[-1])
        with fluid.scope_guard(runs[-1].scope):
            runs[-1].out += [np.array(runs[-1].tensor(k)) for k in range(2)]
    with_graphs, without = runs
    assert len(with_graphs.out) == len(without.out)
    for k, (a, b) in enumerate(zip(with_graphs.out, without.out)):
        assert np.array_equal(a, b), (k, a, b)
    assert with_graphs.launched()[1] >= least, with_graphs.compiled.explain()
    assert "graphs" not in without.compiled.explain()
    return with_graphs
"""


TRAINED = NETS + """
def said(what="channels_last"):
    text = list(exe_of_last._bound.values())[-1].bound.engine.explain()
    found = re.search(what + r" +applied, (\\d+) changes?.*\\n +(\\d+) images?, (\\d+) reorders?", text)
    return tuple(map(int, found.groups())) if found else (0, 0, 0)

def train(make, feeds, place, half=None, off=False, fetch=()):
    "Losses, what else is fetched of the last step, parameters."
    global exe_of_last
    fluid.set_flags({"FLAGS_disable_passes": "channels_last" if off else ""})
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 5
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        loss = make()
        optimizer = fluid.optimizer.Momentum(0.1, 0.9)
        if half:
            optimizer = fluid.contrib.mixed_precision.decorate(optimizer, init_loss_scaling=1.0,
                                                               use_dynamic_loss_scaling=False, dtype=half)
        optimizer.minimize(loss)
    exe_of_last, scope = fluid.Executor(place), fluid.Scope()
    with fluid.scope_guard(scope):
        exe_of_last.run(startup)
        got = [exe_of_last.run(main, feed=f, fetch_list=[loss, *fetch]) for f in feeds]
        kept = {v.name: np.array(scope.find_var(v.name).get_tensor()) for v in main.list_vars()
                if v.persistable and scope.find_var(v.name)}
    return [g[0].item() for g in got], got[-1][1:], kept

def alike(a, b, rtol):
    np.testing.assert_allclose(a[0], b[0], rtol=rtol)
    for x, y in zip(a[1], b[1]):
        np.testing.assert_allclose(x, y, rtol=rtol, atol=rtol)
    assert a[2].keys() == b[2].keys()
    for name in a[2]:
        np.testing.assert_allclose(a[2][name], b[2][name], rtol=rtol, atol=rtol, err_msg=name)

FEEDS = [batch_of_images(k) for k in range(3)]
DEVICE = fluid.CUDAPlace(0)

def wider():
    "Bias on axis 1, a residual of unknown extents, what else reads an image: a concat, a mean of it, a dropout."
    x, y = fluid.data("x", [None, 1, None, None]), fluid.data("y", [None, 1], dtype="int64")
    h = L.conv2d(x, 8, 3, padding=1, act="relu", name="first")
    g = L.conv2d(h, 8, 3, padding=1, groups=2, act="leaky_relu")
    h = L.concat([h, L.dropout(h + g, 0.3, seed=7)], axis=1)
    h = L.pool2d(L.conv2d(h, 6, 3, stride=2, bias_attr=False), 2, pool_type="avg")
    scale = L.sigmoid(L.fc(L.reduce_mean(h, dim=[2, 3]), 6))
    h = L.elementwise_mul(h, scale, axis=0)
    h = L.pool2d(L.batch_norm(L.conv2d(h, 8, 1)), pool_type="max", global_pooling=True)
    return L.mean(L.softmax_with_cross_entropy(L.fc(h, 4), y))
"""


NORM = """
import re

L = fluid.layers

def said(exe):
    return list(exe._bound.values())[-1].bound.engine.explain()

def fused(text):
    return int(re.search("fuse_bn_act +applied, (\\\\d+) changes?", text)[1])

def without(name=""):
    "Chains of elementwise operators would fuse relus that are left, and gradients of sums may have no node."
    fluid.set_flags({"FLAGS_disable_passes": "fuse_elementwise,share_sum_gradients," + name})

def program(shape, dtype, low=None, edit=None, dx=True, **norm):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x, weight = fluid.data("x", shape, dtype), fluid.data("weight", shape, dtype)
        x.stop_gradient = not dx
        y = L.batch_norm(x, param_attr="scale", bias_attr="bias", **norm)
        out = L.relu(y)
        loss = L.reduce_sum(L.elementwise_mul(out, weight))
        grads = fluid.backward.append_backward(loss)
        fetch = [out.name] + [g.name for _, g in grads] + (["x@GRAD"] if dx else [])
        fetch += [main.global_block().ops[0].output(slot)[0] for slot in ("MeanOut", "SavedMean", "SavedVariance")]
    for op in main.global_block().ops:
        if low:
            op._set_attr("mixed_precision", low)
    if edit:
        edit(main.global_block())
    return main, startup, fetch

def outcome(feed, passes, place=None, **made):
    without(passes)
    main, startup, fetch = program([None] + list(feed["x"].shape[1:]), str(feed["x"].dtype), **made)
    exe, scope = fluid.Executor(place or fluid.CUDAPlace(0)), fluid.Scope()
    with fluid.scope_guard(scope):
        exe.run(startup)
        r, channels = np.random.RandomState(1), main.global_block().var("scale").shape[0]
        scale, bias = r.normal(1, 1, channels), r.normal(0, 1, channels)
        scale[0], bias[0] = 1e-8, 0.0  # its results are so small that float16 has 0 for them
        for name, value in (("scale", scale), ("bias", bias)):
            scope.find_var(name).get_tensor().set(value.astype(feed["x"].dtype), fluid.CPUPlace())
        return exe.run(main, feed=feed, fetch_list=fetch), said(exe)

def batch(shape, dtype="float32", special=False):
    r = np.random.RandomState(len(shape))
    x, weight = r.normal(0.3, 2, shape).astype(dtype), r.normal(0, 1, shape).astype(dtype)
    x[r.uniform(size=shape) < 0.3] = -0.0
    if special:
        x[0, ..., 1] = np.nan
        weight.reshape(-1)[5::11] = np.inf
    return {"x": x, "weight": weight}

def compare(feed, changes=2, by="X", **made):
    "The bits of the operators apart, with this many nodes fewer; what comes out."
    got, text = outcome(feed, "", **made)
    assert fused(text) == changes, text
    if changes:
        assert f"gradients of relu: {int(by == 'X')} from X, {int(by == 'Y')} from Y" in text, text
    apart, plain = outcome(feed, "fuse_bn_act", **made)
    assert "ops run on a device; on the CPU: none" in text, text
    nodes = [int(re.search("(\\\\d+) nodes on", t)[1]) for t in (text, plain)]
    assert nodes[1] - nodes[0] == changes, nodes
    for a, b in zip(got, apart):
        assert a.dtype == b.dtype and a.shape == b.shape and (np.isnan(a) == np.isnan(b)).all(), (a, b)
        assert np.where(np.isnan(a), 0, a).tobytes() == np.where(np.isnan(b), 0, b).tobytes(), (a, b)
    return got
"""
