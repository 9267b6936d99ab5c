"""Convolutions with bias, sum and relu in one node: the same bits in every layout; filters that are packed once."""
import numpy as np
import pytest
from trained_nets import PASSES, Trained, changes, check_pass

import anabranch.fluid as fluid

layers = fluid.layers
ALONE = ["fuse_conv"]


def check(trained, nodes, **how):
    # Without shape_reads gradients keep the results of convolutions alive. The layout of images changes the order of
    # sums, so it is off on both sides.
    others = [p for p in PASSES if p not in ("fuse_conv", "blocked_layout")]
    check_pass(trained, "fuse_conv", nodes, [["shape_reads"], others], **how)


def net(build, shape=(5, 3, 7, 6), trained=True):
    def model():
        x = fluid.data("x", [None] + list(shape[1:]), "float32")
        loss = layers.mean(layers.square(build(x)))
        if trained:
            fluid.optimizer.SGD(0.1).minimize(loss)
        return loss, lambda rng: {"x": rng.normal(0, 1, shape).astype("float32")}
    return Trained(model)


def conv(x, channels=4, **more):
    return layers.conv2d(x, channels, 3, padding=1, **more)


CASES = {
    "bias": lambda x: conv(x), "bias and relu": lambda x: conv(x, act="relu"),
    "relu": lambda x: layers.relu(conv(x, bias_attr=False)), "tanh stays": lambda x: conv(x, act="tanh"),
    "groups": lambda x: conv(x, 6, groups=3, act="relu"), "depthwise": lambda x: conv(x, 3, groups=3, act="relu"),
    "wide": lambda x: conv(x, 33, act="relu"), "stride": lambda x: layers.conv2d(x, 4, 3, stride=2, act="relu"),
    "channels last": lambda x: conv(x, data_format="NHWC", act="relu")}


@pytest.mark.parametrize("trained", [True, False])
@pytest.mark.parametrize("build", CASES.values(), ids=CASES)
def test_bits(build, trained):
    check(net(build, trained=trained), 1, threads=2)


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_few_channels_and_long_rows(groups):
    def biased(x):
        return conv(x, 4, groups=groups, act="relu", bias_attr=fluid.ParamAttr(
            initializer=fluid.initializer.Constant(0.5)))
    check(net(biased, (3, 4, 6, 20), trained=False), 1, threads=2)


def residual(x):
    h = conv(x, act="relu")
    h = layers.relu(layers.elementwise_add(conv(h), h))
    return layers.relu(layers.elementwise_add(h, conv(h, bias_attr=False)))


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_residuals(threads):
    check(net(residual, (9, 3, 12, 12), trained=False), 3, threads=threads)
    check(net(residual, (9, 3, 12, 12)), 2, threads=threads)  # gradients of sums of images keep these


def test_a_sum_with_another_batch_is_another_op():
    def model():
        x, y = fluid.data("x", [None, 3, 4, 4], "float32"), fluid.data("y", [None, 2, 4, 4], "float32")
        loss = layers.mean(layers.square(layers.elementwise_add(conv(x, 2), y)))
        return loss, lambda rng: {"x": rng.normal(0, 1, (1, 3, 4, 4)).astype("float32"),
                                  "y": rng.normal(0, 1, (3, 2, 4, 4)).astype("float32")}
    check(Trained(model), 1)


@pytest.mark.parametrize("replicas,reduce", [(2, False), (2, True), (3, False)])
def test_replicas(replicas, reduce):
    check(net(residual, (6, 3, 5, 5)), 2 * replicas, replicas=replicas, reduce=reduce)


@pytest.mark.parametrize("on", [["shape_reads", "fuse_conv", "blocked_layout"], PASSES])
def test_blocked_images(on):
    def build(x):
        h = conv(x, 16, act="relu")
        for _ in range(3):
            h = layers.relu(layers.elementwise_add(conv(h, 16), h))
        return h
    for trained in (net(build, trained=False), net(build)):
        expected, _ = trained.run([])
        got, told = trained.run(on)
        assert changes(told, "fuse_conv") == 4
        for a, b in zip(expected, got):
            np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("op,slot,nodes", [("conv2d", "Output", 0), ("elementwise_add", "Out", 1), ("relu", "Out", 1)])
def test_what_is_fetched_is_made(op, slot, nodes):
    trained = net(CASES["bias and relu"])
    name = next(o.output(slot)[0] for o in trained.main.global_block().ops if o.type == op)
    check(trained, nodes, fetch=[name])


def test_a_filter_that_others_write_is_packed_again(tmp_path):
    """By another program, by the user, by a load: the next run sees it."""
    main, startup, writer = fluid.Program(), fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [None, 16, 5, 5], "float32")
        y = layers.conv2d(x, 16, 3, param_attr=fluid.ParamAttr(name="w"), bias_attr=False)
    with fluid.program_guard(writer, fluid.Program()):
        w = writer.global_block().create_var(name="w", shape=[16, 16, 3, 3], dtype="float32", persistable=True)
        layers.assign(layers.scale(w, 2.0), w)
    exe, scope = fluid.Executor(), fluid.Scope()
    value = np.random.RandomState(0).normal(0, 1, (2, 16, 5, 5)).astype("float32")
    with fluid.scope_guard(scope):
        exe.run(startup)

        def run():
            return exe.run(main, feed={"x": value}, fetch_list=[y])[0]

        first = run()
        np.testing.assert_array_equal(first, run())
        fluid.io.save_persistables(exe, str(tmp_path), main)
        exe.run(writer)
        np.testing.assert_array_equal(2 * first, run())
        fluid.io.load_persistables(exe, str(tmp_path), main)
        np.testing.assert_array_equal(first, run())
        tensor = scope.find_var("w").get_tensor()
        tensor.set(np.array(tensor) * 4, fluid.CPUPlace())
        np.testing.assert_array_equal(4 * first, run())


def test_float64_is_left_alone():
    def model():
        x = fluid.data("x", [None, 3, 5, 5], "float64")
        h = layers.conv2d(x, 2, 3, padding=1, act="relu")
        return layers.reduce_sum(h), lambda rng: {"x": rng.normal(0, 1, (2, 3, 5, 5))}
    check(Trained(model), 0)


def test_an_empty_batch():
    def model():
        x = fluid.data("x", [None, 3, 4, 4], "float32")
        return conv(x, act="relu"), lambda rng: {"x": np.zeros((0, 3, 4, 4), "float32")}
    check(Trained(model), 1)


def test_the_switch():
    build = fluid.BuildStrategy()
    build.fuse_elewise_add_act_ops = False
    assert "fuse_conv        skipped: fuse_elewise_add_act_ops is False" in build.explain()


@pytest.mark.parametrize("shape, fits", [((4,), True), ((1,), True), ((4, 1), True), ((3,), False)])
def test_a_bias_of_another_shape_is_taken_or_refused_as_without_the_pass(shape, fits):
    """A file may hold another shape than the program says."""
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        out = layers.conv2d(fluid.data("x", [None, 3, 7, 6]), 4, 3, bias_attr="bias", act="relu")
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup, scope=scope)
    values = np.linspace(0.1, 0.4, int(np.prod(shape))).reshape(shape).astype("float32")
    scope.var("bias").get_tensor().set(values, fluid.CPUPlace())
    feed = {"x": np.random.RandomState(0).normal(0, 1, (2, 3, 7, 6)).astype("float32")}
    got = []
    before = fluid.get_flags("FLAGS_disable_passes")
    for disabled in ("", "fuse_conv"):
        fluid.set_flags({"FLAGS_disable_passes": disabled})
        try:
            target = fluid.CompiledProgram(main)
            got.append(exe.run(target, feed=feed, fetch_list=[out], scope=scope)[0])
            if not disabled:
                assert changes(target.explain(), "fuse_conv") == 1
        except fluid.core.EnforceNotMet as e:
            got.append(e.kind)
        finally:
            fluid.set_flags(before)
    if fits:
        np.testing.assert_array_equal(*got)
    else:
        assert got == ["ShapeMismatch"] * 2
