"""Every layer builds the operators that Paddle 1.8.5 builds: types, slots, names, attributes, shapes, errors."""
import json

import layer_programs
import pytest

import anabranch.fluid as fluid
from anabranch import _core

#: Where this package does otherwise, and why.
DIFFERENT = {
    "misc_lookahead": "going back is an update, so that several replicas go back once",
    "misc_shuffle_num": "no Variable is a TypeError, as in every layer",
    "misc_tdm_float": "nodes that are not integers are refused at the call",
    "bn_momvar": "a Variable as momentum is used; 1.8.5 drops it",
    "sce_int": "integer logits are refused at the call",
    "unbad_gelu": "a NumPy array is a TypeError, as in every layer",
    "unbad_erf": "a NumPy array is a TypeError, as in every layer",
    "conv3_notvar": "a NumPy array is a TypeError, as in every layer",
    "unif_t": "dtype is honoured also when the shape is a tensor",
    "unif_var": "known extents are kept next to Variables",
    "op_ri_div": "the number gets the dtype of the Variable",
    "op_ri_pow": "the number gets the dtype of the Variable",
    "opt_none": "nothing is made for a loss without parameters",
    "setclip_n": "1.8.5 leaves half of the clip's operators, unused",
    "setclip_two": "1.8.5 never clips here; without the exact flag the error is raised",
    "rank": "a tensor has at least one axis",
    "expand_as": "the result has the shape of the target",
    "ls_full": "the result has the dtype of the label",
    "acc_ct": "the counts are int32", "cell_none": "only a cell is accepted, else a TypeError",
    "cond_grad": "the shape of the target is not read",
    "flatten": "an unknown extent is -1", "nets_seq": "places are integers",
    "topk_var": "the width is unknown while the program is built",
    "un2_sm": "use_cudnn has no effect on the CPU",
    "errclip": "the clip of a gradient has role Backward",
    "dropout_full": "the mask that inference does not write has a shape",
    "ln_full": "the number of samples is unknown, not negative",
    "has_inf": "the result is bool", "has_nan": "the result is bool",
    "gru_wide": "an input of another width is refused",
    "full_int": "stop_gradient=False is honoured", "t_1": "a vector needs no variables",
    "hash": "it works",
    "hsigmoid": "the table is not listed as written", "hsigmoid_tree": "the table is not listed as written",
    "in": "the number of statistics is unknown, not negative",
    "in_full": "the number of statistics is unknown, not negative",
    "instag": "the weights are float32, as they are when run",
    "sampled": "LabelsDim has the dtype of the labels", "sampled_own": "LabelsDim has the dtype of the labels",
    "seqpool_max": "places are integers", "seq_pad_name": "the length is unknown, not 1",
    "gi_a": "an Ellipsis works", "gi_q": "an Ellipsis works",
    "gi_f": "a step without bounds works", "gi_p": "a step without bounds works",
    "cross_none": "vectors of two numbers are refused at the call", "mesh_rank": "a matrix is refused at the call",
    "roll_badaxis": "an axis out of range is refused at the call", "uniq_dtype": "places are integers",
    "sampling": "places are integers", "sampling_all": "places are integers",
    "randint_list": "known extents are kept next to Variables",
    "gi_n": "an index of a wrong class is a TypeError",
}
DIFFERENT.update(dict.fromkeys(("ps_unknown", "s2d_unknown", "unfold_unknown"), "an unknown extent is -1"))
DIFFERENT.update(dict.fromkeys(("rs_notvar", "shc_num"), "only a Variable is accepted, as in every layer"))
DIFFERENT.update(dict.fromkeys(("ps_float", "s2d_float", "shc_float", "tsh_float"), "the operator refuses the float"))
DIFFERENT.update(dict.fromkeys(("crop_off1", "cropt_big", "gs_shape"), "refused at the call, not in the run"))
DIFFERENT.update(dict.fromkeys(("apool_idx", "apool_max", "apool3_idx", "apool3_max"), "places are integers"))
DIFFERENT["pcl_mixed"] = "the result has the dtype of y, as it has when run"
DIFFERENT.update({"ew_bad2_" + n: "operands of different dtypes are refused" for n in (
    "add", "sub", "mul", "div", "max", "min", "pow", "mod", "floordiv")})
DIFFERENT.update({"op_rsm_" + n: "the shorter operand may stand on the left" for n in (
    "eq", "ne", "lt", "le", "gt", "ge")})
DIFFERENT.update({"clip%s_%s_True" % (r, n): "rows of a sparse gradient are not counted" for r in ("", "_reg")
                  for n in ("g", "some")})
DIFFERENT.update({"opts_" + n: "sparse gradients work" for n in ("adamax", "add", "dec", "ftrl")})
DIFFERENT.update(dict.fromkeys(("det_nms", "det_nms_full", "det_out", "det_out_args", "det_out_index"),
                               "the number of detections is not declared: it is unknown"))
DIFFERENT.update({"det_ssd" + n: "rows that are not known are not declared as -9"
                  for n in ("", "_batch", "_64", "_args", "_grad")})
DIFFERENT.update({
    "det_nms_bad": "scores that do not fit the boxes are refused at the call",
    "det_iou_num": "a number is a TypeError, as in every layer",
    "det_head_number": "too few sizes are a ValueError",
    "det_head_two": "sizes that are missing are a ValueError",
    "det_head_one": "the results of one map have the shapes of those of several",
})
DIFFERENT.update(dict.fromkeys(("gp", "gp_full", "yolo_loss", "yolo_loss_full", "yolo_loss_grad", "roi_pool",
                                "roi_pool_full", "roi_pool_grad", "dps", "dps_full", "dps_grad"),
                               "counts, places and masks have the dtype that they have when run"))
DIFFERENT.update(dict.fromkeys(("mnms", "mnms_full", "lnms", "lnms_full", "rdo", "rdo_full"),
                               "the number of detections is not declared: it is unknown"))
DIFFERENT.update(dict.fromkeys(("dmap", "dmap_full", "dmap_metric", "dmap_evaluator", "dmap_plain"),
                               "what is counted has a shape"))
DIFFERENT.update(dict.fromkeys(("dcn_mask", "dcn_offset", "dcn_step", "bda_rows", "bda_width", "fpn_dist_shape",
                                "gp_rank", "mnms_rank", "mnms_width", "dps_num", "gml_rois"),
                               "refused at the call, not in the run"))
DIFFERENT["dps_sensitive"] = "position_sensitive works"
DIFFERENT.update(dict.fromkeys(("dcn_nomask", "bda_num"), "only a Variable is accepted, as in every layer"))
DIFFERENT.update(dict.fromkeys(("seqfirst", "seqlast", "seqpool"), "places are integers"))
DIFFERENT.update({"rdtuple_" + n: "a tuple of axes works" for n in ("sum", "mean", "max", "min", "prod")})
DIFFERENT.update(dict.fromkeys(("ctc", "ctc_all", "ctc_train", "ctc_len_train"), "the slopes have a shape"))
DIFFERENT.update(dict.fromkeys(("edit", "edit_ign", "edit_ign0", "edit_len"), "the distances are float32"))
DIFFERENT.update(dict.fromkeys(("chunk_bad", "posenc_odd", "posenc_rank"), "refused at the call, not in the run"))
DIFFERENT["crf_dec_str"] = "a name works"
DIFFERENT["beams_f64"] = "scores of two dtypes are refused at the call"
DIFFERENT.update(dict.fromkeys(("pages", "pages_grad"), "no variable is made that nothing uses"))
DIFFERENT["abn_grad"] = "parameters in the order in which they were made"
DIFFERENT["mm_widths"] = "rows of two widths match"
DIFFERENT["topk_pool"] = "the places have a shape"
DIFFERENT.update(dict.fromkeys(("lstm_dense", "cudnn_lstm_bi"), "it runs here; gates are kept, no cache is made"))
DIFFERENT["eval_edit"] = "the distances are float32"
DIFFERENT.update(dict.fromkeys(("dec_beam_end", "cl_gru_none", "cl_lstm_none"),
                               "a number out of range is a ValueError"))
DIFFERENT.update(dict.fromkeys(("dec_train_num", "dec_train_len"),
                               "only a Variable is accepted, as in every layer"))
DIFFERENT["cl_pair_all"] = "the inner result has a shape"
DIFFERENT["numbered_item_step"] = "no unread comparison is left"
DIFFERENT.update(dict.fromkeys(("dec_none", "cl_gru_nobias", "cl_lstm_nobias", "cl_pair_num",
                                "cd_init_boot"),
                               "a bad class is a TypeError"))
DIFFERENT["dec_helper_base"] = "a helper that does not say what it chooses is an error, not None"
DIFFERENT.update(dict.fromkeys(("cd_search", "cd_search_two", "cd_search_end", "cd_search_input", "cd_search_own"),
                               "the sentences have a shape"))
DIFFERENT.update(dict.fromkeys(("cl_nms2", "cl_nms2_index"),
                               "the number of detections is not declared: it is unknown"))
DIFFERENT["im2seq_list"] = "three numbers instead of two are refused"
#: Dtypes without a kernel are refused at the call; 1.8.5 refuses them in the run. See docs/differences.md.
BY_KERNELS = {"allclose_int", "apool3_int", "det_match_int", "ewa_floordiv", "ewd_floordiv_float16",
              "ewd_floordiv_float64", "gather_f", "roi_pool_int", "rs_ints", "shc_int"}
BY_KERNELS.update("rdd_%s_%s" % (op, dtype) for op in ("max", "min", "prod") for dtype in ("bool", "int8"))
BY_KERNELS.update("und_%s_%s" % (op, dtype) for op in ("erf", "gelu") for dtype in ("bool", "int32", "int64"))
RECORD = layer_programs.recorded()
OWN = layer_programs.recorded(layer_programs.OWN)


def _operators(record):
    """Types in a recorded program."""
    if isinstance(record, str):
        return set()
    return {op[0] for part in ("main", "startup") for block in record[part] for op in block}


@pytest.fixture(autouse=True)
def exact():
    """The records show the quirks of 1.8.5 as well."""
    before = fluid.get_flags("FLAGS_fluid_exact")
    fluid.set_flags({"FLAGS_fluid_exact": "1.8.5"})
    yield
    fluid.set_flags(before)


def test_every_case_is_recorded():
    assert set(RECORD) == set(layer_programs.CASES)
    assert set(DIFFERENT) | BY_KERNELS <= set(RECORD)


@pytest.mark.parametrize("name", sorted(RECORD))
def test_program(name):
    assert _operators(RECORD[name]) <= set(_core.op_types())
    ours = json.loads(json.dumps(layer_programs.describe(fluid, layer_programs.CASES[name])))
    if name in BY_KERNELS:
        assert ours == "TypeError" and RECORD[name] != "TypeError"
        return
    if name in DIFFERENT:
        assert ours != RECORD[name], "no difference any more: " + DIFFERENT[name]
        _compare(ours, OWN[name])
    else:
        _compare(ours, RECORD[name])


def _compare(ours, record):
    if isinstance(ours, dict) and isinstance(record, dict):
        for part in ("result", "main", "startup", "vars"):
            assert ours[part] == record[part], part
    assert ours == record


def test_what_is_done_otherwise_is_recorded():
    assert set(OWN) == set(DIFFERENT)
