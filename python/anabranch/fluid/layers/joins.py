"""Layers that join tensors or split a tensor."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import InvalidValue, Violated, also
from ..explained import explain
from ..framework import Variable
from ..layer_helper import LayerHelper
from . import check
from .check import one_op
from .shape_args import as_variables, has_variable, known

__all__ = [
    "concat", "split", "stack", "unstack",
]

#: Results of one unstack: each is a variable of the program.
_MOST_SLICES = 1 << 16


def concat(input: Sequence[Any] | Variable, axis: int | Variable = 0, name: str | None = None) -> Variable:
    """Concatenates tensors along an axis. Their other extents must be equal.

    Args:
        input (list|tuple|Variable): float16, float32, float64, int32 or int64. All have the same dtype.
        axis (int|Variable): axis of the concatenation. Negative numbers count from the last axis. A Variable must be
            int32 of shape [1]. Default 0.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: dtype of the inputs.

    Raises:
        TypeError: an argument has the wrong type or dtype.
        ValueError: dtypes differ.
        EnforceNotMet: extents differ.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, y = fluid.data("x", [None, 3], "float32"), fluid.data("y", [None, 4], "float32")
        >>> fluid.layers.concat([x, y], axis=1).shape
        (-1, 7)
    """
    parts = check.variables(input, "input", "concat", ("bool", "float16", "float32", "float64", "int32", "int64"))
    check.of_type(axis, "axis", "concat", (int, Variable))
    if not parts:
        raise also(InvalidValue, IndexError)("concat: input must hold at least one Variable, got none")
    helper = LayerHelper("concat", input=parts, name=name)
    out = helper.create_variable_for_type_inference(helper.input_dtype())
    inputs: dict[str, Any] = {"X": parts}
    attrs: dict[str, Any] = {}
    if isinstance(axis, Variable):
        axis.stop_gradient = True
        inputs["AxisTensor"] = axis
    else:
        attrs["axis"] = axis
    helper.append_op(type="concat", inputs=inputs, outputs={"Out": [out]}, attrs=attrs)
    return out


def split(input: Variable, num_or_sections: int | Sequence[Any], dim: int | Variable = -1,
          name: str | None = None) -> list[Variable]:
    """Splits a tensor along an axis.

    Args:
        input (Variable): [...], bool, float16, float32, float64, int32 or int64.
        num_or_sections (int|list|tuple): number of equal parts, or a list with the extent of each part. One extent
            may be -1. Entries may be Variables of shape [1].
        dim (int|Variable): axis to split. Negative numbers count from the last axis. Default -1.
        name (str, optional): prefix of the generated names.

    Returns:
        list of Variable: the parts, dtype of ``input``.

    Raises:
        TypeError: an argument has the wrong type.
        AssertionError: the extent is not divisible by the number of parts.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 6], "float32")
        >>> [v.shape for v in fluid.layers.split(x, 2, dim=1)], fluid.layers.split(x, [1, -1], dim=1)[1].shape
        ([(-1, 3), (-1, 3)], (-1, 5))
    """
    check.variable(input, "input", "split", ("bool", "float16", "float32", "float64", "int32", "int64"))
    check.of_type(num_or_sections, "num_or_sections", "split", (list, int, tuple))
    check.of_type(dim, "dim", "split", (int, Variable))
    helper = LayerHelper("split", name=name)
    inputs: dict[str, Any] = {"X": input}
    attrs: dict[str, Any] = {"num": num_or_sections if isinstance(num_or_sections, int) else 0}
    extent = -1
    if isinstance(dim, Variable):
        dim.stop_gradient = True
        inputs["AxisTensor"] = dim
    else:
        dim = dim if dim >= 0 else len(input.shape) + dim
        attrs["axis"] = dim
        extent = input.shape[dim]
    if isinstance(num_or_sections, int):
        if num_or_sections <= 1:
            raise Violated("split: the number of parts must be above 1, got %d" % num_or_sections)
        if num_or_sections > _MOST_SLICES:
            raise Violated("split: there must be at most %d parts, got %d" % (_MOST_SLICES, num_or_sections))
        if extent > 0 and extent % num_or_sections != 0:
            raise Violated("split: the extent of axis %s must be divisible by the number of parts, got %d and %d"
                           % (dim, extent, num_or_sections))
        count = num_or_sections
    else:
        count = len(num_or_sections)
        if extent > 0 and count > extent:
            raise Violated("split: at most %d parts, got %d" % (extent, count))
        attrs["sections"] = known(num_or_sections)
        if has_variable(num_or_sections):
            inputs["SectionsTensorList"] = as_variables(num_or_sections, helper)
    outs = [helper.create_variable_for_type_inference(input.dtype) for _ in range(count)]
    helper.append_op(type="split", inputs=inputs, outputs={"Out": outs}, attrs=attrs)
    return outs


def stack(x: Variable | Sequence[Any], axis: int = 0) -> Variable:
    """Stacks tensors of equal shapes along a new axis.

    Args:
        x (Variable|list|tuple): tensors; float32, float64, int32 or int64.
        axis (int): position of the new axis. Negative numbers count from the last axis. Default 0.

    Returns:
        Variable: the stacked tensors, with one more axis.

    Raises:
        TypeError: an argument has the wrong type.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, y = fluid.data("x", [None, 4], "float32"), fluid.data("y", [None, 4], "float32")
        >>> fluid.layers.stack([x, y], axis=1).shape
        (-1, 2, 4)
    """
    parts = check.variables(x, "x", "stack")
    return one_op("stack", {"X": parts}, {"axis": 0 if axis is None else axis}, out="Y")


def unstack(x: Variable, axis: int = 0, num: int | None = None) -> list[Variable]:
    """Splits a tensor into its slices along an axis, and removes this axis.

    Args:
        x (Variable): [...], float32, float64, int32 or int64.
        axis (int): axis to remove. Default 0.
        num (int, optional): extent of the axis. Required if the shape does not contain it.

    Returns:
        list of Variable: one for each position on the axis.

    Raises:
        ValueError: the extent is neither in the shape nor in ``num``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> [v.shape for v in fluid.layers.unstack(fluid.data("x", [2, 4], "float32"))]
        [(4,), (4,)]
    """
    check.variable(x, "x", "unstack")
    helper = LayerHelper("unstack")
    if num is None:
        if axis is None or x.shape[axis] <= 0:
            raise InvalidValue("unstack: num must be given, as the extent of axis %s is unknown: %s" % (axis, x.shape))
        num = x.shape[axis]
    extent = x.shape[axis] if axis is not None and -len(x.shape) <= axis < len(x.shape) else -1
    if not 0 < num <= _MOST_SLICES or 0 < extent != num:
        raise InvalidValue("unstack: num must be the extent of axis %s of %s, at most %d, got %r"
                           % (axis, x.shape, _MOST_SLICES, num))
    outs = [helper.create_variable_for_type_inference(x.dtype) for _ in range(num)]
    helper.append_op(type="unstack", inputs={"X": [x]}, outputs={"Y": outs}, attrs={"axis": axis, "num": num})
    return outs


explain(globals())
