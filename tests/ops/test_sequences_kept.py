"""Sequences are carried exactly where 1.8.5 carries them: which outputs and gradients have them, by layer."""
import numpy as np
import pytest

import anabranch.fluid as fluid

layers = fluid.layers
X = (np.arange(24, dtype="float32").reshape(6, 4) + 1) / 25
FEED = {"x": X, "z": X[:, ::-1].copy(), "a": X[:, :1].copy(), "b": X[:, 1:2].copy(), "one": X[:, :1] * 0 + 1,
        "y": np.array([[0], [1], [2], [0], [1], [2]]), "image": np.tile(X.reshape(6, 4, 1, 1), (1, 1, 3, 3))}

# layer, whether its result has sequences, and whether the gradients of its inputs have
CASES = {
    "softmax": (lambda v: layers.softmax(v["x"]), True, False),
    "log_softmax": (lambda v: layers.log_softmax(v["x"]), True, False),
    "softmax_with_cross_entropy": (lambda v: layers.softmax_with_cross_entropy(v["x"], v["y"]), True, False),
    "cross_entropy": (lambda v: layers.cross_entropy(v["x"], v["y"]), True, True),
    "soft cross_entropy": (lambda v: layers.cross_entropy(v["x"], v["z"], soft_label=True), True, True),
    "sigmoid_cross_entropy": (lambda v: layers.sigmoid_cross_entropy_with_logits(v["x"], v["z"]), True, False),
    "hsigmoid": (lambda v: layers.hsigmoid(v["x"], v["y"], 5), True, True),
    "nce": (lambda v: layers.nce(v["x"], v["y"], 10), False, False),
    "center_loss": (lambda v: layers.center_loss(v["x"], v["y"], 4, 0.1, None), True, False),
    "cos_sim": (lambda v: layers.cos_sim(v["x"], v["z"]), True, False),
    "rank_loss": (lambda v: layers.rank_loss(v["one"], v["a"], v["b"]), False, False),
    "margin_rank_loss": (lambda v: layers.margin_rank_loss(v["one"], v["a"], v["b"]), False, False),
    "bpr_loss": (lambda v: layers.bpr_loss(v["x"], v["y"]), True, True),
    "kldiv_loss": (lambda v: layers.kldiv_loss(v["x"], v["z"], "none"), False, False),
    "log_loss": (lambda v: layers.log_loss(v["a"], v["b"]), True, False),
    "teacher_student": (lambda v: layers.teacher_student_sigmoid_loss(v["a"], v["b"]), True, True),
    "batch_norm": (lambda v: layers.batch_norm(v["x"]), True, False),
    "layer_norm": (lambda v: layers.layer_norm(v["x"]), True, False),
    "group_norm": (lambda v: layers.group_norm(v["image"], 2), True, False),
    "instance_norm": (lambda v: layers.instance_norm(v["image"]), True, False),
    "data_norm": (lambda v: layers.data_norm(v["x"]), True, False),
    "lrn": (lambda v: layers.lrn(v["image"]), True, False),
    "affine_channel": (lambda v: layers.affine_channel(v["image"], layers.create_parameter([4], "float32"),
                                                       layers.create_parameter([4], "float32")), True, False),
    "conv2d": (lambda v: layers.conv2d(v["image"], 3, 3, bias_attr=False), True, False),
    "conv2d_transpose": (lambda v: layers.conv2d_transpose(v["image"], 3, filter_size=3, bias_attr=False), False,
                         False),
    "pool2d": (lambda v: layers.pool2d(v["image"], 2), True, False),
    "dropout": (lambda v: layers.dropout(v["x"], 0.5), True, False),
}


@pytest.mark.parametrize("name", CASES)
def test_sequences(name):
    build, of_result, of_gradients = CASES[name]
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        v = {k: fluid.data(k, [None, *a.shape[1:]], str(a.dtype), lod_level=1) for k, a in FEED.items()}
        for k in FEED:
            v[k].stop_gradient = k in ("y", "one")
        out = build(v)
        grads = [g for g in fluid.gradients([out], [v["x"], v["a"], v["image"]]) if g is not None]
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup, scope=scope)
    feed = {k: fluid.create_lod_tensor(a, [[2, 1, 3]], fluid.CPUPlace()) for k, a in FEED.items()}
    got = exe.run(main, feed=feed, fetch_list=[out] + grads, scope=scope, return_numpy=False)
    assert len(grads) >= 1
    expected = [of_result] + [of_gradients] * len(grads)
    assert [bool(t.recursive_sequence_lengths()) for t in got] == expected
    assert [bool(var.lod_level) for var in [out] + grads] == expected
