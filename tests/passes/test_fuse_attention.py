"""Attention in one node: near the values of the ops it is made of, forward and backward, and what keeps them apart."""
import numpy as np
import pytest
from trained_nets import Trained, changes, check_pass

import anabranch.fluid as fluid

layers = fluid.layers
ALONE = ["fuse_attention"]
BATCH, ROWS, HEADS, WIDTH = 3, 7, 2, 6


def near(expected, got):
    assert len(expected) == len(got)
    for a, b in zip(expected, got):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)


def check(trained, nodes, **how):
    check_pass(trained, "fuse_attention", nodes, compare=near, **how)


def net(drop=0.0, mask=None, heads_first=True, rows=ROWS, optimizer=True, is_test=False, between=None, alpha=0.4,
        extra=None, implementation="upscale_in_train"):
    def heads(x):
        x = layers.fc(x, HEADS * WIDTH, num_flatten_dims=2)
        if not heads_first:
            return x
        return layers.transpose(layers.reshape(x, [0, 0, HEADS, WIDTH]), [0, 2, 1, 3])

    def model():
        x = fluid.data("x", [None, rows, 5], "float32")
        q, k, v = heads(x), heads(x), heads(x)
        h = layers.matmul(q, k, transpose_y=True, alpha=alpha)
        feeds = {}
        if mask:
            m = fluid.data("m", [None if e == BATCH else e for e in mask], "float32")
            h, feeds["m"] = layers.elementwise_add(h, m), mask
        if between:
            h = between(h)
        h = p = layers.softmax(h)
        if drop:
            h = layers.dropout(h, drop, is_test=is_test, dropout_implementation=implementation)
        h = layers.matmul(h, v)
        if heads_first:
            h = layers.reshape(layers.transpose(h, [0, 2, 1, 3]), [0, 0, HEADS * WIDTH])
        loss = layers.mean(layers.square(layers.fc(h, 4, num_flatten_dims=2)))
        if extra:
            loss = loss + extra(p)
        if optimizer:
            fluid.optimizer.SGD(0.1).minimize(loss)

        def feed(rng):
            made = {"x": rng.normal(0, 1, (BATCH, rows, 5)).astype("float32")}
            return dict(made, **{n: rng.normal(0, 2, s).astype("float32") for n, s in feeds.items()})
        return loss, feed
    return Trained(model)


@pytest.mark.parametrize("heads_first", [True, False])
@pytest.mark.parametrize("drop", [0.0, 0.3])
def test_with_and_without_turned_heads(heads_first, drop):
    check(net(drop, heads_first=heads_first), 1)


@pytest.mark.parametrize("implementation", ["upscale_in_train", "downgrade_in_infer"])
@pytest.mark.parametrize("is_test", [True, False])
def test_kinds_of_dropout(implementation, is_test):
    check(net(0.3, implementation=implementation, is_test=is_test, optimizer=not is_test), 1)


@pytest.mark.parametrize("mask", [(BATCH, HEADS, ROWS, ROWS), (BATCH, 1, 1, ROWS), (1, HEADS, ROWS, 1),
                                  (1, 1, ROWS, ROWS)])
def test_masks(mask):
    check(net(0.2, mask=mask), 1)


@pytest.mark.parametrize("rows", [1, 33, 300])
def test_numbers_of_rows(rows):
    check(net(0.1, rows=rows), 1, steps=1)


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_threads_give_the_same_bits(threads):
    trained = net(0.3, rows=64)
    expected, _ = trained.run(ALONE)
    got, told = trained.run(ALONE, threads=threads)
    assert changes(told, "fuse_attention") == 1
    for a, b in zip(expected, got):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("reduce", [False, True])
def test_replicas(reduce):
    check(net(), 3, replicas=3, reduce=reduce)


def test_forward_alone():
    check(net(optimizer=False), 1)


@pytest.mark.parametrize("how", [dict(between=layers.relu), dict(extra=layers.reduce_sum)])
def test_other_readers_keep_the_ops_apart(how):
    check(net(**how), 0)


def test_what_is_fetched_is_made():
    trained = net(0.2)
    name = next(o.output("Out")[0] for o in trained.main.global_block().ops if o.type == "softmax")
    check(trained, 0, fetch=[name])


def test_transposes_are_fused(capsys, tmp_path):
    """No transpose is left around the node, forward or backward."""
    trained, left = net(0.2), {}
    for on in (ALONE, []):
        target = trained.compiled(on)
        fluid.profiler.reset_profiler()
        with fluid.profiler.profiler("CPU", "total", str(tmp_path / "profile")):
            trained.exe.run(target, feed=trained.feed(np.random.RandomState(0)), fetch_list=[trained.loss],
                            scope=trained.begin())
        text = capsys.readouterr().out
        left[bool(on)] = {t for t in ("transpose2", "transpose2_grad", "fused_attention", "fused_attention_grad")
                          if any(line.split()[:1] == [t] for line in text.splitlines())}
    assert left == {True: {"fused_attention", "fused_attention_grad"}, False: {"transpose2", "transpose2_grad"}}


def test_the_switch():
    fluid.set_flags({"FLAGS_fuse_attention": False})
    try:
        assert "fuse_attention   skipped: FLAGS_fuse_attention is 0" in fluid.BuildStrategy().explain()
    finally:
        fluid.set_flags({"FLAGS_fuse_attention": True})
