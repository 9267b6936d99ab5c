"""Gradients of inputs that are not there, and attributes and files that ask for what no kernel does."""
import numpy as np
import pytest
from op_case import seeded

import anabranch.fluid as fluid


def run(op, inputs, outputs, attrs=None):
    """Arrays of `outputs` (slot -> fetched?) from one op appended by its schema alone."""
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        block = program.global_block()
        ins = {slot: [block.create_var(name=slot, shape=a.shape, dtype=str(a.dtype))] for slot, a in inputs.items()}
        outs = {slot: [block.create_var(name=slot + ".out")] for slot in outputs}
        block.append_op(type=op, inputs=ins, outputs=outs, attrs=attrs or {})
    got = fluid.Executor(fluid.CPUPlace()).run(program, feed=dict(inputs), fetch_list=[v[0] for v in outs.values()])
    return dict(zip(outputs, got))


def test_layer_norm_without_scale_and_bias_has_their_gradients():
    x, dy = seeded(0).rand(2, 4, 6).astype("float32")
    mean, variance = x.mean(1), x.var(1)
    outs = ["X@GRAD", "Scale@GRAD", "Bias@GRAD"]
    got = run("layer_norm_grad", {"X": x, "Mean": mean, "Variance": variance, "Y@GRAD": dy}, outs,
              {"begin_norm_axis": 1, "epsilon": 1e-5})
    hat = (x - mean[:, None]) / np.sqrt(variance + 1e-5)[:, None]
    np.testing.assert_allclose(got["Bias@GRAD"], dy.sum(0), rtol=1e-5)
    np.testing.assert_allclose(got["Scale@GRAD"], (dy * hat).sum(0), rtol=1e-4)


def test_group_norm_gradient_from_its_result_alone():
    """Files of 1.8.5 name no other input; ours give X as well, which also knows channels with a scale of 0."""
    rng = seeded(1)
    x, dy = rng.rand(2, 2, 4, 3).astype("float32")
    for scale in (np.array([1, 2, 3, 4], "float32"), np.array([0, 2, 3, 0], "float32")):
        inputs = {"X": x, "Scale": scale, "Bias": np.array([1, 0, 2, 1], "float32")}
        out = run("group_norm", inputs, ["Y", "Mean", "Variance"], {"groups": 2})
        outs = ["X@GRAD", "Scale@GRAD", "Bias@GRAD"]
        short = {"Y": out["Y"], "Scale": scale, "Bias": inputs["Bias"], "Variance": out["Variance"], "Y@GRAD": dy}
        full = run("group_norm_grad", dict(short, X=x, Mean=out["Mean"]), outs, {"groups": 2})
        got = run("group_norm_grad", short, outs, {"groups": 2})
        np.testing.assert_allclose(got["Bias@GRAD"], full["Bias@GRAD"], rtol=1e-5)
        np.testing.assert_allclose(got["Scale@GRAD"], full["Scale@GRAD"] * (scale != 0), rtol=1e-4, atol=1e-5)
        if scale.all():
            np.testing.assert_allclose(got["X@GRAD"], full["X@GRAD"], rtol=1e-3, atol=1e-4)
        else:
            assert np.abs(full["Scale@GRAD"][0]) > 1e-3


def test_the_original_loses_gradients_of_a_scale_of_zero():
    """It divides its result by the scale; under the flag, so does the gradient that has X."""
    rng = seeded(2)
    x, dy = rng.rand(2, 2, 4, 3).astype("float32")
    inputs = {"X": x, "Scale": np.array([0, 2, 3, 0], "float32"), "Bias": np.ones(4, "float32")}
    out = run("group_norm", inputs, ["Y", "Mean", "Variance"], {"groups": 2})
    given = dict(inputs, Y=out["Y"], Mean=out["Mean"], Variance=out["Variance"], **{"Y@GRAD": dy})
    whole = run("group_norm_grad", given, ["X@GRAD", "Scale@GRAD", "Bias@GRAD"], {"groups": 2})["Scale@GRAD"]
    fluid.set_flags({"FLAGS_fluid_exact": "1.8.5"})
    try:
        lost = run("group_norm_grad", given, ["X@GRAD", "Scale@GRAD", "Bias@GRAD"], {"groups": 2})["Scale@GRAD"]
    finally:
        fluid.set_flags({"FLAGS_fluid_exact": ""})
    assert np.abs(whole).min() > 1e-3
    assert lost[[0, 3]].tolist() == [0, 0]
    np.testing.assert_allclose(lost[[1, 2]], whole[[1, 2]], rtol=1e-3)


F = np.zeros((3, 4), "float32")
PLAIN = {"strides": [1, 1], "paddings": [0, 0], "dilations": [1, 1], "groups": 1, "data_format": "NCHW",
         "padding_algorithm": "EXPLICIT", "output_size": []}
IDS = np.zeros((3, 1), "int64")
REFUSED = {
    "nce_grad": ({"Input": F, "Label": IDS, "Weight": np.zeros((10, 4), "float32"),
                  "SampleLogits": np.zeros((3, 11), "float32"), "SampleLabels": np.zeros((3, 11), "int64"),
                  "Cost@GRAD": np.zeros((3, 1), "float32")}, {"num_total_classes": 10}),
    "hierarchical_sigmoid_grad": ({"X": F, "W": np.zeros((4, 4), "float32"), "Label": IDS,
                                   "PreOut": np.zeros((3, 3), "float32"), "Out@GRAD": np.zeros((3, 1), "float32")},
                                  {"num_classes": 5}),
    "conv2d_grad": ({"Input": np.zeros((1, 2, 3, 3), "float32"), "Filter": np.zeros((2, 2, 3, 3), "float32"),
                     "Output@GRAD": np.zeros((1, 2, 1, 1), "float32")}, PLAIN),
    "conv2d_transpose_grad": ({"Input": np.zeros((1, 2, 1, 1), "float32"), "Filter": np.zeros((2, 2, 3, 3), "float32"),
                               "Output@GRAD": np.zeros((1, 2, 3, 3), "float32")}, PLAIN),
}


@pytest.mark.parametrize("op", REFUSED)
def test_the_gradient_of_a_bias_that_is_not_there_is_refused(op):
    inputs, attrs = REFUSED[op]
    others = ["Input@GRAD", "Filter@GRAD"] if op.startswith("conv") else []
    run(op, inputs, others, attrs)
    with pytest.raises(fluid.core.EnforceNotMet, match="Bias"):
        run(op, inputs, others + ["Bias@GRAD"], attrs)


@pytest.mark.parametrize("attr", ["fuse_relu", "fuse_brelu", "fuse_relu_before_depthwise_conv",
                                  "fuse_residual_connection"])
def test_fused_forms_of_convolutions_are_refused(attr):
    inputs = {"Input": np.zeros((1, 2, 3, 3), "float32"), "Filter": np.zeros((2, 2, 3, 3), "float32")}
    run("conv2d", inputs, ["Output"], {attr: False})
    with pytest.raises(fluid.core.EnforceNotMet, match="append an op"):
        run("conv2d", inputs, ["Output"], {attr: True})


def test_rmsprop_with_a_mean_of_gradients_writes_it():
    numbers = {slot: np.ones(2, "float32") for slot in ("Param", "Grad", "MeanSquare", "Moment", "MeanGrad")}
    numbers["LearningRate"] = np.ones(1, "float32")
    outs = ["ParamOut", "MomentOut", "MeanSquareOut"]
    run("rmsprop", numbers, outs + ["MeanGradOut"], {"centered": True})
    with pytest.raises(fluid.core.EnforceNotMet, match="MeanGradOut must be given"):
        run("rmsprop", numbers, outs, {"centered": True})


@pytest.mark.parametrize("op", ["cross_entropy", "cross_entropy2"])
def test_losses_of_labels_without_the_last_axis_have_none(op):
    x = np.full((3, 4), 0.25, "float32")
    got = run(op, {"X": x, "Label": np.array([0, 1, 2])}, ["Y"] + (["XShape", "MatchX"] if op[-1] == "2" else []))
    assert got["Y"].shape == (3,)
    np.testing.assert_allclose(got["Y"], np.log(4), rtol=1e-6)
