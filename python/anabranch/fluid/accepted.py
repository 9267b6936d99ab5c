"""Dtypes and classes that the layers of Fluid 1.8.5 accept, where the operators here accept more.

A layer checks that its operator has a kernel for its arguments. Some layers of Fluid accept less than the kernels
compute, and programs rely on it: tests of old scripts expect TypeError. Two tables list these arguments. A third one
lists those that may be a list of one Variable, which the layers of Fluid pass on to their operators. The wrappers of
``explained.py`` and ``arguments.py`` read the tables at the first call of a function, and check every call before it
changes a program.
"""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .errors import InvalidValue
from .framework import Variable
from .framework.dtype import VarType, convert_np_dtype_to_dtype_
from .layers import check

_ALL = "bool int8 uint8 int16 int32 int64 float16 float32 float64"

#: dtypes -> arguments, each "layer.argument". A list of Variables is checked element by element.
DTYPES: dict[str, str] = {
    "float32 float64":
        "GRUCell.dtype LSTMCell.dtype Normal.log_prob.value Uniform.log_prob.value addcmul.input addmm.x addmm.y "
        "dynamic_gru.h_0 dynamic_lstm.c_0 dynamic_lstm.h_0 dynamic_lstmp.c_0 dynamic_lstmp.h_0 l2_normalize.x "
        "label_smooth.label linspace.start linspace.stop log.x log1p.x lstm.init_c lstm.init_h mish.x mse_loss.input "
        "mse_loss.label prelu.x retinanet_target_assign.anchor_var rpn_target_assign.anchor_var selu.x "
        "square_error_cost.input square_error_cost.label ssd_loss.prior_box uniform_random_batch_size_like.dtype "
        "uniform_random_batch_size_like.input",
    "int32 int64 float32 float64":
        "equal.x equal.y greater_equal.x greater_equal.y greater_than.x greater_than.y less_equal.x less_equal.y "
        "less_than.x less_than.y not_equal.x not_equal.y pad_constant_like.y reduce_mean.input reduce_sum.input "
        "sequence_expand.x sequence_expand_as.x sequence_reshape.input shape.input ssd_loss.gt_label "
        "strided_slice.input sum.x sums.out",
    "float32":
        "cos_sim.X cos_sim.Y crop.x generate_proposals.anchors generate_proposals.bbox_deltas "
        "generate_proposals.scores generate_proposals.variances im2sequence.input log_loss.input log_loss.label "
        "pow.factor rank_loss.label rank_loss.left rank_loss.right roi_perspective_transform.input "
        "roi_perspective_transform.rois row_conv.input sequence_first_step.input sequence_last_step.input "
        "sequence_pool.input",
    "int32 int64 float16 float32 float64":
        "concat.input reshape.x trace.out fluid.contrib.layers.basic_lstm.init_hidden",
    "bool int32 int64 float32 float64": "Print.input expand_as.target_tensor expand_as.x zeros_like.out",
    "int32": "affine_grid.out_shape linspace.num strided_slice.ends strided_slice.starts strided_slice.strides",
    "bool uint8 int32 int64 float16 float32 float64": "cast.x range.end range.start range.step",
    "int32 int64": "fill_constant.shape full.shape gather_tree.parents gaussian_random.shape ones.shape zeros.shape",
    "float16 float32 float64": "accuracy.input clip.x fluid.contrib.layers.basic_lstm.init_cell",
    "uint8 int16 int32 int64 float32 float64": "argmax.x argmin.x",
    "bool int8 uint8 int32 int64 float16 float32 float64": "cast.dtype",
    "bool int8 int32 int64 float16 float32 float64": "create_tensor.dtype",
    "float16 float32": "gaussian_random_batch_size_like.dtype",
    "uint8 int16 int32 float32 float64": "random_crop.x",
    "uint8 int32 int64 float32 float64": "reverse.x",
    "int64 float32 float64": "sequence_concat.input",
    "int8 int32 int64 float32 float64": "sequence_reverse.x",
    "int64": "shard_index.input",
    "int8 int32 int64 float16 float32 float64": "squeeze.input",
    _ALL: "data.dtype label_smooth.dtype log_softmax.dtype sampling_id.dtype fluid.data.dtype",
}

#: classes -> arguments that must be an instance of one of them.
CLASSES: dict[str, str] = {
    "bool":
        "batch_norm.do_model_average_for_mean_and_var inplace_abn.do_model_average_for_mean_and_var "
        "randperm.stop_gradient",
    "bool int float ndarray None": "create_global_var.persistable create_tensor.persistable",
    "int": "GRUCell.hidden_size LSTMCell.hidden_size py_reader.capacity",
    "int None": "data.lod_level fluid.data.lod_level",
    "int float": "addcmul.value",
    "int float Variable": "linspace.num linspace.start linspace.stop range.end range.start range.step",
    "int float str": "linear_lr_warmup.end_lr linear_lr_warmup.start_lr",
    "VarType": "data.type",
    "list": "multiplex.inputs sequence_concat.input",
    "list tuple ndarray Variable": "MultivariateNormalDiag.loc MultivariateNormalDiag.scale",
    "Variable str None": "chunk_eval.seq_length ctc_greedy_decoder.input_length",
    "Variable None": "dynamic_gru.h_0 dynamic_lstm.c_0 dynamic_lstm.h_0 dynamic_lstmp.c_0 dynamic_lstmp.h_0",
    "Variable list str None":
        "sampled_softmax_with_cross_entropy.customized_probabilities "
        "sampled_softmax_with_cross_entropy.customized_samples",
}

#: Arguments that are a Variable, or a list of one.
ONE_IN_A_LIST = (
    "addmm.input allclose.input allclose.other anchor_generator.input bmm.y box_coder.target_box "
    "box_decoder_and_assign.box_score box_decoder_and_assign.prior_box_var box_decoder_and_assign.target_box "
    "crf_decoding.label crf_decoding.length cross.other density_prior_box.image detection_output.loc "
    "distribute_fpn_proposals.fpn_rois erf.x filter_by_instag.filter_tag gather.index gather.input gather_nd.index "
    "gather_nd.input gelu.x generate_mask_labels.gt_segms generate_mask_labels.im_info generate_mask_labels.is_crowd "
    "generate_mask_labels.labels_int32 generate_proposal_labels.gt_boxes generate_proposal_labels.im_info "
    "iou_similarity.y margin_rank_loss.right multi_box_head.image pool2d.input pool3d.input prior_box.image "
    "prroi_pool.input prroi_pool.rois psroi_pool.input psroi_pool.rois reduce_max.input reduce_min.input "
    "reduce_prod.input roi_pool.input roi_pool.rois sampling_id.x scatter.index scatter.input scatter.updates "
    "scatter_nd.index scatter_nd_add.index sequence_expand.y sigmoid_cross_entropy_with_logits.label size.input "
    "slice.input target_assign.matched_indices tensor_array_to_tensor.input where.condition "
    "fluid.contrib.layers.fused_elemwise_activation.y fluid.contrib.layers.fused_embedding_seq_pool.input "
    "fluid.contrib.layers.multiclass_nms2.scores fluid.contrib.layers.sequence_topk_avg_pooling.col "
    "fluid.contrib.layers.sequence_topk_avg_pooling.input fluid.contrib.layers.sequence_topk_avg_pooling.row "
    "fluid.contrib.layers.tdm_child.x fluid.contrib.layers.tdm_sampler.x fluid.contrib.layers.var_conv_2d.col "
    "fluid.contrib.layers.var_conv_2d.row fluid.one_hot.input")

_OF_NAMES = {"Variable": Variable, "list": list, "tuple": tuple, "int": int, "float": float, "str": str, "bool": bool,
             "ndarray": np.ndarray, "VarType": VarType, "None": type(None)}
_Check = Callable[[Any, str, str], Any]
Call = Callable[[Sequence[Any], dict[str, Any]], tuple[Sequence[Any], dict[str, Any]]]


def _dtypes(dtypes: Any, value: Any, argument: str, layer: str) -> Any:
    if isinstance(value, Variable):
        check.of_dtype(value.dtype, argument, layer, dtypes)
    elif isinstance(value, (list, tuple)):
        for i, one in enumerate(value):
            if isinstance(one, Variable):
                check.of_dtype(one.dtype, "%s[%d]" % (argument, i), layer, dtypes)
    return value


def _named_dtypes(dtypes: Any, value: Any, argument: str, layer: str) -> Any:
    """Checks an argument that is a dtype itself."""
    if value is None:
        return value
    try:
        kind = convert_np_dtype_to_dtype_(value)
    except InvalidValue as error:
        raise type(error)("%s: %s" % (layer, error.message)) from None
    check.of_dtype(kind, argument, layer, dtypes)
    return value


def _classes(classes: Any, value: Any, argument: str, layer: str) -> Any:
    check.of_type(value, argument, layer, classes)
    return value


def _rows(table: Mapping[str, str]) -> list[tuple[list[str], str, str]]:
    """[(names, layer, argument)] of a table."""
    return [(names.split(), *row.rpartition(".")[::2]) for names, rows in table.items() for row in rows.split()]


@functools.lru_cache(maxsize=None)
def _table() -> dict[str, list[tuple[str, _Check]]]:
    """Layer -> its arguments with their checks. A check returns the argument."""
    found: dict[str, list[tuple[str, _Check]]] = {}
    for layer, _, argument in (row.rpartition(".") for row in ONE_IN_A_LIST.split()):
        found.setdefault(layer, []).append((argument, _alone))
    for names, layer, argument in _rows(CLASSES):
        classes = tuple(_OF_NAMES[name] for name in names)
        found.setdefault(layer, []).append((argument, functools.partial(_classes, classes)))
    for names, layer, argument in _rows(DTYPES):
        test = _named_dtypes if argument == "dtype" else _dtypes
        found.setdefault(layer, []).append((argument, functools.partial(test, tuple(names))))
    return found


def label(function: Callable[..., Any]) -> str:
    """The name of a function in the tables. That of ``fluid.data`` is not that of ``fluid.layers.data``.

    >>> import anabranch.fluid as fluid
    >>> label(fluid.layers.data), label(fluid.data), label(fluid.layers.GRUCell.__init__)
    ('data', 'fluid.data', 'GRUCell')
    """
    folder, _, where = function.__module__.rpartition(".")
    before = "fluid.contrib.layers." if folder.endswith(".contrib.layers") else {
        "input": "fluid.", "data": "fluid.", "nets": "fluid.nets."}.get(where, "")
    return before + _shown(function)


def _shown(function: Callable[..., Any]) -> str:
    """The name of a function in errors."""
    return function.__qualname__.partition(".__init__")[0]


def dtypes_of(layer: str, argument: str, kernels: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the dtypes ``kernels`` that the tables accept for an argument."""
    for names, of, name in _rows(DTYPES):
        if (of, name) == (layer, argument):
            return tuple(kernel for kernel in kernels if kernel in names)
    return kernels


def _alone(value: Any, argument: str, layer: str) -> Any:
    """The Variable in a list of one."""
    if isinstance(value, (list, tuple)) and len(value) == 1 and isinstance(value[0], Variable):
        return value[0]
    return value


def check_of(function: Callable[..., Any]) -> Call | None:
    """A function that raises TypeError for arguments of a call that the tables exclude, and returns the arguments with
    Variables in place of their lists; None if the tables have nothing about ``function``."""
    layer = label(function)
    if layer not in _table():
        return None
    parameters = list(inspect.signature(function).parameters)
    shown = _shown(function)
    rows = [(parameters.index(name), name, test) for name, test in _table()[layer]]

    def prepare(args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Sequence[Any], dict[str, Any]]:
        args = list(args)
        for position, name, test in rows:
            if position < len(args):
                args[position] = test(args[position], name, shown)
            elif name in kwargs:
                kwargs[name] = test(kwargs[name], name, shown)
        return args, kwargs

    return prepare
