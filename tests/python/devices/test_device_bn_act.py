"""batch_norm with relu in one launch on a simulated device, forward and backward: the bits of both by themselves."""
import pytest
from device_runs import pytestmark, run  # noqa: F401
from device_texts import NORM, TRAINED

SHAPES = [(6, 5, 4, 5), (6, 5, 4, 16), (700, 7), (40, 24), (4, 9, 8), (3, 2, 2, 3, 8)]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("special", [False, True], ids=["numbers", "special"])
def test_bits_are_those_of_both_apart(dtype, special):
    """Packs of one and of several, a matrix, rows for several chunks; NaN, infinite gradients, -0.0, and what float16
    has no number for."""
    run(NORM + f"""
low = "{dtype}" if "{dtype}".endswith("16") else None
for shape in {SHAPES}:
    feed = batch(shape, "float64" if "{dtype}" == "float64" else "float32", {special})
    layout = {{"data_layout": "NHWC"}} if len(shape) > 2 else {{}}
    got = compare(feed, low=low, **layout)
    assert (got[0] == 0).any() and (got[0] > 0).any() and np.isnan(got[0]).any() == {special}, got[0]
    compare(feed, low=low, dx=False, **layout)
    if not {special}:
        expected, _ = outcome(feed, "", fluid.CPUPlace(), **layout)
        for a, b in zip(got, expected):
            a, b = a[..., 1:], b[..., 1:]
            wide = np.abs(b).max() * (0.1 if low else 1e-3)
            assert (np.abs(a - b) > wide).mean() < 0.02, (shape, np.abs(a - b).max(), wide)
""")


EDITS = """
def no_bias(block):
    next(o for o in block.ops if o.type == "batch_norm_grad").desc.set_input("Bias", [])

def moves(block, type, inputs, outputs, attrs):
    "Between forward and backward: the gradient has to see where the forward op's result was above zero."
    at = next(k for k, o in enumerate(block.ops) if o.type == "relu_grad")
    block._insert_op(at, type=type, inputs=inputs, outputs=outputs, attrs=attrs)

def bias_is_written(block):
    "Of a variable with several values passes do not know the kinds: no node is fused."
    moves(block, "scale", {"X": ["bias"]}, {"Out": ["bias"]}, {"bias": 3.0})

def bias_is_trained(block):
    "Updates the bias in place."
    rate = block.create_var(name="rate", shape=[1], dtype="float32")
    moves(block, "fill_constant", {}, {"Out": ["rate"]}, {"shape": [1], "dtype": rate.dtype, "value": 2.0})
    moves(block, "sgd", {"Param": ["bias"], "Grad": ["scale"], "LearningRate": ["rate"]}, {"ParamOut": ["bias"]}, {})
"""


@pytest.mark.parametrize("edit,changes", [("no_bias", 2), ("bias_is_written", 0), ("bias_is_trained", 2)])
@pytest.mark.parametrize("low", [None, "bfloat16"])
def test_where_bias_does_not_tell_the_result_is_read(edit, changes, low):
    run(NORM + EDITS + f"""
for shape in ((40, 24), (40, 7)):
    compare(batch(shape), {changes}, 'Y', low={low!r}, edit={edit})
""")


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_one_element_a_channel_passes_and_an_empty_batch(dtype):
    run(NORM + f"""
low = "{dtype}" if "{dtype}".endswith("16") else None
for rows in (1, 0):
    for channels in (7, 16):
        feed = batch((rows, channels), "float64" if "{dtype}" == "float64" else "float32")
        got = compare(feed, low=low)
        compare(feed, low=low, dx=False)
        if rows:
            assert (got[0] > 0).any() and (got[-4][feed["x"] <= 0] == 0).all()
            np.testing.assert_allclose(got[0], np.maximum(feed["x"], 0), rtol=0.01)
""")


def test_what_the_library_computes_stays_apart():
    run(NORM + """
feed = batch((4, 3, 5, 3))
for norm in ({}, {"data_layout": "NHWC", "use_global_stats": True}, {"data_layout": "NHWC", "is_test": True}):
    compare(feed, 0, **norm)
def guarded(block):
    for op in block.ops:
        if op.type.startswith("relu"):
            op._set_attr("op_device", "cpu")
got, text = outcome(batch((9, 4)), "", edit=guarded)
assert fused(text) == 0 and "on the CPU: relu" in text, text
""")


@pytest.mark.parametrize("half", [None, "bfloat16", "float16"])
def test_images_that_came_to_lie_with_channels_last(half):
    """A net as users write it, channels first, without a strategy."""
    run(TRAINED + f"""
fluid.set_flags({{"FLAGS_enable_cublas_tensor_op_math": True}})
def net():
    x, y = fluid.data("x", [None, 1, 12, 12]), fluid.data("y", [None, 1], dtype="int64")
    h = x
    for channels in (8, 16):
        for kernel in (1, 3):
            h = L.batch_norm(L.conv2d(h, channels, kernel, padding=kernel // 2, bias_attr=False), act="relu")
        h = L.elementwise_add(h, L.batch_norm(L.conv2d(h, channels, 1, bias_attr=False)), act="relu")
    return L.mean(L.softmax_with_cross_entropy(L.fc(L.pool2d(h, pool_type="avg", global_pooling=True), 4), y))
def trained(passes):
    "As train() of the other tests, with these passes off."
    set_flags = fluid.set_flags
    fluid.set_flags = lambda flags: set_flags({{"FLAGS_disable_passes": passes}})
    got = train(net, FEEDS, DEVICE, {half!r})
    fluid.set_flags = set_flags
    return got, list(exe_of_last._bound.values())[-1].bound.engine.explain()
(losses, _, kept), text = trained("")
assert "fuse_bn_act      applied, 12 changes" in text and "gradients of relu: 4 from X, 0 from Y" in text, text
assert said()[1] >= 8, text
(apart, _, kept_apart), text = trained("fuse_bn_act")
assert "fuse_bn_act      skipped" in text, text
assert losses == apart and losses[0] != losses[-1], (losses, apart)
assert all(np.array_equal(kept[name], kept_apart[name]) for name in kept) and len(kept) > 20
""")


@pytest.mark.parametrize("sync", [False, True])
def test_statistics_of_all_devices_are_left_to_their_pass(sync):
    run(NORM + f"""
main, startup, fetch = program([None, 3, 2, 8], "float32", data_layout="NHWC")
build = fluid.BuildStrategy()
build.sync_batch_norm = {sync}
for places in ([0], [0, 1]):
    exe = fluid.Executor(fluid.CUDAPlace(0))
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        both = fluid.CompiledProgram(main).with_data_parallel(fetch[0], build, places=fluid.cuda_places(places))
        exe.run(both, feed=batch((8, 3, 2, 8)), fetch_list=fetch)
        text = both.explain()
    synced = {sync} and len(places) == 2
    assert fused(text) == (0 if synced else 2 * len(places)) and ("rounds of sums" in text) == synced, text
""", simdevice_devices=2)
