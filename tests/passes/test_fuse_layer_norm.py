"""layer_norm with the sum and the dropout before it in one node: the same bits, and what keeps them apart."""
import pytest
from trained_nets import Trained, check_pass

import anabranch.fluid as fluid

layers = fluid.layers


def check(trained, nodes, **how):
    check_pass(trained, "fuse_layer_norm", nodes, **how)


def net(drop=0.0, swapped=False, optimizer=True, is_test=False, extra=None, width=20, axis=2, **norm):
    def model():
        x = fluid.data("x", [None, 4, width], "float32")
        x = layers.fc(x, width, num_flatten_dims=2)
        y = layers.fc(x, width, num_flatten_dims=2, act="tanh")
        if drop:
            y = layers.dropout(y, drop, is_test=is_test, dropout_implementation="upscale_in_train")
        h = s = layers.elementwise_add(y, x) if swapped else layers.elementwise_add(x, y)
        h = layers.layer_norm(h, begin_norm_axis=axis, **norm)
        loss = layers.mean(layers.square(layers.fc(h, 3)))
        if extra:
            loss = loss + extra(s)
        if optimizer:
            fluid.optimizer.SGD(0.1).minimize(loss)
        return loss, lambda rng: {"x": rng.normal(0, 1, (5, 4, width)).astype("float32")}
    return Trained(model)


@pytest.mark.parametrize("drop", [0.0, 0.4])
@pytest.mark.parametrize("swapped", [False, True])
def test_both_sides(drop, swapped):
    check(net(drop, swapped), 1)


@pytest.mark.parametrize("norm", [dict(scale=False), dict(shift=False), dict(scale=False, shift=False), dict(axis=1),
                                  dict(epsilon=1e-4), dict(width=1), dict(width=2500)], ids=str)
def test_kinds_of_norms(norm):
    check(net(0.3, **norm), 1)


def test_tests_drop_nothing():
    check(net(0.3, is_test=True, optimizer=False), 1)


def test_forward_alone():
    check(net(0.3, optimizer=False), 1)


@pytest.mark.parametrize("threads", [2, 7])
def test_threads(threads):
    check(net(0.3, width=300), 1, threads=threads)


@pytest.mark.parametrize("reduce", [False, True])
def test_replicas(reduce):
    check(net(), 2, replicas=2, reduce=reduce)


def test_other_readers_keep_the_ops_apart():
    check(net(0.3, extra=layers.reduce_sum), 0)


@pytest.mark.parametrize("op,slot,nodes", [("elementwise_add", "Out", 0), ("layer_norm", "Y", 1)])
def test_what_is_fetched_is_made(op, slot, nodes):
    trained = net(0.3)
    norm = next(o for o in trained.main.global_block().ops if o.type == "layer_norm")
    name = norm.input("X")[0] if op == "elementwise_add" else norm.output(slot)[0]
    check(trained, nodes, fetch=[name])


def test_the_switch():
    fluid.set_flags({"FLAGS_fuse_layer_norm": False})
    try:
        assert "fuse_layer_norm  skipped: FLAGS_fuse_layer_norm is 0" in fluid.BuildStrategy().explain()
    finally:
        fluid.set_flags({"FLAGS_fuse_layer_norm": True})
