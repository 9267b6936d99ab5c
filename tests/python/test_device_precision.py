"""mixed_precision.decorate on a simulated device: operators in 16 bits, float32 parameters, scales that move."""
import pytest
from test_devices import pytestmark, run  # noqa: F401

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
    said = list(exe._ready.values())[-1].engine.explain()
    return np.array(losses), np.array(scales), skipped, {
        t: set(re.search(f"in {t}: (.*)", said)[1].split(", ")) if f"in {t}: " in said else set()
        for t in ("float16", "bfloat16")}
"""
#: The ops that must run in 16 bits.
WHITE = {"images": "conv2d conv2d_grad batch_norm batch_norm_grad relu relu_grad pool2d pool2d_grad mul mul_grad "
                   "elementwise_add elementwise_add_grad",
         "words": "mul mul_grad matmul matmul_grad transpose2 transpose2_grad reshape2 reshape2_grad elementwise_add"}


@pytest.mark.parametrize("net", sorted(WHITE))
def test_float16_learns_what_float32_learns_with_steps_skipped(net):
    """The first scale is far above what gradients of float16 hold. Losses are off by 2 % at most."""
    run(NETS + f"""
expected, _, _, said = learn({net}, batch_of_{net}, fluid.CUDAPlace(0))
assert not said["float16"]
losses, scales, skipped, said = learn({net}, batch_of_{net}, fluid.CUDAPlace(0), init_loss_scaling=2.0 ** 26,
                                      decr_every_n_nan_or_inf=1, decr_ratio=0.25, incr_every_n_steps=6)
assert set({WHITE[net].split()!r}) <= said["float16"], said
assert not said["float16"] & {{"softmax", "softmax_with_cross_entropy", "mean", "layer_norm", "sgd"}}, said
assert skipped[0] and not skipped[-1], (skipped, scales)
shrunk = scales[1:] < scales[:-1]
assert shrunk.sum() > 1 and not (shrunk & ~np.array(skipped)).any(), (skipped, scales)
assert (scales[1:] > scales[:-1]).any(), scales
assert expected[-3:].mean() < 0.8 * expected[:3].mean(), expected
np.testing.assert_allclose(losses, expected, rtol=0.02, atol=0.01)
assert (losses != expected).any()
""")


@pytest.mark.parametrize("net", sorted(WHITE))
def test_bfloat16_learns_without_a_scale(net):
    run(NETS + f"""
expected = learn({net}, batch_of_{net}, fluid.CUDAPlace(0))[0]
losses, _, skipped, said = learn({net}, batch_of_{net}, fluid.CUDAPlace(0), init_loss_scaling=1.0,
                                 use_dynamic_loss_scaling=False, dtype="bfloat16")
assert set({WHITE[net].split()!r}) <= said["bfloat16"] and not said["float16"], said
assert not any(skipped)
np.testing.assert_allclose(losses, expected, rtol=0.1, atol=0.02)
assert (losses != expected).any()
""")


def test_lists_decide():
    """Black operators and those of black variables stay float32; so does everything without the pass."""
    run(NETS + """
lists = fluid.contrib.mixed_precision.AutoMixedPrecisionLists
def said(lists):
    return learn(images, batch_of_images, fluid.CUDAPlace(0), 1, lists=lists,
                 use_dynamic_loss_scaling=False)[3]["float16"]
assert not {"conv2d", "batch_norm", "relu"} & said(lists(custom_black_list=["conv2d"]))
assert "softmax_with_cross_entropy" in said(lists(custom_white_list=["softmax_with_cross_entropy"]))
assert "mul" not in said(lists(custom_black_varnames=["fc_0.w_0"]))
fluid.set_flags({"FLAGS_disable_passes": "mixed_precision"})
assert not said(lists())
""")


def test_a_value_is_cast_once_and_the_cpu_ignores_marks():
    run(NETS + """
def program():
    x = fluid.data("x", [4, 4])
    h = L.scale(x, 2.0)
    outs = [L.relu(h), L.tanh(h), L.sigmoid(L.relu(h)), L.exp(h)]
    for op in fluid.default_main_program().global_block().ops[1:-1]:
        op._set_attr("mixed_precision", "float16")
    return outs
x = np.linspace(-1, 1, 16).astype("float32").reshape(4, 4)
with fluid.program_guard(fluid.Program(), fluid.Program()):
    outs = program()
    here, there = (fluid.Executor(p) for p in (fluid.CPUPlace(), fluid.CUDAPlace(0)))
    cpu, device = here.run(feed={"x": x}, fetch_list=outs), there.run(feed={"x": x}, fetch_list=outs)
    assert cpu[1].dtype == device[1].dtype == np.float32
    assert np.abs(cpu[1] - np.tanh(2 * x)).max() < 5e-7
    assert (device[1] == device[1].astype("float16")).all() and not (cpu[1] == cpu[1].astype("float16")).all()
    text = next(iter(there._ready.values())).engine.explain()
    assert "4 casts for 4 ops" in text, text
""")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_statistics_of_rows_far_from_zero_stay_float32(dtype):
    """Mean, variance, Scale and Bias of layer_norm in 16 bits: rounded, the mean would be off by 0.06."""
    run(f"""
main, startup = fluid.Program(), fluid.Program()
with fluid.program_guard(main, startup), fluid.unique_name.guard():
    x, w = fluid.data("x", [6, 32]), fluid.data("w", [6, 32])
    x.stop_gradient = False
    y = fluid.layers.layer_norm(x)
    norm = main.global_block().ops[-1]
    norm._set_attr("mixed_precision", "{dtype}")
    grads = fluid.gradients([fluid.layers.reduce_sum(y * w)], [x] + main.all_parameters())
r = np.random.RandomState(3)
feed = {{"x": (30 + r.randint(-7, 7, (6, 32)) / 4).astype("float32"), "w": r.randint(-4, 5, (6, 32)).astype("float32")}}
fetch = [norm.output("Mean")[0], norm.output("Variance")[0], y] + grads
def outcome(place):
    exe, scope = fluid.Executor(place), fluid.Scope()
    with fluid.scope_guard(scope):
        exe.run(startup)
        got = [exe.run(main, feed=feed, fetch_list=fetch) for _ in range(3)][-1]
    return got, list(exe._ready.values())[-1].engine.explain()
(got, text), (expected, _) = outcome(fluid.CUDAPlace(0)), outcome(fluid.CPUPlace())
assert "in {dtype}: layer_norm, layer_norm_grad" in text and "4 casts for 2 ops" in text, text
for k, (a, b) in enumerate(zip(got, expected)):
    rounded = k in (2, 3)           # y and the gradient of x
    assert a.dtype == "float32" and np.abs(a - b).max() <= (2.0 ** -8 if rounded else 2e-5) * np.abs(b).max(), k
""")
