"""Inputs that do not belong together are refused before a kernel touches memory: shapes, dtypes, kinds of values."""
import numpy as np
import pytest

import anabranch.fluid as fluid

ROWS = fluid.core.VarDesc.VarType.SELECTED_ROWS
PLACE = fluid.CPUPlace()


class Sparse:
    """Sparse rows with any ids, height and values."""

    def __init__(self, ids, height, values):
        self.ids, self.height, self.values = ids, height, values


class Seq:
    """A tensor with any offsets."""

    def __init__(self, array, lod):
        self.array, self.lod = array, lod


def ones(*shape, dtype="float32"):
    return np.ones(shape, dtype)


def _put(scope, name, value):
    if isinstance(value, Sparse):
        rows = scope.var(name).get_selected_rows()
        rows.set_rows(value.ids)
        rows.set_height(value.height)
        rows.get_tensor().set(value.values, PLACE)
        return dict(type=ROWS, shape=list(value.values.shape), dtype=str(value.values.dtype))
    array, lod = (value.array, value.lod) if isinstance(value, Seq) else (value, [])
    tensor = scope.var(name).get_tensor()
    tensor.set(array, PLACE)
    tensor.set_lod(lod)
    return dict(shape=list(array.shape), dtype=str(array.dtype), lod_level=len(lod))


def run(op, inputs, outputs, attrs=None):
    """The scope after one op; ``inputs``: {slot: value or list of values}, ``outputs``: {slot: names}."""
    program, scope = fluid.Program(), fluid.Scope()
    block = program.global_block()
    ins = {}
    for slot, values in inputs.items():
        for k, value in enumerate(values if isinstance(values, list) else [values]):
            name = "%s.%d" % (slot, k)
            block.create_var(name=name, persistable=True, **_put(scope, name, value))
            ins.setdefault(slot, []).append(name)
    for name in sum(outputs.values(), []):
        if not block.has_var(name):
            block.create_var(name=name, persistable=True)
    block.append_op(type=op, inputs=ins, outputs=outputs, attrs=attrs or {})
    fluid.Executor(PLACE).run(program, scope=scope)
    return scope


OFFSETS = [[0, 1, 4]]
BEYOND = [[0, 1, 9]]
GRU = {"Input": Seq(ones(4, 9), OFFSETS), "Weight": ones(3, 9), "BatchGate": ones(4, 9), "BatchHidden": ones(4, 3),
       "BatchResetHiddenPrev": ones(4, 3), "Hidden": Seq(ones(1, 12), [[0, 1]]), "Hidden@GRAD": ones(1, 12)}
LSTM = {"Weight": ones(3, 12), "Bias": ones(1, 12), "Hidden": Seq(ones(4, 3), OFFSETS), "Cell": ones(4, 3),
        "BatchGate": ones(8, 6), "BatchCellPreAct": ones(4, 3), "Hidden@GRAD": ones(4, 3)}
PAIR = {"X": ones(30, 10), "Y": ones(30, 10), "Out": ones(1, 1), "Out@GRAD": ones(30, 10)}
BOTH = {"X@GRAD": ["gx"], "Y@GRAD": ["gy"]}

LOOKED_UP = {"W": ones(5, 3), "Ids": ones(2, 2, 1, dtype="int64")}
ONE = {"table": [0], "padding_idx": [-1], "pool": [0], "pad_value": [0.0], "source": [0], "width": [6]}
POOLED = {"W": ones(5, 3), "Ids": Seq(ones(4, 1, dtype="int64"), OFFSETS)}
PLACES = {"padding_idx": [-1], "column": [0], "per_row": [1], "pool": [1]}
SPARSE = {"W@GRAD": ["gw"]}

REFUSED = {
    "fused_embedding_concat of another rank": (LOOKED_UP, {"Out": ["o"]},
                                               dict(ONE, ids_rank=[2], ids_a_row=[2], last_is_one=[0])),
    "fused_embedding_concat of more ids": (LOOKED_UP, {"Out": ["o"]},
                                           dict(ONE, ids_rank=[3], ids_a_row=[1], last_is_one=[1])),
    "fused_embedding_concat of the last axis": (dict(LOOKED_UP, Ids=ones(2, 1, 2, dtype="int64")), {"Out": ["o"]},
                                                dict(ONE, ids_rank=[3], ids_a_row=[2], last_is_one=[1])),
    "fused_embedding_concat without ranks": (LOOKED_UP, {"Out": ["o"]}, dict(ONE, ids_a_row=[2])),
    "fused_embedding_grad of more rows": (dict(POOLED, Grad=ones(4, 3)), SPARSE, dict(PLACES, columns=[0])),
    "fused_embedding_grad of another form": (dict(POOLED, Grad=ones(2, 1, 3)), SPARSE, dict(PLACES, columns=[0])),
    "fused_embedding_grad of more columns": (dict(POOLED, Grad=ones(2, 5)), SPARSE, dict(PLACES, columns=[4])),
    "fused_embedding_grad without columns": (dict(POOLED, Grad=ones(2, 3)), SPARSE, dict(PLACES, columns=[3, 3])),
    "concat_grad": ({"X": [ones(2, 2000), ones(2000, 2)], "Out@GRAD": ones(4, 2000)}, {"X@GRAD": ["a", "b"]},
                    {"axis": 1}),
    "concat_grad of another dtype": ({"X": [ones(2, 2), ones(2, 3, dtype="float64")], "Out@GRAD": ones(2, 5)},
                                     {"X@GRAD": ["a", "b"]}, {"axis": 1}),
    "elementwise_div_grad": (PAIR, BOTH, {"axis": -1}),
    "elementwise_max_grad": (dict(PAIR, **{"Out@GRAD": ones(30, 1)}), BOTH, {"axis": -1}),
    "scatter_grad": ({"Ids": ones(2, dtype="int64"), "Updates": ones(2, 3, dtype="int8"),
                      "Out@GRAD": ones(4, 3, dtype="float64")}, {"X@GRAD": ["gx"], "Updates@GRAD": ["gu"]}, {}),
    "cvm_grad": ({"X": Seq(ones(4, 3), BEYOND), "CVM": ones(2, 2), "Y@GRAD": ones(4, 3)}, {"X@GRAD": ["gx"]}, {}),
    "sequence_expand_grad": ({"X": Seq(ones(4, 3), BEYOND), "Y": Seq(ones(4, 1), OFFSETS), "Out@GRAD": ones(25, 3)},
                             {"X@GRAD": ["gx"]}, {}),
    "fused_embedding_seq_pool": ({"W": ones(5, 3), "Ids": Seq(ones(4, 1, dtype="int64"), BEYOND)}, {"Out": ["o"]}, {}),
    "gru_grad": (GRU, {"Input@GRAD": ["gx"]}, {}),
    "lstm_grad": (LSTM, {"Input@GRAD": ["gx"]}, {"use_peepholes": False}),
    "addmm of inner extents": ({"Input": ones(1, 3), "X": ones(2, 3), "Y": ones(4, 3)}, {"Out": ["o"]}, {}),
    "addmm of a smaller inner extent": ({"Input": ones(1, 3), "X": ones(2, 4), "Y": ones(3, 4)}, {"Out": ["o"]}, {}),
    "split of more outputs": ({"X": ones(6, 2)}, {"Out": ["a", "b", "c"]}, {"num": 2, "axis": 0}),
    "split_byref of more outputs": ({"X": ones(6, 2)}, {"Out": ["a", "b", "c"]}, {"num": 2}),
    "split_byref of fewer outputs": ({"X": ones(6, 2)}, {"Out": ["a", "b"]}, {"num": 3}),
    "accuracy of one list of indices": ({"Out": ones(4), "Indices": ones(4, dtype="int64"),
                                         "Label": ones(4, 1, dtype="int64")},
                                        {"Accuracy": ["a"], "Correct": ["c"], "Total": ["t"]}, {}),
}


@pytest.mark.parametrize("what", sorted(REFUSED))
def test_values_that_do_not_fit_each_other_are_refused(what):
    with pytest.raises(fluid.core.EnforceNotMet) as caught:
        run(what.split()[0], *REFUSED[what])
    assert caught.value.kind in ("ShapeMismatch", "InvalidArgument")


def test_lists_that_a_program_leaves_out_are_not_compared():
    run("fused_embedding_concat", LOOKED_UP, {"Out": ["o"]}, ONE)
    run("fused_embedding_concat", LOOKED_UP, {"Out": ["o"]}, dict(ONE, ids_rank=[3], ids_a_row=[2], last_is_one=[1]))
    for columns in ([], [5]):
        run("fused_embedding_grad", dict(POOLED, Grad=ones(2, 5)), SPARSE, dict(PLACES, columns=columns))


TABLE = Sparse([0, 1], 1000, ones(2, 3))
GIVEN = Seq(ones(4, 3), OFFSETS)
KINDS = {
    "lod_reset": ({"X": GIVEN, "Y": Sparse([0, 1], 4, np.array([0, 4]))}, {"Out": ["o"]}, {}),
    "lod_reset_grad": ({"X": TABLE, "Out@GRAD": GIVEN}, {"X@GRAD": ["o"]}, {}),
    "sequence_reshape_grad": ({"X": TABLE, "Out@GRAD": GIVEN}, {"X@GRAD": ["o"]}, {"new_dim": 3}),
    "scatter_nd_add_grad": ({"Index": ones(4, 1, dtype="int64"), "Updates": TABLE, "Out@GRAD": GIVEN},
                            {"X@GRAD": ["gx"], "Updates@GRAD": ["o"]}, {}),
    "relu": ({"X": TABLE}, {"Out": ["o"]}, {}),
}


@pytest.mark.parametrize("op", sorted(KINDS))
def test_sparse_rows_are_refused_where_a_tensor_is_meant(op):
    with pytest.raises(fluid.core.EnforceNotMet, match="must be a LOD_TENSOR, got .* SELECTED_ROWS") as caught:
        run(op, *KINDS[op])
    assert caught.value.kind == "InvalidArgument"


@pytest.mark.parametrize("op", sorted(KINDS))
def test_sparse_rows_that_appear_at_run_time_are_refused_too(op):
    """The program says that the variable is a tensor."""
    inputs, outputs, attrs = KINDS[op]
    slot, = [s for s, v in inputs.items() if isinstance(v, Sparse)]
    sparse = inputs[slot]
    program, scope = fluid.Program(), fluid.Scope()
    block = program.global_block()
    for name, value in inputs.items():
        declared = _put(scope, name, value)
        if name == slot:
            declared = dict(shape=[-1, *sparse.values.shape[1:]], dtype=str(sparse.values.dtype))
        block.create_var(name=name, persistable=True, **declared)
    for name in sum(outputs.values(), []):
        block.create_var(name=name)
    block.append_op(type=op, inputs={s: [s] for s in inputs}, outputs=outputs, attrs=attrs)
    with pytest.raises(fluid.core.EnforceNotMet, match="must be a LOD_TENSOR, got %s" % slot):
        fluid.Executor(PLACE).run(program, scope=scope, fetch_list=["o"])


@pytest.mark.parametrize("op", ["merge_selected_rows", "get_tensor_from_selected_rows", "clip_by_norm", "scale", "sum"])
@pytest.mark.parametrize("rows", [Sparse(list(range(5000)), 100000, ones(2, 4)), Sparse([1, 0], -2, ones(2, 4))],
                         ids=["more ids than values", "height -2"])
def test_sparse_rows_that_are_inconsistent_are_refused(op, rows):
    attrs = {"max_norm": 1.0} if op == "clip_by_norm" else {}
    with pytest.raises(fluid.core.EnforceNotMet, match="sparse rows must") as caught:
        run(op, {"X": rows}, {"Out": ["o"]}, attrs)
    assert caught.value.kind in ("InvalidArgument", "ShapeMismatch")


def test_a_tensor_cannot_be_made_of_a_table_of_unknown_height():
    with pytest.raises(fluid.core.EnforceNotMet, match="o must have a known shape") as caught:
        run("fill_zeros_like", {"X": Sparse([1, 0], -1, ones(2, 4))}, {"Out": ["o"]})
    assert caught.value.kind == "InvalidArgument"


def test_a_number_is_not_unstacked():
    with pytest.raises(fluid.core.EnforceNotMet, match="X must have at least one axis") as caught:
        run("unstack", {"X": np.array(1.0, "float32")}, {"Y": ["a"]}, {"axis": 0, "num": 1})
    assert caught.value.kind == "ShapeMismatch"


def test_inner_extents_meet_as_far_as_they_are_known():
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        bias, x = fluid.data("bias", [1, 3]), fluid.data("x", [2, 4])
        assert fluid.layers.addmm(bias, x, fluid.data("y", [None, 3])).shape == (2, 3)
        assert fluid.layers.addmm(bias, fluid.data("x2", [2, None]), fluid.data("y2", [4, 3])).shape == (2, 3)
        with pytest.raises(fluid.core.EnforceNotMet, match="inner extents"):
            fluid.layers.addmm(bias, x, fluid.data("y3", [5, None]))


def test_rows_are_merged_in_place():
    scope = run("merge_selected_rows", {"X": Sparse([3, 1, 3], 5, np.array([[1.0], [2.0], [4.0]], "float32"))},
                {"Out": ["X.0"]})
    rows = scope.find_var("X.0").get_selected_rows()
    assert list(rows.rows()) == [1, 3] and np.array(rows.get_tensor()).tolist() == [[2.0], [5.0]]


def test_the_steps_of_a_diagonal_go_forward():
    with pytest.raises(fluid.core.EnforceNotMet, match="diag_step must be at least 0, got -1"):
        run("uniform_random", {}, {"Out": ["o"]}, {"shape": [3, 4], "diag_step": -1})
    like = "uniform_random_batch_size_like", {"Input": ones(3, 4)}, {"Out": ["o"]}
    run(*like, {"shape": [3, 4], "diag_step": -1})  # without a diagonal, as in 1.8.5
    with pytest.raises(fluid.core.EnforceNotMet, match="diag_step must be at least 0, got -1"):
        run(*like, {"shape": [3, 4], "diag_num": 2, "diag_step": -1})


@pytest.mark.parametrize("dtype", ["int32", "int64", "float64"])
def test_rows_are_added_to_tensors_of_each_dtype_that_has_sums(dtype):
    rows = Sparse([3, 1, 3, 0], 4, np.array([[1], [2], [4], [8]], dtype))
    out = run("sum", {"X": [np.full((4, 1), 7, dtype), rows]}, {"Out": ["o"]}).find_var("o").get_tensor()
    assert np.array(out).dtype == dtype and np.array(out).ravel().tolist() == [15, 9, 7, 12]


def test_concat_joins_the_sequences_of_all_inputs_along_axis_0():
    x, y = Seq(ones(3, 2), [[0, 1, 3]]), Seq(ones(2, 2), [[0, 2]])
    joined = run("concat", {"X": [x, y]}, {"Out": ["o"]}, {"axis": 0}).find_var("o").get_tensor()
    assert joined.lod() == [[0, 1, 3, 5]]
    some = run("concat", {"X": [x, ones(2, 2)]}, {"Out": ["o"]}, {"axis": 0}).find_var("o").get_tensor()
    assert some.lod() == []
    with pytest.raises(fluid.core.EnforceNotMet, match="LoD levels of"):
        run("concat", {"X": [x, Seq(ones(2, 2), [[0, 1], [0, 2]])]}, {"Out": ["o"]}, {"axis": 0})


@pytest.mark.parametrize("op", ["squeeze", "squeeze2"])
def test_axes_that_are_squeezed_have_one_element(op):
    def squeezed(extents):
        x = fluid.data("x", extents)
        outputs = {"Out": [x.block.create_var(name="out")]}
        if op == "squeeze2":
            outputs["XShape"] = [x.block.create_var(name="xshape")]
        x.block.append_op(type=op, inputs={"X": [x]}, outputs=outputs, attrs={"axes": [0]})
        return outputs["Out"][0]

    with fluid.program_guard(fluid.Program(), fluid.Program()):
        with pytest.raises(fluid.core.ShapeMismatch, match="axis 0 of X must have one element"):
            squeezed([2, 3])
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        out = squeezed([None, 3])
    assert out.shape == (3,)
    executor = fluid.Executor()
    assert executor.run(program, feed={"x": ones(1, 3)}, fetch_list=[out])[0].shape == (3,)
    with pytest.raises(fluid.core.ShapeMismatch, match="axis 0 of X must have one element"):
        executor.run(program, feed={"x": ones(2, 3)}, fetch_list=[out])


def test_how_many_sequences_there_are_is_known_at_run_time():
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        x = fluid.data("x", [5, 2], lod_level=1)
        rows = fluid.layers.fill_constant_batch_size_like(x, [-1, 3], "float32", 1.0)
        columns = fluid.layers.fill_constant_batch_size_like(x, [3, -1], "float32", 1.0, 1, 1)
    assert rows.shape == (-1, 3) and columns.shape == (3, 2)
    feed = {"x": fluid.create_lod_tensor(ones(5, 2), [[2, 3]], PLACE)}
    assert [v.shape for v in fluid.Executor().run(program, feed=feed, fetch_list=[rows, columns])] == [(2, 3), (3, 2)]


@pytest.mark.parametrize("op, slot", [("create_py_reader", "blocking_queue"),
                                      ("create_double_buffer_reader", "UnderlyingReader")])
def test_readers_are_readers(op, slot):
    block = fluid.Program().global_block()
    block.create_var(name="from", persistable=True)
    made = block.create_var(name="reader", persistable=True)
    block.append_op(type=op, inputs={slot: ["from"]}, outputs={"Out": [made]})
    assert made.type == fluid.core.VarDesc.VarType.READER


@pytest.mark.parametrize("bound", [0.0, -1.0, float("nan")])
def test_a_norm_is_not_cut_to_nothing(bound):
    with pytest.raises(fluid.core.EnforceNotMet, match="max_norm must be above 0") as caught:
        run("clip_by_norm", {"X": ones(2, 3)}, {"Out": ["o"]}, {"max_norm": bound})
    assert caught.value.kind == "InvalidArgument"


def test_the_area_under_a_curve_needs_two_classes():
    counts = {"StatPos": np.zeros((1, 8), "int64"), "StatNeg": np.zeros((1, 8), "int64")}
    with pytest.raises(fluid.core.EnforceNotMet, match="must have one or two columns") as caught:
        run("auc", dict(Predict=ones(2, 3), Label=np.zeros((2, 1), "int64"), **counts),
            {"AUC": ["a"], "StatPosOut": ["p"], "StatNegOut": ["n"]}, {"num_thresholds": 7, "slide_steps": 0})
    assert caught.value.kind == "InvalidArgument"


def test_the_extents_that_a_program_names_next_to_a_tensor_of_them_must_fit():
    with pytest.raises(fluid.core.EnforceNotMet, match="the attribute shape .1, 6. has 6") as caught:
        run("reshape2", {"X": ones(2, 3, 4), "Shape": np.array([6, 4], "int32")}, {"Out": ["o"], "XShape": ["s"]},
            {"shape": [1, 6]})
    assert caught.value.kind == "ShapeMismatch"


@pytest.mark.parametrize("op", ["reduce_sum", "reduce_max", "reduce_all", "frobenius_norm"])
def test_an_axis_is_reduced_once(op):
    x = np.ones((2, 3), bool) if op == "reduce_all" else ones(2, 3)
    with pytest.raises(fluid.core.EnforceNotMet, match="dim must not name axis -1 twice") as caught:
        run(op, {"X": x}, {"Out": ["o"]}, {"dim": [1, -1]})
    assert caught.value.kind == "InvalidArgument"
    run(op, {"X": x}, {"Out": ["o"]}, {"dim": [1, -1], "reduce_all": True})


@pytest.mark.parametrize("whole", [False, True])
def test_a_window_has_an_extent_for_each_axis_of_the_image(whole):
    with pytest.raises(fluid.core.EnforceNotMet, match="ksize must be 3 numbers, got 2") as caught:
        run("max_pool3d_with_index", {"X": ones(2, 2, 3, 4, 3)}, {"Out": ["o"], "Mask": ["m"]},
            {"ksize": [1, 1], "strides": [1, 1, 1], "paddings": [0, 0, 0], "global_pooling": whole})
    assert caught.value.kind == "InvalidArgument"
