"""Images in the layout of the convolution kernels: where it applies, what is converted back, and that values stay."""
import numpy as np
import pytest
from trained_nets import PASSES, Trained, changes, same_bits

import anabranch.fluid as fluid

layers = fluid.layers
ON = ["blocked_layout"]


def conv_bn(x, channels, stride=1, act="relu", size=3, **more):
    h = layers.conv2d(x, channels, size, stride=stride, padding=size // 2, bias_attr=False)
    return layers.batch_norm(h, act=act, **more)


def residual(channels=16, tail=None, **more):
    """Two residual blocks, the second with half the extent and twice the channels."""
    def model():
        x, y = fluid.data("x", [None, 3, 9, 8], "float32"), fluid.data("y", [None, 1], "int64")
        h = conv_bn(x, channels, **more)
        h = layers.relu(layers.elementwise_add(conv_bn(conv_bn(h, channels), channels, act=None, **more), h))
        short = conv_bn(h, 2 * channels, 2, None, 1)
        h = layers.relu(layers.elementwise_add(conv_bn(h, 2 * channels, 2, act=None), short))
        h = tail(h) if tail else layers.pool2d(h, 2, "avg", 2)
        loss = layers.mean(layers.softmax_with_cross_entropy(layers.fc(h, 3), y))
        fluid.optimizer.Momentum(0.05, 0.9).minimize(loss)
        return loss, lambda rng: {"x": rng.normal(0, 1, (5, 3, 9, 8)).astype("float32"),
                                  "y": rng.randint(0, 3, (5, 1)).astype("int64")}
    return model


def assert_near(expected, got):
    """Within the tolerance of the pass, after two steps."""
    assert len(expected) == len(got)
    for a, b in zip(expected, got):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("on", [ON, PASSES])
@pytest.mark.parametrize("replicas,reduce", [(1, False), (2, False), (2, True)])
def test_values_stay_and_threads_agree(replicas, reduce, on):
    trained = Trained(residual())
    expected, _ = trained.run([], replicas, reduce)
    got, told = trained.run(on, replicas, reduce)
    assert changes(told, "blocked_layout") > 10 * replicas
    assert_near(expected, got)
    for threads in (2, 7):
        again, _ = trained.run(on, replicas, reduce, threads)
        for a, b in zip(got, again):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("kind", ["reduce_mean", "concat", "scale", "pool"])
def test_an_op_that_knows_the_plain_layout_only_gets_it(kind):
    tails = {"reduce_mean": lambda h: layers.reduce_mean(h, [2, 3]), "scale": lambda h: layers.scale(h, 2.0),
             "concat": lambda h: layers.concat([h, h], 1), "pool": lambda h: layers.pool2d(h, 3, "max", 2)}
    trained = Trained(residual(tail=tails[kind]))
    expected, _ = trained.run([])
    got, told = trained.run(ON)
    assert changes(told, "blocked_layout") > 10
    assert_near(expected, got)


@pytest.mark.parametrize("op,slot", [("conv2d", "Output"), ("batch_norm", "Y"), ("elementwise_add", "Out"),
                                     ("relu_grad", "X@GRAD"), ("conv2d_grad", "Input@GRAD")])
def test_what_is_fetched_has_the_plain_layout(op, slot):
    trained = Trained(residual())
    names = [o.output(slot)[0] for o in trained.main.global_block().ops if o.type == op and o.output(slot)]
    expected, _ = trained.run([], fetch=names[:2])
    got, told = trained.run(ON, fetch=names[:2])
    assert changes(told, "blocked_layout") > 0
    assert_near(expected, got)


@pytest.mark.parametrize("more", [{"use_global_stats": True}, {"is_test": True}])
def test_fixed_statistics(more):
    trained = Trained(residual(**more))
    expected, _ = trained.run([])
    got, _ = trained.run(ON)
    assert_near(expected, got)


@pytest.mark.parametrize("model", [residual(channels=12), residual(data_layout="NHWC")])
def test_channels_that_do_not_fill_blocks_and_other_formats_stay(model):
    trained = Trained(model)
    expected, _ = trained.run([])
    got, _ = trained.run(ON)
    assert_near(expected, got)


def test_no_convolution_no_change():
    def model():
        x = fluid.data("x", [None, 16, 4, 4], "float32")
        loss = layers.mean(layers.relu(layers.batch_norm(layers.relu(x))))
        fluid.optimizer.SGD(0.1).minimize(loss)
        return loss, lambda rng: {"x": rng.normal(0, 1, (3, 16, 4, 4)).astype("float32")}
    trained = Trained(model)
    expected, _ = trained.run([])
    got, told = trained.run(ON)
    assert changes(told, "blocked_layout") == 0
    for a, b in zip(expected, got):
        np.testing.assert_array_equal(a, b)


def number(name, extent):
    return layers.create_parameter([extent], "float32", name=name)


BETWEEN = {
    "relu": layers.relu, "relu6": layers.relu6, "leaky_relu": layers.leaky_relu, "swish": layers.swish,
    "gelu": layers.gelu, "clip": lambda h: layers.clip(h, -0.5, 0.5),
    "scale": lambda h: layers.scale(h, 2.0, 0.1), "product": lambda h: layers.elementwise_mul(h, layers.tanh(h)),
    "bias": lambda h: layers.elementwise_add(layers.relu(h), number("b", 16), axis=1),
    "concat": lambda h: layers.concat([h, layers.relu(h), h], 1),
    "depthwise": lambda h: layers.conv2d(h, 16, 3, padding=1, groups=16, bias_attr=False),
    "depthwise_op": lambda h: layers.conv2d(h, 16, 3, padding=1, groups=16, bias_attr=False, use_cudnn=False),
    "transpose": lambda h: layers.conv2d_transpose(h, 32, filter_size=2, stride=2, bias_attr=False),
    "pad": lambda h: layers.pad2d(h, [2, 1, 0, 3]), "reflect": lambda h: layers.pad2d(h, [2, 1, 0, 3], "reflect"),
    "edge": lambda h: layers.pad2d(h, [2, 1, 0, 3], "edge"),
    "nearest": lambda h: layers.resize_nearest(h, scale=2.0), "linear": lambda h: layers.resize_bilinear(h, [7, 11]),
    "instance": lambda h: layers.relu(layers.instance_norm(h)),
    **{"groups_%d" % n: lambda h, n=n: layers.relu(layers.group_norm(h, n)) for n in (1, 2, 4, 16)},
    "groups_without_scale": lambda h: layers.group_norm(layers.relu(h), 8, param_attr=False, bias_attr=False),
    "max": lambda h: layers.pool2d(h, 3, "max", 2, 1), "mean": lambda h: layers.pool2d(h, 2, "avg", 2),
}


def between(middle):
    """Two convolutions with a bias, and what lies between them."""
    def model():
        x = fluid.data("x", [None, 3, 9, 8], "float32")
        h = middle(layers.conv2d(x, 16, 3, padding=1, bias_attr=fluid.ParamAttr(name="first")))
        h = layers.conv2d(h, 32, 3, padding=1, act="relu")
        loss = layers.mean(layers.pool2d(h, pool_type="avg", global_pooling=True))
        fluid.optimizer.Momentum(0.05, 0.9).minimize(loss)
        return loss, lambda rng: {"x": rng.normal(0, 1, (5, 3, 9, 8)).astype("float32")}
    return model


def nodes(told):
    return int(told.split()[0])


@pytest.mark.parametrize("kind", sorted(BETWEEN))
def test_an_op_between_convolutions_keeps_their_layout(kind):
    trained = Trained(between(BETWEEN[kind]))
    expected, plain = trained.run([])
    got, told = trained.run(ON)
    assert changes(told, "blocked_layout") > 5
    assert nodes(told) - nodes(plain) <= 2, "images are reordered around it"
    assert_near(expected, got)
    got, _ = trained.run(PASSES)
    assert_near(expected, got)


@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize("how", [
    dict(pool_size=3, pool_stride=2, pool_padding=1), dict(pool_size=[3, 2], pool_stride=1, exclusive=False),
    dict(pool_size=4, pool_stride=3, pool_padding=[2, 1], ceil_mode=True), dict(global_pooling=True)])
def test_pools_of_either_layout_have_the_same_bits(kind, how):
    def model():
        x = fluid.data("x", [None, 3, 9, 8], "float32")
        h = layers.conv2d(x, 32, 3, padding=1, bias_attr=False, act="relu")
        h = layers.conv2d(layers.pool2d(h, pool_type=kind, **how), 32, 1, bias_attr=False, act="relu")
        loss = layers.reduce_sum(layers.square(h))
        fluid.optimizer.SGD(1e-4).minimize(loss)
        return loss, lambda rng: {"x": rng.normal(0, 1, (5, 3, 9, 8)).astype("float32")}
    trained = Trained(model)
    names = [op.output(slot)[0] for slot, op in (
        (s, o) for s, t in (("Out", "pool2d"), ("X@GRAD", "pool2d_grad"))
        for o in trained.main.global_block().ops if o.type == t)]
    expected, _ = trained.run([], fetch=names, steps=1)
    plain, _ = trained.run(ON, fetch=names[:1], steps=1)     # fetched, so the other of the two is in blocks
    other, told = trained.run(ON, fetch=names[1:], steps=1)
    assert changes(told, "blocked_layout") > 0
    same_bits(expected[:2], [plain[0], other[0]])
