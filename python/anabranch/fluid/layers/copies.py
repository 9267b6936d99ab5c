"""Copies of tensors and arrays, conversions of dtypes, and sums of several tensors."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy

from ..errors import InvalidType, InvalidValue
from ..explained import explain
from ..framework import Variable, convert_np_dtype_to_dtype_
from . import check
from .check import one_op

if TYPE_CHECKING:
    from ..hints import DType

__all__ = [
    "cast", "assign", "sums",
]


_CAST_TYPES = ("bool", "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8")


def cast(x: Variable, dtype: DType) -> Variable:
    """Converts the elements of a tensor to a different dtype.

    Args:
        x (Variable): [...], any dtype.
        dtype (str): the new dtype. A conversion to int truncates towards 0; a conversion to bool is True for elements
            other than 0.

    Returns:
        Variable: shape of ``x``.

    Raises:
        TypeError: ``x`` is not a Variable.
        ValueError: ``dtype`` is unknown.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.cast(fluid.data("x", [None, 4], "float32"), "int64").shape
        (-1, 4)
    """
    check.variable(x, "x", "cast", _CAST_TYPES)
    dtype = convert_np_dtype_to_dtype_(dtype)
    return one_op("cast", {"X": [x]}, {"in_dtype": x.dtype, "out_dtype": dtype}, dtype=dtype)


_CONSTANT_TYPES = ("bool", "float16", "float32", "float64", "int32", "int64")


#: dtype of an array -> attribute of assign_value that holds its values
_ASSIGNED = {"bool": "bool_values", "float32": "fp32_values", "int32": "int32_values", "int64": "int64_values"}


_MAX_ASSIGNED_ELEMS = 1024 * 1024


def assign(input: Any, output: Variable | None = None) -> Variable:
    """Copies a Variable or an array.

    Args:
        input (Variable|numpy.ndarray): source of the copy. An array must be bool, float32, int32 or int64 and have at
            most 1,048,576 elements.
        output (Variable, optional): receives the copy.

    Returns:
        Variable: shape and dtype of ``input``.

    Raises:
        TypeError: an argument has the wrong type or dtype.
        ValueError: the array is too large.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> import numpy
        >>> fluid.layers.assign(numpy.ones([2, 3], "float32")).shape
        (2, 3)
    """
    check.of_type(input, "input", "assign", (Variable, numpy.ndarray))
    if isinstance(input, Variable):
        check.variable(input, "input", "assign", _CONSTANT_TYPES)
        return one_op("assign", {"X": [input]}, to=output)
    input = numpy.atleast_1d(input)     # every tensor has an axis
    name = input.dtype.name
    if name not in _ASSIGNED:
        raise InvalidType("assign: an array must be %s, got %s" % (", ".join(_ASSIGNED), name))
    if input.size > _MAX_ASSIGNED_ELEMS:
        raise InvalidValue("assign: an array must have at most %d elements, got %d; feed larger ones"
                           % (_MAX_ASSIGNED_ELEMS, input.size))
    dtype = convert_np_dtype_to_dtype_(input.dtype)
    values = input.view("int8") if name == "bool" else input    # the attribute holds integers
    return one_op("assign_value", {}, {"dtype": dtype, "shape": list(input.shape),
                                       _ASSIGNED[name]: values}, dtype=dtype, layer="assign", to=output)


def sums(input: Variable | Sequence[Any], out: Variable | None = None) -> Variable:
    """Adds tensors of equal shapes.

    Args:
        input (Variable|list|tuple): tensors to add; float32, float64, int32 or int64.
        out (Variable, optional): receives the result.

    Returns:
        Variable: the sum, with the shape and dtype of the inputs.

    Raises:
        TypeError: ``input`` is neither a Variable nor a list.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, y = fluid.data("x", [None, 4], "float32"), fluid.data("y", [None, 4], "float32")
        >>> fluid.layers.sums([x, y]).shape
        (-1, 4)
    """
    terms = check.operands(input, "input", "sums", "sum")
    return one_op("sum", {"X": terms}, {"use_mkldnn": False}, to=out)


explain(globals())
