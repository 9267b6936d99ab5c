"""Scores of pairs of vectors, and a loss of class scores."""
from __future__ import annotations

from typing import Any

from ..explained import explain
from ..framework import Variable
from ..layer_helper import LayerHelper
from . import check
from .check import one_op

__all__ = ["bilinear_tensor_product", "sigmoid_focal_loss"]


def bilinear_tensor_product(x: Variable, y: Variable, size: int, act: str | None = None, name: str | None = None,
                            param_attr: Any = None, bias_attr: Any = None) -> Variable:
    """Computes bilinear products of two vectors: result k of row n is x[n] W[k] y[n] + b[k].

    Args:
        x (Variable): [N, P], float32 or float64.
        y (Variable): [N, Q], dtype of ``x``.
        size (int): number of results per row, K.
        act (str, optional): activation applied to the result.
        name (str, optional): prefix of the generated names.
        param_attr (ParamAttr, optional): attributes of the matrices [K, P, Q].
        bias_attr (ParamAttr|bool, optional): attributes of the bias [1, K]. False means no bias.

    Returns:
        Variable: [N, K].

    Raises:
        TypeError: an argument has the wrong type or dtype.
        ValueError: the shapes do not match.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, y = fluid.data("x", [None, 4], "float32"), fluid.data("y", [None, 5], "float32")
        >>> fluid.layers.bilinear_tensor_product(x, y, size=3).shape
        (-1, 3)
    """
    check.operand(x, "x", "bilinear_tensor_product")
    check.variable(y, "y", "bilinear_tensor_product")
    helper = LayerHelper("bilinear_tensor_product", name=name, act=act, param_attr=param_attr, bias_attr=bias_attr)
    weight = helper.create_parameter(attr=helper.param_attr, shape=[size, x.shape[1], y.shape[1]], dtype=x.dtype,
                                     is_bias=False)
    inputs = {"X": x, "Y": y, "Weight": weight}
    out = helper.create_variable_for_type_inference(x.dtype)
    if helper.bias_attr:
        inputs["Bias"] = helper.create_parameter(attr=helper.bias_attr, shape=[1, size], dtype=x.dtype, is_bias=True)
    helper.append_op(type="bilinear_tensor_product", inputs=inputs, outputs={"Out": out})
    return helper.append_activation(out)


def sigmoid_focal_loss(x: Variable, label: Variable, fg_num: Variable, gamma: float = 2.0,
                       alpha: float = 0.25) -> Variable:
    """Focal loss: the cross entropy of class scores, with small weights for samples that are classified well.

    Let p = 1 / (1 + exp(-x)). The loss is -alpha (1 - p)^gamma log(p) / fg_num for the class of the sample, and -(1 -
    alpha) p^gamma log(1 - p) / fg_num for the other classes. Lin and others, Focal loss for dense object detection,
    ICCV 2017, arXiv:1708.02002.

    Args:
        x (Variable): [N, C], float32 or float64: scores of the classes.
        label (Variable): [N, 1], int32. 1 to C: the class; 0: no class; -1: the sample is ignored.
        fg_num (Variable): [1], int32: number of samples with a class. Numbers below 1 count as 1.
        gamma (float): exponent that reduces the weight of well-classified samples. Default 2.
        alpha (float): weight of the class of the sample. The other classes have the weight 1 - alpha. Default 0.25.

    Returns:
        Variable: [N, C], dtype of ``x``.

    Raises:
        TypeError: an argument has the wrong type or dtype.
        ValueError: the shapes do not match.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, label = fluid.data("x", [None, 3], "float32"), fluid.data("label", [None, 1], "int32")
        >>> fluid.layers.sigmoid_focal_loss(x, label, fluid.data("n", [1], "int32")).shape
        (-1, 3)
    """
    check.operand(x, "x", "sigmoid_focal_loss")
    check.variable(label, "label", "sigmoid_focal_loss", ("int32",))
    check.variable(fg_num, "fg_num", "sigmoid_focal_loss", ("int32",))
    return one_op("sigmoid_focal_loss", {"X": x, "Label": label, "FgNum": fg_num}, {"gamma": gamma, "alpha": alpha})


explain(globals())
