"""Sparse gradients on a simulated device: tables and sums of rows stay there, and the CPU sees them when asked."""
import pytest
from device_runs import pytestmark, run  # noqa: F401

NET = """
import re

def words(optimizer, shared=True, pooled=True, clip=None, reg=None, rows=40, seed=7):
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = seed
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        a, b = fluid.data("a", [None, 3], dtype="int64"), fluid.data("b", [None, 1], dtype="int64")
        c, y = fluid.data("c", [None, 1], dtype="int64", lod_level=1), fluid.data("y", [None, 1])
        table = lambda name: fluid.ParamAttr(name="table" if shared else name, regularizer=reg)
        parts = [fluid.layers.reshape(fluid.embedding(a, [rows, 4], is_sparse=True, padding_idx=2,
                                                      param_attr=table("ta")), [-1, 12]),
                 fluid.layers.reshape(fluid.embedding(b, [rows, 4], is_sparse=True, param_attr=table("tb")), [-1, 4])]
        if pooled:
            rows_of_c = fluid.layers.embedding(c, [rows, 4], is_sparse=True, param_attr=table("tc"))
            parts.append(fluid.layers.sequence_pool(rows_of_c, "average"))
        h = fluid.layers.fc(fluid.layers.concat(parts, axis=1), 8, act="tanh")
        loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(h, 1), y))
        if clip:
            fluid.clip.set_gradient_clip(clip)
        optimizer().minimize(loss)
    return main, startup, loss

def batch_of_words(step, n=16, rows=40):
    r = np.random.RandomState(step)
    lengths = r.randint(1, 4, n).tolist()
    c = r.randint(0, rows, (sum(lengths), 1)).astype("int64")
    a, b = r.randint(0, rows, (n, 3)).astype("int64"), r.randint(0, 6, (n, 1)).astype("int64")
    return {"a": a, "b": b, "c": fluid.create_lod_tensor(c, [lengths], fluid.CPUPlace()),
            "y": (a.sum(1, keepdims=True) / 60.0).astype("float32")}

def learn(place, optimizer, steps=6, fetch=(), feed=batch_of_words, **made):
    main, startup, loss = words(optimizer, **made)
    if not made.get("pooled", True):
        feed = lambda k, feed=feed: {n: v for n, v in feed(k).items() if n != "c"}
    exe, scope = fluid.Executor(place), fluid.Scope()
    with fluid.scope_guard(scope):
        exe.run(startup)
        got = [exe.run(main, feed=feed(k), fetch_list=[loss, *fetch]) for k in range(steps)]
        kept = sorted(v.name for v in main.list_vars() if v.persistable and scope.find_var(v.name))
        values = {name: np.array(scope.find_var(name).get_tensor()) for name in kept}
    return got, values, next(kept.bound.engine.explain() for kept in exe._bound.values() if kept.program is main)

def on_cpu(said):
    return re.search("ops run on a device; on the CPU: (.*)", said)[1]

def equal(optimizer, **made):
    got, values, said = learn(fluid.CUDAPlace(0), optimizer, **made)
    expected, cpu, _ = learn(fluid.CPUPlace(), optimizer, **made)
    for one, other in zip(got, expected):
        for x, z in zip(one, other):
            np.testing.assert_allclose(x, z, rtol=2e-5, atol=1e-6)
    assert cpu.keys() == values.keys()
    for name in cpu:
        np.testing.assert_allclose(values[name], cpu[name], rtol=1e-4, atol=1e-6, err_msg=name)
    return said
"""
OPTIMIZERS = """
fluid.optimizer.SGD(0.1)
fluid.optimizer.Momentum(0.05, 0.9)
fluid.optimizer.Momentum(0.05, 0.9, use_nesterov=True)
fluid.optimizer.Adagrad(0.1)
fluid.optimizer.Adam(0.05)
fluid.optimizer.Adam(0.05, lazy_mode=True)
fluid.optimizer.Adamax(0.05)
fluid.optimizer.RMSProp(0.02, centered=True, momentum=0.5)
fluid.optimizer.Ftrl(0.1, l1=0.01, l2=0.01)
fluid.optimizer.DecayedAdagrad(0.1)
fluid.optimizer.Adadelta(1.0)
""".split("\n")[1:-1]


@pytest.mark.parametrize("off", ["", "fuse_embeddings"])
@pytest.mark.parametrize("order", ["random", "starved"])
def test_every_rule_updates_rows_on_the_device_as_on_the_cpu(off, order):
    run(NET + f"""
for made in {OPTIMIZERS!r}:
    print(made)
    said = equal(lambda: eval(made), steps=4)
    # copy_value keeps Adamax's power of beta, whose shape it does not know before.
    assert on_cpu(said) == "none" or "Adamax" in made, on_cpu(said)
""", simdevice_order=order, disable_passes=off)


@pytest.mark.parametrize("off", ["", "fuse_embeddings"])
def test_a_table_never_travels(off):
    run(NET + """
said = equal(lambda: fluid.optimizer.Adam(0.01, lazy_mode=True), steps=20, rows=5000)
copies = re.findall(r"(\\d+) cop(?:y|ies) to the (device|host) for (\\w+)", said)
# The feed is copied to the device, the loss to the host.
assert sum(int(n) for n, way, _ in copies if way == "device") == 4, copies
assert [(n, op) for n, way, op in copies if way == "host"] == [("1", "mean")], copies
""", disable_passes=off)


@pytest.mark.parametrize("off", ["", "fuse_embeddings"])
def test_sparse_gradients_are_fetched_and_clipped(off):
    run(NET + """
sgd = lambda: fluid.optimizer.SGD(0.1)
equal(sgd, fetch=["table@GRAD"])
equal(sgd, fetch=["ta@GRAD", "tb@GRAD"], shared=False)
for clip in (fluid.clip.GradientClipByValue(0.01), fluid.clip.GradientClipByNorm(0.05),
             fluid.clip.GradientClipByGlobalNorm(0.1)):
    said = equal(sgd, clip=clip, fetch=["table@GRAD"])
    # The norm of several tensors is taken of rows as the CPU has them, however many there are.
    assert on_cpu(said) == "none" or "Global" in type(clip).__name__, on_cpu(said)
equal(sgd, reg=fluid.regularizer.L2Decay(0.1))
""", disable_passes=off)


@pytest.mark.parametrize("off", ["", "fuse_embeddings"])
def test_an_id_without_a_row_is_named(off):
    run(NET + """
def wrong(k):
    feed = batch_of_words(k)
    feed["b"][3] = 77
    return feed
try:
    learn(fluid.CUDAPlace(0), lambda: fluid.optimizer.SGD(0.1), feed=wrong)
    raise SystemExit("nothing was said")
except fluid.core.EnforceNotMet as e:
    said = str(e)
assert re.search("lookup_table_v2: an id of b must be a row of table, got 77|"
                 "fused_embedding_concat: an id of a, b, c must be a row of table, got 77", said), said
assert "made at <program>" in said and "in words()" in said, said
""", disable_passes=off)


@pytest.mark.parametrize("off", ["", "fuse_embeddings"])
def test_batches_without_ids(off):
    run(NET + """
def empty(k):
    feed = batch_of_words(k)
    if k % 2:
        feed["c"] = fluid.create_lod_tensor(np.zeros((0, 1), "int64"), [[0] * 16], fluid.CPUPlace())
        feed["a"][:] = 2  # its padding
    return feed
equal(lambda: fluid.optimizer.Adam(0.05), feed=empty)
equal(lambda: fluid.optimizer.Adagrad(0.05), feed=empty, shared=False)
""", disable_passes=off)


PARALLEL = """
def learn_apart(places, reduce, optimizer, steps=5):
    main, startup, loss = words(optimizer, pooled=False)
    exe, scope = fluid.Executor(places[0]), fluid.Scope()
    build = fluid.BuildStrategy()
    build.reduce_strategy = getattr(fluid.BuildStrategy.ReduceStrategy, reduce)
    with fluid.scope_guard(scope):
        exe.run(startup)
        compiled = fluid.CompiledProgram(main).with_data_parallel(loss.name, build, places=places)
        feed = lambda k: {n: v for n, v in batch_of_words(k).items() if n != "c"}
        losses = [exe.run(compiled, feed=feed(k), fetch_list=[loss])[0].mean().item() for k in range(steps)]
        values = {p.name: np.array(scope.find_var(p.name).get_tensor()) for p in main.all_parameters()}
    return losses, values
"""


@pytest.mark.parametrize("off", ["", "fuse_embeddings"])
@pytest.mark.parametrize("count", [2, 4])
def test_replicas_add_up_their_rows(count, off):
    run(NET + PARALLEL + f"""
for made in ("fluid.optimizer.SGD(0.1)", "fluid.optimizer.Adam(0.05)", "fluid.optimizer.Adagrad(0.1)"):
    optimizer = lambda: eval(made)
    losses, values = learn_apart(fluid.cuda_places(), "AllReduce", optimizer)
    same_losses, same = learn_apart(fluid.cuda_places(), "Reduce", optimizer)
    expected, cpu = learn_apart(fluid.cpu_places({count}), "AllReduce", optimizer)
    np.testing.assert_allclose(losses, expected, rtol=2e-5)
    assert losses == same_losses
    for name in cpu:
        assert (values[name] == same[name]).all(), name
        np.testing.assert_allclose(values[name], cpu[name], rtol=1e-4, atol=1e-6, err_msg=name)
""", simdevice_devices=count, disable_passes=off)
