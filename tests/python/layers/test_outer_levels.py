"""Ops that take one LoD level and get two: the sequences of the outer one, as in Fluid 1.8.5."""
import numpy as np
import pytest

import anabranch.fluid as fluid

layers = fluid.layers
TWO = [[2, 1], [2, 1, 3]]  # six rows: the outer sequences have three rows each
COUNTS = [[2, 1]]  # the outer level, read as lengths of rows
ROWS = [[3, 3]]


def run(build, feeds, grad=None):
    """The tensors that `build` returns for {name: (array, lengths)}, and the gradient of their sum."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        fed = {n: fluid.data(n, [None] + list(a.shape[1:]), str(a.dtype), lod_level=len(lengths))
               for n, (a, lengths) in feeds.items()}
        if grad:
            fed[grad].stop_gradient = False
        outs = build(**fed)
        outs = list(outs) if isinstance(outs, (list, tuple)) else [outs]
        if grad:
            outs += fluid.gradients(layers.reduce_sum(outs[0]), [fed[grad]])
    with fluid.scope_guard(fluid.Scope()):
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        return exe.run(main, {n: fluid.create_lod_tensor(a, lengths, fluid.CPUPlace())
                              for n, (a, lengths) in feeds.items()}, outs, return_numpy=False)


def numbers(seed, *shape):
    return np.random.RandomState(seed).uniform(-1, 1, shape).astype("float32")


def labels(seed, low, high, rows, dtype="int64"):
    return np.random.RandomState(seed).randint(low, high, (rows, 1)).astype(dtype)


def equal(ours, expected):
    for a, b in zip(ours, expected):
        np.testing.assert_allclose(np.array(a), np.array(b), rtol=1e-5, atol=1e-6)


def test_warpctc():
    x, y = numbers(1, 8, 4), labels(2, 1, 4, 4, "int32")

    def loss(x, y):
        return layers.warpctc(x, y, norm_by_times=True)

    nested = run(loss, {"x": (x, [[2, 1], [3, 2, 3]]), "y": (y, [[2, 1], [1, 2, 1]])}, "x")
    equal(nested, run(loss, {"x": (x, [[5, 3]]), "y": (y, [[3, 1]])}, "x"))
    equal(run(loss, {"x": (x, [[2, 1], [3, 2, 3]]), "y": (y, [[3, 1]])}, "x"), nested)


def test_ctc_greedy_decoder():
    x = numbers(3, 8, 4)
    nested, = run(lambda x: layers.ctc_greedy_decoder(x, 0), {"x": (x, [[2, 1], [3, 2, 3]])})
    flat, = run(lambda x: layers.ctc_greedy_decoder(x, 0), {"x": (x, [[5, 3]])})
    assert nested.lod() == flat.lod() and np.array(nested).tolist() == np.array(flat).tolist()


def test_edit_distance_takes_outer_offsets_as_rows():
    x, y = labels(4, 0, 3, 6), labels(5, 0, 3, 6)

    def distance(x, y):
        return layers.edit_distance(x, y, normalized=False)

    equal(run(distance, {"x": (x, TWO), "y": (y, TWO)}), run(distance, {"x": (x[:3], COUNTS), "y": (y[:3], COUNTS)}))
    equal(run(distance, {"x": (x, TWO), "y": (y, ROWS)}), run(distance, {"x": (x[:3], COUNTS), "y": (y, ROWS)}))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_linear_chain_crf_takes_outer_offsets_as_rows(dtype):
    x, y = numbers(6, 6, 3).astype(dtype), labels(7, 0, 3, 6)

    def likelihood(x, y):
        return layers.linear_chain_crf(x, y, fluid.ParamAttr("w", initializer=fluid.initializer.Constant(0.1)))

    loss, slope = run(likelihood, {"x": (x, TWO), "y": (y, TWO)}, "x")
    expected, first = run(likelihood, {"x": (x[:3], COUNTS), "y": (y[:3], COUNTS)}, "x")
    equal([loss], [expected])
    np.testing.assert_allclose(np.array(slope), np.concatenate([np.array(first), np.zeros((3, 3))]), rtol=1e-5)


def test_an_outer_level_beyond_the_rows_raises():
    """The inner sequences are empty, so that there are more of them than rows."""
    x = labels(8, 0, 3, 1)
    with pytest.raises(ValueError, match="outermost LoD level of Hyps must end at its last row or before it, got row"):
        run(lambda x, y: layers.edit_distance(x, y), {"x": (x, [[1, 2], [0, 0, 1]]), "y": (x, [[1, 2], [0, 0, 1]])})


@pytest.mark.parametrize("layer, build", [
    ("crf_decoding", lambda x, y: layers.crf_decoding(x, fluid.ParamAttr("w"))),
    ("chunk_eval", lambda x, y: layers.chunk_eval(y, y, "IOB", 1)[0]),
    ("match_matrix_tensor", lambda x, y: fluid.contrib.layers.match_matrix_tensor(x, x, 2)[0]),
])
def test_others_refuse_two_levels_as_fluid_1_8_5_does(layer, build):
    def made(x, y):
        layers.create_parameter([5, 3], "float32", attr=fluid.ParamAttr("w"))
        return build(x, y)

    with pytest.raises(ValueError, match="%s(.|\n)*one LoD level, got 2" % layer):
        run(made, {"x": (numbers(9, 6, 3), TWO), "y": (labels(10, 0, 3, 6), TWO)})


def test_declared_levels_are_those_of_fluid_1_8_5():
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x = fluid.data("x", [None, 4], lod_level=1)
        nested = fluid.data("nested", [None, 4], lod_level=2)
        counts = layers.fill_constant([2, 1], "int64", 1)
        product = fluid.contrib.layers.match_matrix_tensor(x, x, 2)[0]
        image = fluid.contrib.layers.var_conv_2d(product, x, x, input_channel=2, output_channel=1, filter_size=2)
        declared = {
            "sequence_slice": layers.sequence_slice(x, counts, counts),
            "ctc_greedy_decoder": layers.ctc_greedy_decoder(x, 0),
            "match_matrix_tensor": product, "var_conv_2d": image,
            "match_matrix_tensor of 2": fluid.contrib.layers.match_matrix_tensor(nested, x, 2)[0],
            "sequence_reshape": layers.sequence_reshape(x, 2),
            "sequence_reshape of 2": layers.sequence_reshape(nested, 2),
            "lod_append": layers.lod_append(x, [0, 1, 2]), "lod_append of 2": layers.lod_append(nested, [0, 1, 2]),
            "lod_append of none": layers.lod_append(counts, [0, 1, 2])}
    assert {name: out.lod_level for name, out in declared.items()} == {
        "sequence_slice": 0, "ctc_greedy_decoder": 0, "match_matrix_tensor": 1, "var_conv_2d": 0, "sequence_reshape": 1,
        "sequence_reshape of 2": 1, "match_matrix_tensor of 2": 2, "lod_append": 2, "lod_append of 2": 3,
        "lod_append of none": 1}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("lengths, maxlen, rows", [     # of 1.8.5
    ([1, 2, 3], None, [[1, 0, 0], [1, 1, 0], [1, 1, 1]]),
    ([1, 2.5, 3.7], None, [[1, 0, 0], [1, 1, 1], [1, 1, 1]]),
    ([1, 2.5, 3.7], 4, [[1, 0, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]),
    ([0.5, -1, 2], None, [[1, 0], [0, 0], [1, 1]]),
])
def test_sequence_mask_of_lengths_that_are_floats(dtype, lengths, maxlen, rows):
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        mask = layers.sequence_mask(fluid.data("x", [None], dtype), maxlen=maxlen)
        got, = fluid.Executor().run(feed={"x": np.array(lengths, dtype)}, fetch_list=[mask])
    assert mask.dtype == fluid.core.VarDesc.VarType.INT64 and got.tolist() == rows
