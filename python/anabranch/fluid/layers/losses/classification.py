"""Losses for classification."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...explained import explain
from ...layer_helper import LayerHelper
from .. import check
from ..check import one_op

if TYPE_CHECKING:
    from ...framework import Variable

__all__ = [
    "cross_entropy", "softmax_with_cross_entropy", "teacher_student_sigmoid_loss",
]


def cross_entropy(input: Variable, label: Variable, soft_label: bool = False, ignore_index: int = -100) -> Variable:
    """out = -log(p of the label's class), or -sum of label * log(p) with soft labels. p is the result of a softmax.

    Args:
        input (Variable): probabilities, [..., D], float32 or float64.
        label (Variable): classes in [0, D), [..., 1], int64; or probabilities, [..., D], dtype of ``input``.
        soft_label (bool): labels are probabilities. Default False.
        ignore_index (int): class to ignore, which has the loss 0 and no gradient. Default -100.

    Returns:
        Variable: [..., 1], dtype of ``input``.

    Raises:
        TypeError: an argument is not a Variable of a supported dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, y = fluid.data("x", [None, 4], "float32"), fluid.data("y", [None, 1], "int64")
        >>> fluid.layers.cross_entropy(fluid.layers.softmax(x), y).shape
        (-1, 1)
    """
    if soft_label:
        check.operand(input, "input", "cross_entropy")
        return one_op("cross_entropy", {"X": [input], "Label": [label]}, {"soft_label": True,
                                                                           "ignore_index": ignore_index}, out="Y")
    check.operand(input, "input", "cross_entropy")
    helper = LayerHelper("cross_entropy2")
    out, x_shape, match = (helper.create_variable_for_type_inference(input.dtype) for _ in range(3))
    helper.append_op(type="cross_entropy2", inputs={"X": [input], "Label": [label]},
                     attrs={"ignore_index": ignore_index}, outputs={"Y": [out], "MatchX": [match], "XShape": [x_shape]})
    return out


def softmax_with_cross_entropy(logits: Variable, label: Variable, soft_label: bool = False, ignore_index: int = -100,
                               numeric_stable_mode: bool = True, return_softmax: bool = False,
                               axis: int = -1) -> Any:
    """out = log(sum of exp(logits)) - logits of the label's class: softmax and cross entropy in one layer, numerically
    stable and fast.

    Args:
        logits (Variable): [..., D, ...], float32 or float64.
        label (Variable): classes in [0, D), int64, with the shape of ``logits`` except for extent 1 at ``axis``; or
            soft labels with the shape of ``logits``.
        soft_label (bool): labels are probabilities. Default False.
        ignore_index (int): class to ignore, which has the loss 0 and no gradient. Default -100.
        numeric_stable_mode (bool): has no effect, because the stable form is always used. Default True.
        return_softmax (bool): also returns the probabilities. Default False.
        axis (int): axis of the classes. Default -1.

    Returns:
        Variable: the losses, like ``logits`` with extent 1 at ``axis``. With ``return_softmax``, a tuple of the losses
        and the probabilities.

    Raises:
        TypeError: an argument is not a Variable of a supported dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, y = fluid.data("x", [None, 4], "float32"), fluid.data("y", [None, 1], "int64")
        >>> fluid.layers.softmax_with_cross_entropy(x, y).shape
        (-1, 1)
    """
    check.operand(logits, "logits", "softmax_with_cross_entropy")
    helper = LayerHelper("softmax_with_cross_entropy")
    softmax = helper.create_variable_for_type_inference(logits.dtype)
    loss = helper.create_variable_for_type_inference(logits.dtype)
    helper.append_op(type="softmax_with_cross_entropy", inputs={"Logits": logits, "Label": label},
                     outputs={"Softmax": softmax, "Loss": loss},
                     attrs={"soft_label": soft_label, "ignore_index": ignore_index,
                            "numeric_stable_mode": numeric_stable_mode, "axis": axis})
    return (loss, softmax) if return_softmax else loss


def teacher_student_sigmoid_loss(input: Variable, label: Variable, soft_max_up_bound: float = 15.0,
                                 soft_max_lower_bound: float = -15.0) -> Variable:
    """The loss of a CTR model that learns from a teacher. The label encodes both the click and the score of the
    teacher.

    A label below -1 means no click, without a teacher. A label in [-1, 0) means a click, without a teacher. A label
    in [0, 1) means no click, and is the score of the teacher. A label of 1 or more means a click, and the score of
    the teacher is label - 1.

    Args:
        input (Variable): logits, [N, 1], float32 or float64.
        label (Variable): [N, 1], dtype of ``input``.
        soft_max_up_bound (float): upper bound. An input above it has no gradient. Default 15.
        soft_max_lower_bound (float): lower bound. An input below it has no gradient. Default -15.

    Returns:
        Variable: [N, 1].

    Raises:
        TypeError: an argument is not a Variable of a supported dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, y = fluid.data("x", [None, 1], "float32"), fluid.data("y", [None, 1], "float32")
        >>> fluid.layers.teacher_student_sigmoid_loss(x, y).shape
        (-1, 1)
    """
    layer = "teacher_student_sigmoid_loss"
    check.operand(input, "input", layer)
    check.operand(label, "label", layer)
    out = LayerHelper(layer).create_variable(dtype=input.dtype)
    return one_op(layer, {"X": [input], "Label": [label]},
                  {"soft_max_lower_bound": float(soft_max_lower_bound), "soft_max_up_bound": float(soft_max_up_bound)},
                  out="Y", to=out)


explain(globals())
