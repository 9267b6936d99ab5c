"""Layers with fused ops."""
from __future__ import annotations

from typing import Any

from ... import arguments
from ...errors import InvalidValue
from ...explained import preparation
from ...framework import Variable
from ...layer_helper import LayerHelper
from ...layers import check

__all__ = ["fused_elemwise_activation", "fused_embedding_seq_pool", "multiclass_nms2"]


def fused_elemwise_activation(x: Variable, y: Variable, functor_list: Any, axis: int = -1, scale: float = 0.0,
                              save_intermediate_out: bool = True) -> Variable:
    """Combines a function and a sum or a product into one op: f(x + y), x + f(y) or x f(y).

    Args:
        x (Variable): float32 or float64.
        y (Variable): as for :func:`~fluid.layers.elementwise_add`.
        functor_list (list|str): the outer function, then the inner one, as in ["elementwise_add", "relu"] for x +
            relu(y) and ["relu", "elementwise_add"] for relu(x + y); or one text with a comma between them.
        axis (int): first axis of ``x`` to which the axes of ``y`` are aligned. Default -1.
        scale (float): the factor of "scale". Default 0.
        save_intermediate_out (bool): whether to keep the inner result for the gradient. Default True.

    Returns:
        Variable: shape of ``x``.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: the number of functions is not 2.
        EnforceNotMet: the functions cannot be fused.

    Examples:
        >>> import numpy
        >>> import anabranch.fluid as fluid
        >>> x, y = fluid.data("x", [None, 2]), fluid.data("y", [None, 2])
        >>> out = fluid.contrib.layers.fused_elemwise_activation(x, y, ["elementwise_add", "relu"])
        >>> feed = {"x": numpy.array([[1, 2]], "float32"), "y": numpy.array([[-5, 5]], "float32")}
        >>> fluid.Executor().run(feed=feed, fetch_list=[out])[0].tolist()
        [[1.0, 7.0]]
    """
    check.variable(x, "x", "fused_elemwise_activation")
    check.variable(y, "y", "fused_elemwise_activation")
    if isinstance(functor_list, str):
        functor_list = functor_list.split(",")
    if not isinstance(functor_list, list) or len(functor_list) != 2:
        raise InvalidValue("fused_elemwise_activation: functor_list must name two functions, got %r" % (functor_list,))
    helper = LayerHelper("fused_elemwise_activation")
    out = helper.create_variable_for_type_inference(x.dtype)
    inner = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op(type="fused_elemwise_activation", inputs={"X": x, "Y": y},
                     outputs={"Out": out, "IntermediateOut": inner},
                     attrs={"axis": axis, "scale": scale, "save_intermediate_out": save_intermediate_out,
                            "functor_list": functor_list})
    return out


def fused_embedding_seq_pool(input: Variable, size: Any, is_sparse: bool = False, padding_idx: int | None = None,
                             combiner: str = "sum", param_attr: Any = None, dtype: Any = "float32") -> Variable:
    """Looks up the ids of each sequence in a table, and sums the rows.

    Args:
        input (Variable): [rows, 1], int64, with sequences.
        size (list|tuple): rows and columns of the table.
        is_sparse (bool): the gradient contains only the rows that were looked up. Default False.
        padding_idx (int, optional): an id that adds nothing; below 0 it counts from the last row.
        combiner (str): "sum".
        param_attr (ParamAttr, optional): attributes of the table.
        dtype (str): dtype of the table. Default "float32".

    Returns:
        Variable: [sequences, columns].

    Raises:
        TypeError: an argument has the wrong type.
        NotImplementedError: another combiner.
        EnforceNotMet: the ``lod_level`` of ``input`` is not 1.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> words = fluid.data("words", [None, 1], "int64", lod_level=1)
        >>> fluid.contrib.layers.fused_embedding_seq_pool(words, size=[20, 16]).shape
        (-1, 16)
    """
    check.variable(input, "input", "fused_embedding_seq_pool", check.INTS)
    check.sequences(input, "input", "fused_embedding_seq_pool", only=1)
    helper = LayerHelper("fused_embedding_seq_pool", param_attr=param_attr)
    table = helper.create_parameter(attr=helper.param_attr, shape=size, dtype=dtype, is_bias=False)
    out = helper.create_variable_for_type_inference(dtype)
    if padding_idx is None:
        padding_idx = -1
    elif padding_idx < 0:
        padding_idx += size[0]
    helper.append_op(type="fused_embedding_seq_pool", inputs={"Ids": input, "W": table}, outputs={"Out": out},
                     attrs={"is_sparse": is_sparse, "combiner": combiner, "padding_idx": padding_idx})
    return out


def multiclass_nms2(bboxes: Variable, scores: Variable, score_threshold: float, nms_top_k: int, keep_top_k: int,
                    nms_threshold: float = 0.3, normalized: bool = True, nms_eta: float = 1.0,
                    background_label: int = 0, return_index: bool = False, name: str | None = None) -> Any:
    """:func:`~fluid.layers.multiclass_nms` that can also return the indices of the boxes that are kept.

    Args:
        bboxes (Variable): [N, boxes, 4], or [boxes, classes, 4] with sequences.
        scores (Variable): [N, classes, boxes], or [boxes, classes] with sequences.
        score_threshold (float): minimum score of boxes.
        nms_top_k (int): maximum number of boxes considered per class; -1 means all.
        keep_top_k (int): maximum number of boxes kept per image; -1 means all.
        nms_threshold (float): maximum overlap with a better box. Boxes that overlap more are dropped. Default 0.3.
        normalized (bool): whether coordinates are fractions of the image instead of pixels. Default True.
        nms_eta (float): factor by which the threshold shrinks. Default 1.
        background_label (int): class that is dropped; -1 means none. Default 0.
        return_index (bool): whether to also return the indices. Default False.
        name (str, optional): prefix of the generated names.

    Returns:
        Variable: [kept, 6] with a sequence for each image: class, score, corners; if requested, also [kept, 1], the
        indices among all boxes.

    Raises:
        TypeError: an argument has the wrong type.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> boxes, scores = fluid.data("boxes", [None, 9, 4]), fluid.data("scores", [None, 3, 9])
        >>> kept, places = fluid.contrib.layers.multiclass_nms2(boxes, scores, 0.1, nms_top_k=9, keep_top_k=5,
        ...                                                     return_index=True)
        >>> kept.shape[1], places.shape[1]
        (6, 1)
    """
    check.variable(bboxes, "bboxes", "multiclass_nms2")
    check.variable(scores, "scores", "multiclass_nms2")
    if not isinstance(background_label, int):
        raise InvalidValue("multiclass_nms2: background_label must be an int, got %r" % (background_label,))
    helper = LayerHelper("multiclass_nms2", name=name)
    out = helper.create_variable_for_type_inference(bboxes.dtype)
    places = helper.create_variable_for_type_inference("int32")
    helper.append_op(type="multiclass_nms2", inputs={"BBoxes": bboxes, "Scores": scores},
                     outputs={"Out": out, "Index": places},
                     attrs={"background_label": background_label, "score_threshold": score_threshold,
                            "nms_top_k": nms_top_k, "nms_threshold": nms_threshold, "keep_top_k": keep_top_k,
                            "nms_eta": nms_eta, "normalized": normalized})
    out.stop_gradient = places.stop_gradient = True
    return (out, places) if return_index else out


arguments.explain(globals(), preparation)
