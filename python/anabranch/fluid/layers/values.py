"""The distinct values of a tensor."""
from __future__ import annotations

from typing import TYPE_CHECKING

from ..explained import explain
from ..framework import convert_np_dtype_to_dtype_
from ..layer_helper import LayerHelper
from . import check
from .check import INTS

if TYPE_CHECKING:
    from ..framework import Variable
    from ..hints import DType

__all__ = ["unique", "unique_with_counts"]


def _unique(op, x, dtype, slots):
    check.operand(x, "x", op)
    number = convert_np_dtype_to_dtype_(dtype)
    check.of_dtype(number, "dtype", op, INTS)
    helper = LayerHelper(op)
    outs = [helper.create_variable_for_type_inference(x.dtype if slot == "Out" else number) for slot in slots]
    helper.append_op(type=op, inputs={"X": x}, attrs={"dtype": number},
                     outputs={slot: [out] for slot, out in zip(slots, outs)})
    return tuple(outs)


def unique(x: Variable, dtype: DType = "int32") -> tuple[Variable, Variable]:
    """Returns the distinct values of a vector, in the order of their first occurrence.

    Args:
        x (Variable): [N], float32, float64, int32 or int64.
        dtype (str): dtype of the indices, int32 or int64. Default int32.

    Returns:
        tuple: two Variables: the values [M], dtype of ``x``; and [N], the index of each element of ``x`` among these
        values.

    Raises:
        TypeError: an argument has the wrong type or dtype.
        ValueError: ``x`` has more than one axis.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> values, places = fluid.layers.unique(fluid.data("x", [7], "int64"))
        >>> places.shape
        (7,)
    """
    values, places = _unique("unique", x, dtype, ("Out", "Index"))
    return values, places


def unique_with_counts(x: Variable, dtype: DType = "int32") -> tuple[Variable, Variable, Variable]:
    """Returns the distinct values of a vector, in the order of their first occurrence, and the number of occurrences of
    each.

    Args:
        x (Variable): [N], float32, float64, int32 or int64.
        dtype (str): dtype of the indices and counts, int32 or int64. Default int32.

    Returns:
        tuple: three Variables: the values [M], dtype of ``x``; [N], the index of each element of ``x`` among these
        values; and [M], the counts.

    Raises:
        TypeError: an argument has the wrong type or dtype.
        ValueError: ``x`` has more than one axis.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> values, places, counts = fluid.layers.unique_with_counts(fluid.data("x", [7], "int64"))
        >>> places.shape
        (7,)
    """
    values, places, counts = _unique("unique_with_counts", x, dtype, ("Out", "Index", "Count"))
    return values, places, counts


explain(globals())
