"""Layers that query properties of tensors; counters; and conversions of sparse rows."""
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy

from ..errors import InvalidType
from ..explained import explain
from ..framework.dtype import VarType
from ..layer_helper import LayerHelper
from . import check
from .check import WIDE_NUMBERS, one_op
from .copies import assign

if TYPE_CHECKING:
    from ..framework import Variable

__all__ = [
    "rank", "increment", "is_empty", "merge_selected_rows", "get_tensor_from_selected_rows",
]


def rank(input: Variable) -> Variable:
    """Returns the number of axes of a tensor as a tensor.

    Args:
        input (Variable): any tensor.

    Returns:
        Variable: [1], int32.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.rank(fluid.data("x", [None, 4], "float32")).name
        'assign_0.tmp_0'
    """
    check.variable(input, "input", "rank")
    return assign(numpy.array([len(input.shape)], "int32"))


def increment(x: Variable, value: float = 1.0, in_place: bool = True) -> Variable:
    """out = x + value, for counters.

    Args:
        x (Variable): [1], float32, float64, int32 or int64.
        value (float): increment. Default 1.
        in_place (bool): writes the result into ``x``. Default True.

    Returns:
        Variable: [1], dtype of ``x``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> counter = fluid.layers.fill_constant([1], "int64", 0)
        >>> fluid.layers.increment(counter, value=2).shape
        (1,)
    """
    check.operand(x, "x", "increment")
    helper = LayerHelper("increment")
    out = x if in_place else helper.create_variable_for_type_inference(x.dtype)
    helper.append_op(type="increment", inputs={"X": [x]}, outputs={"Out": [out]}, attrs={"step": float(value)})
    return out


def is_empty(x: Variable, cond: Variable | None = None) -> Variable:
    """Returns whether a tensor has no elements.

    Args:
        x (Variable): float32, float64, int32 or int64.
        cond (Variable, optional): bool Variable that receives the result.

    Returns:
        Variable: [1], bool.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.is_empty(fluid.data("x", [None, 4], "float32")).shape
        (1,)
    """
    check.variable(x, "x", "is_empty", WIDE_NUMBERS)
    if cond is not None:
        check.variable(cond, "cond", "is_empty", ("bool",))
    helper = LayerHelper("is_empty")
    if cond is None:
        cond = helper.create_variable_for_type_inference("bool")
        cond.stop_gradient = True
    helper.append_op(type="is_empty", inputs={"X": [x]}, outputs={"Out": [cond]})
    return cond


def merge_selected_rows(x: Variable, name: str | None = None) -> Variable:
    """Adds up the rows of a sparse gradient that have the same id.

    Args:
        x (Variable): SelectedRows.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: SelectedRows with distinct ids.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> from anabranch.fluid.framework import VarType
        >>> rows = fluid.default_main_program().global_block().create_var(
        ...     name="rows", shape=[8, 4], dtype="float32", type=VarType.SELECTED_ROWS)
        >>> fluid.layers.merge_selected_rows(rows).type
        VarType.SELECTED_ROWS
    """
    return one_op("merge_selected_rows", {"X": x}, {}, name=name)


def get_tensor_from_selected_rows(x: Variable, name: str | None = None) -> Variable:
    """Returns the values of a sparse gradient without their ids.

    Args:
        x (Variable): SelectedRows, for example a result of :func:`merge_selected_rows`.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: one row for each id.

    Raises:
        TypeError: ``x`` is not a SelectedRows.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> from anabranch.fluid.framework import VarType
        >>> rows = fluid.default_main_program().global_block().create_var(
        ...     name="rows", shape=[8, 4], dtype="float32", type=VarType.SELECTED_ROWS)
        >>> fluid.layers.get_tensor_from_selected_rows(rows).type
        VarType.LOD_TENSOR
    """
    check.variable(x, "x", "get_tensor_from_selected_rows")
    if x.type != VarType.SELECTED_ROWS:
        raise InvalidType("get_tensor_from_selected_rows: x must be SelectedRows, got %s" % x.type)
    return one_op("get_tensor_from_selected_rows", {"X": x}, {}, name=name)


explain(globals())
