"""Images in the layout of the convolution kernels: where it applies, what is converted back, and that values stay."""
import numpy as np
import pytest
from trained_nets import PASSES, Trained, changes

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
