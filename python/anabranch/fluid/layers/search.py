"""Positions of the largest and smallest elements."""
from __future__ import annotations

from typing import TYPE_CHECKING

from ..explained import explain
from ..framework.dtype import VarType
from ..layer_helper import LayerHelper
from . import check
from .check import one_op

if TYPE_CHECKING:
    from ..framework import Variable

__all__ = [
    "argmax", "argmin", "argsort", "topk",
]


def _extreme(op, x, axis):
    check.variable(x, "x", op)
    return one_op(op, {"X": x}, {"axis": axis}, dtype="int64", stop_gradient=True)


def argmax(x: Variable, axis: int = 0) -> Variable:
    """Returns the index of the largest element along an axis.

    Args:
        x (Variable): [...], float32, float64, int32 or int64.
        axis (int): axis along which to search; the result does not have it. Default 0.

    Returns:
        Variable: ``x`` without the axis, int64.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.argmax(fluid.data("x", [3, 4], "float32"), axis=1).shape
        (3,)
    """
    return _extreme("arg_max", x, axis)


def argmin(x: Variable, axis: int = 0) -> Variable:
    """Returns the index of the smallest element along an axis.

    Args:
        x (Variable): [...], float32, float64, int32 or int64.
        axis (int): axis along which to search; the result does not have it. Default 0.

    Returns:
        Variable: ``x`` without the axis, int64.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.argmin(fluid.data("x", [3, 4], "float32"), axis=1).shape
        (3,)
    """
    return _extreme("arg_min", x, axis)


def argsort(input: Variable, axis: int = -1, descending: bool = False,
            name: str | None = None) -> tuple[Variable, Variable]:
    """Sorts the elements along an axis, and also returns their original positions.

    Args:
        input (Variable): [...], float32, float64, int32 or int64.
        axis (int): axis along which elements are sorted. Default -1.
        descending (bool): sorts the largest element first. Default False.
        name (str, optional): prefix of the generated names.

    Returns:
        tuple: the sorted elements and their original indices (int64), each with the shape of ``input``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> values, places = fluid.layers.argsort(fluid.data("x", [None, 4], "float32"))
        >>> values.shape, places.shape
        ((-1, 4), (-1, 4))
    """
    check.operand(input, "input", "argsort")
    helper = LayerHelper("argsort", name=name)
    values = helper.create_variable_for_type_inference(input.dtype, stop_gradient=True)
    places = helper.create_variable_for_type_inference(VarType.INT64, stop_gradient=True)
    helper.append_op(type="argsort", inputs={"X": input}, outputs={"Out": values, "Indices": places},
                     attrs={"axis": axis, "descending": descending})
    return values, places


def topk(input: Variable, k: int | Variable, name: str | None = None) -> tuple[Variable, Variable]:
    """Returns the k largest values along the last axis, in decreasing order, and their indices.

    Args:
        input (Variable): [..., D], float32, float64, int32 or int64.
        k (int|Variable): number of values, in [1, D].
        name (str, optional): prefix of the generated names.

    Returns:
        tuple: values [..., k], dtype of ``input``; and indices [..., k], int64. Neither has a gradient.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> values, places = fluid.layers.topk(fluid.data("x", [None, 4], "float32"), k=2)
        >>> values.shape, places.shape
        ((-1, 2), (-1, 2))
    """
    check.variable(input, "input", "topk")
    inputs, attrs = {"X": [input]}, {}
    if isinstance(k, check.Variable):
        inputs["K"] = [k]
    else:
        attrs["k"] = k
    helper = LayerHelper("top_k", name=name)
    values = helper.create_variable_for_type_inference(input.dtype)
    places = helper.create_variable_for_type_inference("int64")
    helper.append_op(type="top_k", inputs=inputs, outputs={"Out": [values], "Indices": [places]}, attrs=attrs)
    values.stop_gradient = True
    places.stop_gradient = True
    return values, places


explain(globals())
