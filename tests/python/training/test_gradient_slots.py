"""The slots that gradient operators name, also empty ones, are those of PaddlePaddle 1.8.5: scripts list them."""
import pytest

import anabranch.fluid as fluid

layers = fluid.layers


def classes(x):
    return layers.cast(layers.slice(x, [1], [0], [1]), "int64")


#: Operator -> a layer whose gradient has it; ``x``: a matrix, ``s``: sequences, ``i``: images.
LAYERS = {
    "batch_norm_grad": lambda x, s, i: layers.batch_norm(i),
    "bilinear_tensor_product_grad": lambda x, s, i: layers.bilinear_tensor_product(x, x * 2.0, 3, bias_attr=False),
    "conv2d_grad": lambda x, s, i: layers.conv2d(i, 2, 3),
    "conv3d_grad": lambda x, s, i: layers.conv3d(layers.unsqueeze(i, [1]), 2, 3),
    "data_norm_grad": lambda x, s, i: layers.data_norm(x),
    "flatten2_grad": lambda x, s, i: layers.flatten(i),
    "group_norm_grad": lambda x, s, i: layers.group_norm(i, 2),
    "gru_grad": lambda x, s, i: layers.dynamic_gru(layers.fc(s, 12), 4),
    "hierarchical_sigmoid_grad": lambda x, s, i: layers.hsigmoid(x, classes(x), 5),
    "im2sequence_grad": lambda x, s, i: layers.im2sequence(i, 2),
    "instance_norm_grad": lambda x, s, i: layers.instance_norm(i),
    "layer_norm_grad": lambda x, s, i: layers.layer_norm(x, scale=False),
    "lstm_grad": lambda x, s, i: layers.dynamic_lstm(layers.fc(s, 16), 16)[0],
    "prelu_grad": lambda x, s, i: layers.prelu(i, "channel"),
    "scale": lambda x, s, i: layers.sums([x, x * 2.0]),
    "sequence_conv_grad": lambda x, s, i: layers.sequence_conv(s, 3),
    "sequence_pool_grad": lambda x, s, i: layers.sequence_pool(s, "average"),
    "softmax_with_cross_entropy_grad": lambda x, s, i: layers.softmax_with_cross_entropy(x, classes(x)),
}
#: What 1.8.5 names; a number of variables other than one follows the name.
NAMED = {
    "batch_norm_grad": ("Bias SavedMean SavedVariance Scale X Y@GRAD", "Bias@GRAD Scale@GRAD X@GRAD"),
    "bilinear_tensor_product_grad": ("Out@GRAD Weight X Y", "Bias@GRAD:0 Weight@GRAD X@GRAD Y@GRAD"),
    "conv2d_grad": ("Bias:0 Filter Input Output@GRAD", "Bias@GRAD:0 Filter@GRAD Input@GRAD"),
    "conv3d_grad": ("Filter Input Output@GRAD ResidualData:0", "Filter@GRAD Input@GRAD"),
    "data_norm_grad": (
        "Means Scales X Y@GRAD bias:0 scale_w:0",
        "BatchSize BatchSize@GRAD BatchSquareSum BatchSquareSum@GRAD BatchSum BatchSum@GRAD X@GRAD bias@GRAD:0 "
        "scale_w@GRAD:0"),
    "flatten2_grad": ("Out@GRAD XShape", "X@GRAD"),
    "group_norm_grad": ("Bias:0 Scale:0 Variance Y Y@GRAD", "Bias@GRAD:0 Scale@GRAD:0 X@GRAD"),
    "gru_grad": (
        "BatchGate BatchHidden BatchResetHiddenPrev Bias H0:0 Hidden Hidden@GRAD Input Weight",
        "Bias@GRAD H0@GRAD:0 Input@GRAD Weight@GRAD"),
    "hierarchical_sigmoid_grad": ("Bias Label Out@GRAD PathCode:0 PathTable:0 PreOut W X", "Bias@GRAD W@GRAD X@GRAD"),
    "im2sequence_grad": ("Out@GRAD X", "X@GRAD"),
    "instance_norm_grad": ("SavedMean SavedVariance Scale X Y@GRAD", "Bias@GRAD Scale@GRAD X@GRAD"),
    "layer_norm_grad": ("Bias Mean Scale:0 Variance X Y@GRAD", "Bias@GRAD Scale@GRAD:0 X@GRAD"),
    "lstm_grad": (
        "BatchCellPreAct BatchGate Bias C0:0 Cell H0:0 Hidden Hidden@GRAD Input Weight",
        "Bias@GRAD C0@GRAD:0 H0@GRAD:0 Input@GRAD Weight@GRAD"),
    "prelu_grad": ("Alpha Out@GRAD X", "Alpha@GRAD X@GRAD"),
    "scale": ("ScaleTensor:0 X", "Out"),
    "sequence_conv_grad": ("Filter Out@GRAD X", "Filter@GRAD X@GRAD"),
    "sequence_pool_grad": ("Out@GRAD X", "X@GRAD"),
    "softmax_with_cross_entropy_grad": ("Label Loss@GRAD Softmax", "Logits@GRAD"),
}


@pytest.fixture(autouse=True)
def exact():
    before = fluid.get_flags("FLAGS_fluid_exact")
    fluid.set_flags({"FLAGS_fluid_exact": "1.8.5"})
    yield
    fluid.set_flags(before)


def described(names, arguments):
    counts = [(name, len(arguments(name))) for name in sorted(names)]
    return " ".join(name if count == 1 else "%s:%d" % (name, count) for name, count in counts)


@pytest.mark.parametrize("name", sorted(NAMED))
def test_a_gradient_operator_names_the_slots_of_1_8_5(name):
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()), fluid.unique_name.guard():
        given = {"x": fluid.data("x", [None, 4]), "s": fluid.data("s", [None, 4], lod_level=1),
                 "i": fluid.data("i", [None, 4, 6, 6])}
        for var in given.values():
            var.stop_gradient = False
        fluid.backward.append_backward(layers.mean(LAYERS[name](**given)))
    op = [op for op in main.global_block().ops if op.type == name][-1]
    assert (described(op.input_names, op.input), described(op.output_names, op.output)) == NAMED[name]
