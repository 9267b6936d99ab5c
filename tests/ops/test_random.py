"""Random operators: moments, ends, repeatability."""
import math

import numpy as np
import pytest
from op_case import seeded

import anabranch.fluid as fluid


def draw(op, runs=1, **attrs):
    return draw_any(op, runs, **dict({"shape": [200, 500]}, **attrs))


def draw_any(op, runs, **attrs):
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        block = program.global_block()
        out = block.create_var(name="out")
        block.append_op(type=op, outputs={"Out": [out]}, attrs=attrs)
    exe = fluid.Executor(fluid.CPUPlace())
    return [exe.run(program, fetch_list=[out])[0] for _ in range(runs)]


def test_uniform():
    x, = draw("uniform_random", min=-2.0, max=3.0, seed=7)
    assert x.min() >= -2 and x.max() < 3
    assert abs(x.mean() - 0.5) < 0.02 and abs(x.std() - 5 / np.sqrt(12)) < 0.02


def test_normal():
    x, = draw("gaussian_random", mean=1.0, std=2.0, seed=7)
    assert abs(x.mean() - 1) < 0.03 and abs(x.std() - 2) < 0.03
    assert 0.0015 < np.mean(np.abs(x - 1) > 6) < 0.004  # three deviations


def test_truncated_normal():
    x, = draw("truncated_gaussian_random", mean=1.0, std=2.0, seed=7)
    assert np.abs(x - 1).max() <= 4.00001
    assert abs(x.mean() - 1) < 0.03 and abs(x.std() - 2 * 0.8796) < 0.03


def test_truncated_normal_is_distributed_as_the_part_within_two_deviations():
    x, = draw("truncated_gaussian_random", seed=7, dtype=6)
    assert x.dtype == np.float64
    below = np.array([0.5 * math.erfc(-v / math.sqrt(2)) for v in np.sort(x.ravel())])
    tail = 0.5 * math.erfc(math.sqrt(2))  # on either side
    expected = (below - tail) / (1 - 2 * tail)
    assert np.abs(expected - (np.arange(x.size) + 0.5) / x.size).max() < 1.6 / math.sqrt(x.size)


def test_diagonal():
    x, = draw("uniform_random", shape=[4, 4], diag_num=4, diag_step=4, diag_val=9.0)
    assert np.all(np.diag(x) == 9) and np.all(x[~np.eye(4, dtype=bool)] < 1)
    with pytest.raises(ValueError, match="a diagonal of 4 elements with step 5"):
        draw("uniform_random", shape=[4, 4], diag_num=4, diag_step=5)


@pytest.mark.parametrize("op", ["uniform_random", "gaussian_random", "truncated_gaussian_random"])
def test_a_seed_repeats_in_each_run_and_in_another_program(op):
    first, second = draw(op, runs=2, seed=5)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first, draw(op, seed=5)[0])
    assert not np.array_equal(first, draw(op, seed=6)[0])


def test_integers():
    x, = draw("randint", low=-3, high=4, dtype=3, seed=7)
    assert x.dtype == np.int64 and sorted(set(x.ravel())) == [-3, -2, -1, 0, 1, 2, 3]
    assert np.abs(np.bincount(x.ravel() + 3) / x.size - 1 / 7).max() < 0.005
    x, = draw("randint", low=-2**31, high=2**31 - 1, dtype=3, seed=7)
    assert x.min() < -2**30 and x.max() > 2**30 and abs(x.mean()) < 1e8


def test_permutations():
    orders = draw_any("randperm", 200, n=5, dtype=3)
    assert all(sorted(p) == list(range(5)) for p in orders)
    assert {tuple(p[:1]) for p in orders} == {(k,) for k in range(5)} and len({tuple(p) for p in orders}) > 60


def test_places_by_probability():
    share = np.array([0.1, 0.0, 0.6, 0.3], "float32")
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        places = fluid.layers.sampling_id(fluid.data("x", [None, 4], "float32"), seed=5)
    got, = fluid.Executor(fluid.CPUPlace()).run(program, feed={"x": np.tile(share, (20000, 1))}, fetch_list=[places])
    assert np.abs(np.bincount(got, minlength=4) / len(got) - share).max() < 0.012


def sampled(seed, rows=2000, drawn=3, nodes=8):
    """Nodes that tdm_sampler draws of one layer of ``nodes`` nodes, for rows on the way to node 2."""
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        block = program.global_block()
        ins = {"X": np.zeros((rows, 1), "int64"), "Travel": np.array([[2]]),
               "Layer": np.arange(1, nodes + 1).reshape(-1, 1)}
        outs = {slot: [block.create_var(name=slot.lower() + "_out")] for slot in ("Out", "Labels", "Mask")}
        block.append_op(type="tdm_sampler", inputs={s: [fluid.data(s, list(v.shape), "int64")] for s, v in ins.items()},
                        outputs=outs, attrs={"neg_samples_num_list": [drawn], "layer_offset_lod": [0, nodes],
                                             "seed": seed, "dtype": 3})
    return fluid.Executor(fluid.CPUPlace()).run(program, feed=ins, fetch_list=[outs["Out"][0]])[0]


def test_nodes_of_a_layer_are_drawn_alike_and_once():
    got = sampled(7)
    assert got.shape == (2000, 4) and (got[:, 0] == 2).all()
    assert all(len(set(row)) == 4 for row in got)
    share = np.bincount(got[:, 1:].ravel(), minlength=9)[[1, 3, 4, 5, 6, 7, 8]] / 6000
    assert np.abs(share - 1 / 7).max() < 0.02
    np.testing.assert_array_equal(got, sampled(7))
    assert not np.array_equal(got, sampled(8))
    assert (np.sort(sampled(7, drawn=7), 1) == np.arange(1, 9)).all()


def test_word_sequences_are_left_out_by_chance():
    program = fluid.Program()
    words = fluid.create_lod_tensor(np.arange(4000, dtype="int32").reshape(-1, 1), [[4000]], fluid.CPUPlace())
    with fluid.program_guard(program, fluid.Program()):
        block = program.global_block()
        outs = {slot: [block.create_var(name=slot.lower())] for slot in ("Out", "DropPos", "X_Temp_Out")}
        block.append_op(type="pyramid_hash",
                        inputs={"X": [fluid.data("x", [None, 1], "int32", lod_level=1)],
                                "W": [fluid.data("w", [104, 1], "float32")]}, outputs=outs,
                        attrs={"num_emb": 4, "space_len": 100, "rand_len": 4, "pyramid_layer": 2, "is_training": 1,
                               "drop_out_percent": 0.25, "seed": 3})
    feed = {"x": words, "w": np.ones((104, 1), "float32")}
    out, stays = fluid.Executor(fluid.CPUPlace()).run(program, feed=feed, fetch_list=["out", "droppos"],
                                                      return_numpy=False)
    assert abs(np.array(stays).sum() / 3999 - 0.75) < 0.03
    assert np.array(out).shape == (np.array(stays).sum(), 4) and out.lod() == [[0, np.array(stays).sum()]]


def assigned(truth, lengths):
    """Labels, and weights of the offsets, of 60 anchors at the left of an image of 100 x 100 pixels."""
    program = fluid.Program()
    corner = seeded(1).uniform(0, 20, (60, 2))
    anchors = np.concatenate([corner, corner + 15], 1).astype("float32")
    feed = {"anchor": anchors, "info": np.array([[100, 100, 1]] * len(lengths), "float32"),
            "truth": fluid.create_lod_tensor(np.array(truth, "float32"), [lengths], fluid.CPUPlace()),
            "crowd": fluid.create_lod_tensor(np.zeros((len(truth), 1), "int32"), [lengths], fluid.CPUPlace())}
    with fluid.program_guard(program, fluid.Program()):
        anchor, info = fluid.data("anchor", [60, 4]), fluid.data("info", [None, 3])
        boxes, crowd = fluid.data("truth", [None, 4], lod_level=1), fluid.data("crowd", [None, 1], "int32", lod_level=1)
        pred, logits = (fluid.layers.fill_constant([len(lengths), 60, k], "float32", 0.5) for k in (4, 1))
        outs = fluid.layers.rpn_target_assign(pred, logits, anchor, anchor, boxes, crowd, info,
                                              rpn_batch_size_per_im=20, use_random=True)
    labels, weights = fluid.Executor(fluid.CPUPlace()).run(program, feed=feed, fetch_list=[outs[2], outs[4]],
                                                           return_numpy=False)
    return np.array(labels).ravel(), np.array(weights), labels.recursive_sequence_lengths()[0]


def test_anchors_of_a_true_box_that_touches_none_become_background():
    # Each anchor is a candidate for both. Fluid 1.8.5 gave these counts in each of 10 runs.
    labels, weights, lengths = assigned([[70, 70, 90, 90], [60, 60, 80, 80]], [1, 1])
    assert lengths == [10, 10] and not labels.any()
    assert weights.shape == (20, 4) and not weights.any()
