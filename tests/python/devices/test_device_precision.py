"""mixed_precision.decorate on a simulated device: operators in 16 bits, float32 parameters, scales that move."""
import pytest
from device_runs import pytestmark, run  # noqa: F401
from device_texts import NETS

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
    text = next(iter(there._bound.values())).bound.engine.explain()
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
    return got, list(exe._bound.values())[-1].bound.engine.explain()
(got, text), (expected, _) = outcome(fluid.CUDAPlace(0)), outcome(fluid.CPUPlace())
assert "in {dtype}: layer_norm, layer_norm_grad" in text and "4 casts for 2 ops" in text, text
for k, (a, b) in enumerate(zip(got, expected)):
    rounded = k in (2, 3)           # y and the gradient of x
    assert a.dtype == "float32" and np.abs(a - b).max() <= (2.0 ** -8 if rounded else 2e-5) * np.abs(b).max(), k
""")
