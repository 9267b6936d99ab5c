"""Kernels of devices for many elements, which go about it otherwise than for few: by eights of 16 bits, by columns, by
many lanes for one row of a table. The same values, on a simulated device."""
from device_runs import pytestmark, run  # noqa: F401

MANY = 1 << 18  # ops/device/pack.h

NARROW = """
L, MANY = fluid.layers, %d

def narrow(program):
    "All operators in bfloat16, as a decorated optimizer marks them."
    for op in program.global_block().ops:
        op._set_attr("mixed_precision", "bfloat16")

def outcome(make, feed, place):
    "What `make(x)` gives for a batch, and the gradient of its first result by x."
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 3
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [None] + list(feed.shape[1:]))
        x.stop_gradient = False
        made = make(x)
        fetched = list(made) + fluid.gradients([made[0]], [x])
    narrow(main)
    exe, scope = fluid.Executor(place), fluid.Scope()
    with fluid.scope_guard(scope):
        exe.run(startup)
        return exe.run(main, feed={"x": feed}, fetch_list=fetched)
""" % MANY


def test_sixteen_bits_by_eights_are_those_one_by_one():
    run(NARROW + """
def make(x):
    y = L.gelu(L.relu(x))
    return [L.elementwise_add(L.elementwise_mul(y, x), y), L.sums([y, x]), L.sums([y, x, y, x, x]), L.sigmoid(x)]
rows = MANY // 128 + 64
feed = np.random.RandomState(0).normal(0, 1, (rows, 128)).astype("float32")
whole = outcome(make, feed, fluid.CUDAPlace(0))
chunk = MANY // 128 // 2  # fewer than MANY elements
for begin in range(0, rows, chunk):
    for a, b in zip(whole, outcome(make, feed[begin:begin + chunk], fluid.CUDAPlace(0))):
        assert np.array_equal(a[begin:begin + chunk], b), begin
exact = outcome(make, feed, fluid.CPUPlace())
assert not np.array_equal(whole[0], exact[0])  # the device rounded to 16 bits
for a, b in zip(whole, exact):
    np.testing.assert_allclose(a, b, atol=0.06, rtol=0.03)
""")


def test_rows_that_lanes_hold_are_the_same_with_others_and_alone():
    run(NARROW + """
def make(x):
    h = L.layer_norm(x, begin_norm_axis=1)
    return [L.square(L.softmax(h)), h]
for width in (128, 768, 130, 1032):  # the last two are not held
    feed = np.random.RandomState(width).normal(0, 2, (50, width)).astype("float32")
    whole, exact = (outcome(make, feed, place) for place in (fluid.CUDAPlace(0), fluid.CPUPlace()))
    for a, b in zip(whole, outcome(make, feed[7:8], fluid.CUDAPlace(0))):
        assert np.array_equal(a[7:8], b), width
    for a, b in zip(whole, exact):
        np.testing.assert_allclose(a, b, atol=0.01 * np.abs(b).max(), rtol=0.03)
""")


def test_dropout_by_eights_draws_as_the_cpu():
    run(NARROW + """
def make(x):
    return [L.dropout(x, 0.25, dropout_implementation="upscale_in_train")]
feed = np.random.RandomState(1).uniform(1, 2, (MANY // 64, 64)).astype("float32")
(there, slope), (here, slope_here) = (outcome(make, feed, place) for place in (fluid.CUDAPlace(0), fluid.CPUPlace()))
assert ((there == 0) == (here == 0)).all() and 0.24 < (there == 0).mean() < 0.26
np.testing.assert_allclose(there, here, rtol=0.01)
np.testing.assert_allclose(slope, slope_here, rtol=0.01)
""")


def test_many_rows_of_columns_and_heads():
    """Gradients of biases, layer norm and batch norm with channels last sum up columns; heads are copied by eights."""
    run("""
L, rows = fluid.layers, 6000

def trained(place):
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 5
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [None, 8, 16])
        h = L.fc(x, 96, num_flatten_dims=2)
        h = L.transpose(L.reshape(h, [0, 8, 4, 24]), [0, 2, 1, 3])
        h = L.layer_norm(L.reshape(h, [-1, 768]), begin_norm_axis=1)
        h = L.batch_norm(L.fc(h, 56), act="relu")
        loss = L.mean(L.square(L.fc(h, 3)))
        fluid.optimizer.SGD(0.1).minimize(loss)
    exe, scope = fluid.Executor(place), fluid.Scope()
    with fluid.scope_guard(scope):
        exe.run(startup)
        feed = {"x": np.random.RandomState(0).normal(0.3, 1, (rows, 8, 16)).astype("float32")}
        losses = [exe.run(main, feed=feed, fetch_list=[loss])[0].item() for _ in range(2)]
        return losses, {p.name: np.array(scope.find_var(p.name).get_tensor()) for p in main.list_vars() if p.persistable
                        and scope.find_var(p.name) and "learning" not in p.name and p.name not in ("feed", "fetch")}
(losses, there), (expected, here) = trained(fluid.CUDAPlace(0)), trained(fluid.CPUPlace())
np.testing.assert_allclose(losses, expected, rtol=1e-5)
assert len(here) >= 12
for name in here:
    np.testing.assert_allclose(there[name], here[name], rtol=2e-4, atol=2e-6, err_msg=name)
""")


def test_a_row_that_most_of_a_batch_is_for():
    run("""
def table(place):
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 2
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        ids = fluid.data("ids", [None, 1], "int64")
        rows = fluid.embedding(ids, [40, 6], is_sparse=True)
        loss = fluid.layers.mean(fluid.layers.square(fluid.layers.fc(rows, 3, num_flatten_dims=2)))
        fluid.optimizer.Adam(0.05, lazy_mode=True).minimize(loss)
    exe, scope = fluid.Executor(place), fluid.Scope()
    with fluid.scope_guard(scope):
        exe.run(startup)
        for step in range(3):
            drawn = np.random.RandomState(step).randint(0, 40, (900, 1))
            drawn[100:600] = 7       # groups of 128 and fewer are summed up by one thread
            drawn[600:729 + step] = 30
            exe.run(main, feed={"ids": drawn}, fetch_list=[loss])
        return np.array(scope.find_var("embedding_0.w_0").get_tensor())
there, here = table(fluid.CUDAPlace(0)), table(fluid.CPUPlace())
np.testing.assert_allclose(there, here, rtol=1e-4, atol=1e-5)
""")


def test_largest_elements_of_many_windows():
    """Gradients of equal elements go to the first one, by 32-bit places as by 64-bit ones."""
    run("""
def pooled(place):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [None, 3, 9, 10])
        x.stop_gradient = False
        y = fluid.layers.pool2d(x, 3, "max", 2, 1)
        slope, = fluid.gradients([fluid.layers.square(y)], [x])
    feed = {"x": np.random.RandomState(4).randint(0, 3, (5, 3, 9, 10)).astype("float32")}
    return fluid.Executor(place).run(main, feed=feed, fetch_list=[y, slope])
for a, b in zip(pooled(fluid.CUDAPlace(0)), pooled(fluid.CPUPlace())):
    np.testing.assert_array_equal(a, b)
""")
