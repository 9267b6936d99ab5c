"""Sequence layers over variables that are declared without sequences: refused, or accepted, as by Fluid 1.8.5."""
import numpy as np
import pytest

import anabranch.fluid as fluid
from anabranch.fluid.core import EnforceNotMet

layers, contrib = fluid.layers, fluid.contrib.layers


@pytest.fixture(autouse=True)
def fresh_programs():
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
        yield


def floats(name, level, width=4):
    return fluid.data(name, [None, width], "float32", lod_level=level)


def ids(name, level):
    return fluid.data(name, [None, 1], "int64", lod_level=level)


def padded(x):
    return layers.sequence_pad(x, layers.zeros([1], "float32"))


#: layer -> LoD levels of its inputs -> the variable that is refused, or None
REFUSING = {
    "sequence_pool": (lambda x: layers.sequence_pool(x, "sum"), {(0,): "x", (1,): None, (2,): None}),
    "sequence_first_step": (layers.sequence_first_step, {(0,): "x", (1,): None, (2,): None}),
    "sequence_last_step": (layers.sequence_last_step, {(0,): "x", (1,): None, (2,): None}),
    "sequence_pad": (padded, {(0,): "x", (1,): None, (2,): None}),
    "match_matrix_tensor": (lambda x, y: contrib.match_matrix_tensor(x, y, 1),
                            {(0, 0): "x", (0, 1): "x", (1, 0): "y", (1, 1): None, (2, 2): None}),
}


@pytest.mark.parametrize("layer, levels, refused", [
    (layer, levels, refused) for layer, (_, cases) in REFUSING.items() for levels, refused in cases.items()])
def test_refused_levels(layer, levels, refused):
    make = REFUSING[layer][0]
    given = [floats(name, level) for name, level in zip("xy", levels)]
    if refused is None:
        make(*given)
        return
    with pytest.raises(EnforceNotMet, match="%s: .* must have lod_level 1 at least, got lod_level 0 of variable %s\n"
                       % (layer, refused)):
        make(*given)


@pytest.mark.parametrize("level", [0, 1, 2])
def test_level_of_fused_embedding(level):
    words = ids("words", level)
    if level == 1:
        contrib.fused_embedding_seq_pool(words, [10, 4])
        return
    with pytest.raises(EnforceNotMet, match="input must have lod_level 1, got lod_level %d of variable words" % level):
        contrib.fused_embedding_seq_pool(words, [10, 4])


def test_the_error_names_what_is_fed():
    hidden = layers.fc([layers.embedding(ids("words", 0), [10, 4]), floats("dense", 0)], 3)
    floats("other", 0)
    with pytest.raises(ValueError, match="of variable fc_0.tmp_3, which is computed from words, dense\n"):
        layers.sequence_pool(hidden, "max")


def test_nets_refuse_too():
    with pytest.raises(EnforceNotMet, match="sequence_pool: .*computed from x"):
        fluid.nets.sequence_conv_pool(floats("x", 0), 3, 3)


def test_a_pooled_variable_has_one_level_less():
    once = layers.sequence_pool(floats("x", 1), "sum")
    with pytest.raises(EnforceNotMet, match="got lod_level 0 of variable sequence_pool_0.tmp_0"):
        layers.sequence_pool(once, "sum")
    layers.sequence_pool(layers.sequence_pool(floats("y", 2), "sum"), "sum")


ACCEPTING = {
    "sequence_conv": lambda: layers.sequence_conv(floats("x", 0), 3),
    "row_conv": lambda: layers.row_conv(floats("x", 0), 2),
    "sequence_softmax": lambda: layers.sequence_softmax(floats("x", 0, 1)),
    "sequence_reverse": lambda: layers.sequence_reverse(floats("x", 0)),
    "sequence_reshape": lambda: layers.sequence_reshape(floats("x", 0), 2),
    "sequence_enumerate": lambda: layers.sequence_enumerate(ids("x", 0), 2),
    "sequence_concat": lambda: layers.sequence_concat([floats("x", 0), floats("y", 0)]),
    "sequence_expand": lambda: layers.sequence_expand(floats("x", 0), floats("y", 0)),
    "sequence_expand_as": lambda: layers.sequence_expand_as(floats("x", 0), floats("y", 0)),
    "sequence_slice": lambda: layers.sequence_slice(floats("x", 0), ids("y", 0), ids("z", 0)),
    "sequence_scatter": lambda: layers.sequence_scatter(fluid.data("x", [3, 6]), ids("y", 0), floats("z", 0, 1)),
    "sequence_unpad": lambda: layers.sequence_unpad(fluid.data("x", [None, 5, 4]), fluid.data("y", [None], "int64")),
    "lod_reset": lambda: layers.lod_reset(floats("x", 0), floats("y", 0)),
    "dynamic_lstm": lambda: layers.dynamic_lstm(floats("x", 0, 8), 8),
    "dynamic_gru": lambda: layers.dynamic_gru(floats("x", 0, 12), 4),
    "linear_chain_crf": lambda: layers.linear_chain_crf(floats("x", 0), ids("y", 0)),
    "ctc_greedy_decoder": lambda: layers.ctc_greedy_decoder(floats("x", 0), 0),
    "edit_distance": lambda: layers.edit_distance(ids("x", 0), ids("y", 0)),
    "chunk_eval": lambda: layers.chunk_eval(ids("x", 0), ids("y", 0), "IOB", 2),
    "warpctc": lambda: layers.warpctc(floats("x", 0), fluid.data("y", [None, 1], "int32")),
}


@pytest.mark.parametrize("layer", ACCEPTING)
def test_accepted_without_sequences(layer):
    ACCEPTING[layer]()


def test_levels_pass_through_the_layers_between():
    words = ids("words", 1)
    x = layers.dropout(layers.fc(layers.embedding(words, [10, 4]), 8, act="relu"), 0.5)
    x = layers.elementwise_add(layers.scale(x, 2.0), layers.concat([layers.cast(x, "float32")], 1))
    pooled = layers.sequence_pool(layers.dynamic_lstm(layers.fc(x, 8), 8)[0], "last")
    executor = fluid.Executor()
    with fluid.scope_guard(fluid.Scope()):
        executor.run(fluid.default_startup_program())
        got, = executor.run(feed={"words": fluid.create_lod_tensor(np.zeros([5, 1], "int64"), [[2, 3]],
                                                                   fluid.CPUPlace())}, fetch_list=[pooled])
    assert got.shape == (2, 2)


@pytest.mark.parametrize("levels", [(1, 1), (2, 1), (1, 2)])
def test_pooled_images_have_the_level_of_the_images(levels):
    of_images, of_rows = levels
    images, rows, columns = floats("images", of_images, 1), floats("rows", of_rows), floats("columns", 1)
    assert contrib.sequence_topk_avg_pooling(images, rows, columns, [1, 2], 2).lod_level == of_images
