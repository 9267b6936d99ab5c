"""Losses for regression."""
from __future__ import annotations

from typing import TYPE_CHECKING

from ...explained import explain
from ...layer_helper import LayerHelper
from ...user_warnings import warn
from .. import check
from .._generated_reductions import reduce_mean

if TYPE_CHECKING:
    from ...framework import Variable

__all__ = [
    "square_error_cost", "mse_loss", "huber_loss", "smooth_l1",
]


def square_error_cost(input: Variable, label: Variable) -> Variable:
    """out = (input - label) ** 2, element by element.

    Args:
        input (Variable): [...], float32 or float64.
        label (Variable): shape and dtype of ``input``.

    Returns:
        Variable: shape and dtype of ``input``.

    Raises:
        TypeError: an argument is not a Variable of a supported dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, y = fluid.data("x", [None, 1], "float32"), fluid.data("y", [None, 1], "float32")
        >>> fluid.layers.square_error_cost(x, y).shape
        (-1, 1)
    """
    check.operand(input, "input", "square_error_cost", "square")
    check.operand(label, "label", "square_error_cost", "square")
    if len(input.shape) != len(label.shape) and max(len(input.shape), len(label.shape)) > 1:
        warn("square_error_cost: input %s has the shape %s and label %s has %s, so that their difference has a value "
             "for each pair of rows: give both the same shape, such as [None, 1]"
             % (input.name, list(input.shape), label.name, list(label.shape)))
    helper = LayerHelper("square_error_cost")
    difference = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(type="elementwise_sub", inputs={"X": [input], "Y": [label]}, outputs={"Out": [difference]})
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(type="square", inputs={"X": [difference]}, outputs={"Out": [out]})
    return out


def mse_loss(input: Variable, label: Variable) -> Variable:
    """The mean of (input - label) ** 2 over all elements.

    Args:
        input (Variable): [...], float32 or float64.
        label (Variable): shape and dtype of ``input``.

    Returns:
        Variable: [1].

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, y = fluid.data("x", [None, 1], "float32"), fluid.data("y", [None, 1], "float32")
        >>> fluid.layers.mse_loss(x, y).shape
        (1,)
    """
    check.operand(input, "input", "mse_loss", "square")
    check.operand(label, "label", "mse_loss", "square")
    return reduce_mean(square_error_cost(input, label))


def huber_loss(input: Variable, label: Variable, delta: float) -> Variable:
    """out = d * d / 2 if |d| <= delta, otherwise delta * (|d| - delta / 2), where d = label - input.

    Huber, Robust estimation of a location parameter, 1964, DOI 10.1214/aoms/1177703732.

    Args:
        input (Variable): [N, 1], float32 or float64.
        label (Variable): [N, 1], dtype of ``input``.
        delta (float): bound of the quadratic part.

    Returns:
        Variable: [N, 1].

    Raises:
        TypeError: an argument is not a Variable of a supported dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, y = fluid.data("x", [None, 1], "float32"), fluid.data("y", [None, 1], "float32")
        >>> fluid.layers.huber_loss(x, y, delta=1.0).shape
        (-1, 1)
    """
    check.operand(input, "input", "huber_loss")
    check.operand(label, "label", "huber_loss")
    helper = LayerHelper("huber_loss")
    residual = helper.create_variable_for_type_inference(input.dtype)
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(type="huber_loss", inputs={"X": input, "Y": label}, outputs={"Out": out, "Residual": residual},
                     attrs={"delta": delta})
    return out


def smooth_l1(x: Variable, y: Variable, inside_weight: Variable | None = None, outside_weight: Variable | None = None,
              sigma: float | None = None) -> Variable:
    """The sum over each row of f(x - y).

    f(d) = (sigma d) ** 2 / 2 if |d| < 1 / sigma ** 2, otherwise |d| - 1 / (2 sigma ** 2).

    Girshick, Fast R-CNN, ICCV 2015.

    Args:
        x (Variable): [N, ...], float32 or float64.
        y (Variable): shape and dtype of ``x``.
        inside_weight (Variable, optional): factor of x - y, with the shape of ``x``.
        outside_weight (Variable, optional): factor of f, with the shape of ``x``.
        sigma (float, optional): parameter of f, whose quadratic part ends at 1 / sigma ** 2. Default 1.

    Returns:
        Variable: [N, 1].

    Raises:
        TypeError: an argument is not a Variable of a supported dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, y = fluid.data("x", [None, 4], "float32"), fluid.data("y", [None, 4], "float32")
        >>> fluid.layers.smooth_l1(x, y).shape
        (-1, 1)
    """
    check.operand(x, "x", "smooth_l1", "smooth_l1_loss")
    check.operand(y, "y", "smooth_l1", "smooth_l1_loss")
    helper = LayerHelper("smooth_l1_loss")
    difference = helper.create_variable_for_type_inference(x.dtype)
    out = helper.create_variable_for_type_inference(x.dtype)
    inputs = {"X": x, "Y": y, "InsideWeight": inside_weight, "OutsideWeight": outside_weight}
    helper.append_op(type="smooth_l1_loss", inputs={k: v for k, v in inputs.items() if v is not None},
                     outputs={"Diff": difference, "Out": out}, attrs={"sigma": 1.0 if sigma is None else sigma})
    return out


explain(globals())
