"""batch_norm with relu in one node: the same bits in every layout, forward and backward, and what keeps them apart."""
import pytest
from trained_nets import PASSES, Trained, check_pass

import anabranch.fluid as fluid

layers = fluid.layers
ALONE = ["fuse_bn_act"]


def check(trained, nodes, around=(), **how):
    """`around`: passes that the first comparison needs on both sides."""
    check_pass(trained, "fuse_bn_act", nodes, [list(around), [p for p in PASSES if p not in ALONE]], **how)


def net(shape=(6, 4, 5, 5), act="relu", between=None, convolve=False, optimizer=True, **norm):
    def model():
        x = fluid.data("x", [None] + list(shape[1:]), "float32")
        h = x
        if convolve:
            h = layers.conv2d(h, 16, 3, padding=1, bias_attr=False)
        else:
            h = layers.elementwise_mul(h, layers.create_parameter([shape[-1]], "float32"))
        h = layers.batch_norm(h, **norm)
        h = getattr(layers, act)(h) if between is None else between(h)
        if convolve:
            h = layers.conv2d(h, 16, 3, padding=1, bias_attr=False)
            h = layers.relu(layers.batch_norm(h, **norm))
        loss = layers.mean(layers.square(h))
        if optimizer:
            fluid.optimizer.SGD(0.1).minimize(loss)
        return loss, lambda rng: {"x": rng.normal(0.3, 2, shape).astype("float32")}
    return Trained(model)


SHAPES = [(6, 4, 5, 5), (5, 7), (3, 4, 17), (2, 3, 2, 3, 4), (1, 3, 40, 40)]
NORMS = {"batch": {}, "use_global_stats": {"use_global_stats": True}, "is_test": {"is_test": True},
         "data_layout": {"data_layout": "NHWC"}}


@pytest.mark.parametrize("norm, shape", [(norm, shape) for norm in NORMS for shape in SHAPES
                                         if len(shape) > 2 or norm != "data_layout"])  # a matrix has one layout
def test_bits_in_every_shape(norm, shape):
    check(net(shape, **NORMS[norm]), 2, threads=2)


def test_forward_alone():
    check(net(optimizer=False), 1)


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_blocked_images(threads):
    check(net((5, 16, 6, 6), convolve=True), 4, ["blocked_layout"], threads=threads)


@pytest.mark.parametrize("replicas,reduce", [(2, False), (2, True), (3, False)])
def test_replicas(replicas, reduce):
    check(net(), 2 * replicas, replicas=replicas, reduce=reduce)


def test_an_input_without_gradient():
    """Scale and bias are trained, X@GRAD is not fetched."""
    def model():
        x = fluid.data("x", [None, 16, 4, 4], "float32")
        loss = layers.mean(layers.square(layers.batch_norm(x, act="relu")))
        fluid.optimizer.SGD(0.1).minimize(loss)
        return loss, lambda rng: {"x": rng.normal(0, 1, (3, 16, 4, 4)).astype("float32")}
    check(Trained(model), 2)


@pytest.mark.parametrize("between", [layers.tanh, lambda h: layers.relu(h) + layers.tanh(h), layers.leaky_relu])
def test_other_readers_and_activations_stay(between):
    check(net(between=between), 0)


@pytest.mark.parametrize("op,slot,nodes", [("batch_norm", "Y", 1), ("relu", "Out", 2), ("relu_grad", "X@GRAD", 1),
                                           ("batch_norm", "SavedMean", 2), ("batch_norm_grad", "X@GRAD", 2)])
def test_what_is_fetched_is_made(op, slot, nodes):
    trained = net()
    name = next(o.output(slot)[0] for o in trained.main.global_block().ops if o.type == op)
    check(trained, nodes, fetch=[name])


def test_the_switch():
    build = fluid.BuildStrategy()
    assert "fuse_bn_act      on" in build.explain()
    build.fuse_bn_act_ops = False
    assert "fuse_bn_act      skipped: fuse_bn_act_ops is False" in build.explain()
