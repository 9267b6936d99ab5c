"""channels_last on a simulated device: images that convolutions multiply in 16 bits lie with their channels last."""
import pytest
from device_runs import pytestmark, run  # noqa: F401
from device_texts import TRAINED


@pytest.mark.parametrize("net", ["images", "wider"])
@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_images_of_16_bits_change_their_layout_and_nothing_else(net, half):
    run(TRAINED + f"""
got = train({net}, FEEDS, DEVICE, "{half}")
changes, moved, reorders = said()
assert moved >= 8 and 0 < reorders < moved / 2, (changes, moved, reorders)
expected = train({net}, FEEDS, DEVICE, "{half}", off=True)
assert said() == (0, 0, 0)
alike(got, expected, 0.02 if "{half}" == "float16" else 0.1)
""")


@pytest.mark.parametrize("net", ["images", "wider"])
def test_float32_changes_where_its_products_may_be_rounded(net):
    run(TRAINED + f"""
expected = train({net}, FEEDS, fluid.CPUPlace())
alike(train({net}, FEEDS, DEVICE), expected, 1e-4)
assert said() == (0, 0, 0)
fluid.set_flags({{"FLAGS_enable_cublas_tensor_op_math": True}})
alike(train({net}, FEEDS, DEVICE), expected, 1e-4)
assert said()[1] >= 8, said()
""")


def test_what_is_fetched_keeps_its_layout():
    run(TRAINED + """
fluid.set_flags({"FLAGS_enable_cublas_tensor_op_math": True})
names = ["conv2d_0.tmp_0", "relu_0.tmp_0@GRAD", "pool2d_0.tmp_0", "batch_norm_1.tmp_3"]
def fetched():
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
        images()
        fluid.optimizer.SGD(0.1).minimize(fluid.default_main_program().global_block().var("mean_0.tmp_0"))
        return [v.name for v in fluid.default_main_program().list_vars() if len(v.shape) == 4 and v.name != "x"]
names = fetched()
for name in names:
    got = train(images, FEEDS, DEVICE, fetch=[name])
    if name == names[0]:
        assert said()[1] > 0
    alike(got, train(images, FEEDS, fluid.CPUPlace(), fetch=[name]), 1e-4)
""")


def test_images_of_known_layout_and_of_volumes_stay():
    run(TRAINED + """
fluid.set_flags({"FLAGS_enable_cublas_tensor_op_math": True})
def volumes():
    x, y = fluid.data("x", [None, 1, 12, 12]), fluid.data("y", [None, 1], dtype="int64")
    h = L.conv3d(L.reshape(x, [-1, 1, 3, 4, 12]), 4, 3, padding=1, act="relu")
    return L.mean(L.softmax_with_cross_entropy(L.fc(L.batch_norm(h), 4), y))
def last():
    x, y = fluid.data("x", [None, 1, 12, 12]), fluid.data("y", [None, 1], dtype="int64")
    h = L.conv2d(L.transpose(x, [0, 2, 3, 1]), 8, 3, padding=1, data_format="NHWC")
    h = L.relu(L.batch_norm(h, data_layout="NHWC"))
    return L.mean(L.softmax_with_cross_entropy(L.fc(L.pool2d(h, 3, data_format="NHWC"), 4), y))
for make in (volumes, last):
    got = train(make, FEEDS, DEVICE)
    assert said() == (0, 0, 0)
    alike(got, train(make, FEEDS, fluid.CPUPlace()), 1e-4)
""")


def test_replicas_and_statistics_of_the_whole_batch():
    run(TRAINED + """
fluid.set_flags({"FLAGS_enable_cublas_tensor_op_math": True})
losses = {}
for off in (False, True):
    fluid.set_flags({"FLAGS_disable_passes": "channels_last" if off else ""})
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 5
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        loss = images()
        fluid.optimizer.SGD(0.1).minimize(loss)
    build = fluid.BuildStrategy()
    build.sync_batch_norm = True
    exe = fluid.Executor(DEVICE)
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        both = fluid.CompiledProgram(main).with_data_parallel(loss.name, build_strategy=build,
                                                              places=fluid.cuda_places([0, 1]))
        losses[off] = [exe.run(both, feed=f, fetch_list=[loss])[0].mean() for f in FEEDS]
        text = both.explain()
    assert ("images, " in text.split("channels_last", 1)[1].split("fuse_attention")[0]) != off, text
    assert "rounds of sums over 2 replicas" in text
np.testing.assert_allclose(losses[0], losses[1], rtol=1e-4)
""", simdevice_devices=2)
