"""Tensors of constants, sequences of numbers, and identity and diagonal matrices."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy

from ..errors import InvalidType
from ..explained import explain
from ..framework import Variable, convert_np_dtype_to_dtype_
from ..layer_helper import LayerHelper
from . import check
from .check import WIDE_NUMBERS, one_op
from .copies import assign, cast
from .joins import stack
from .shape_args import add_shape

if TYPE_CHECKING:
    from ..hints import DType, Shape

__all__ = [
    "fill_constant", "fill_constant_batch_size_like", "ones", "zeros", "ones_like", "zeros_like", "range", "linspace",
    "eye", "diag",
]


_CONSTANT_TYPES = ("bool", "float16", "float32", "float64", "int32", "int64")


def fill_constant(shape: Shape, dtype: DType, value: float | int | bool | Variable, force_cpu: bool = False,
                  out: Variable | None = None) -> Variable:
    """Creates a tensor with all elements equal to one value.

    Args:
        shape (list|tuple|Variable): extents, each an int or a Variable of shape [1]. A single int32 Variable may hold
            all extents.
        dtype (str): bool, float16, float32, float64, int32 or int64.
        value (float|int|bool|Variable): value of all elements. A Variable must have shape [1].
        force_cpu (bool): has no effect on the CPU. Default False.
        out (Variable, optional): receives the result.

    Returns:
        Variable: the tensor, which has no gradient.

    Raises:
        TypeError: an argument has the wrong type or dtype, or ``out`` has a different dtype than ``dtype``.
        ValueError: ``dtype`` is unknown.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.fill_constant([2, 3], "float32", 0.5).shape
        (2, 3)
    """
    attrs: dict[str, Any] = {"force_cpu": force_cpu}
    inputs: dict[str, Any] = {}
    dtype = convert_np_dtype_to_dtype_(dtype)
    if isinstance(value, Variable):
        inputs["ValueTensor"] = value
    else:
        attrs["value"] = float(value)
        # the text keeps an int64 exact, which a float32 attribute does not
        attrs["str_value"] = str(int(value)) if check.dtype_name(dtype) in check.INTS else str(float(value))
    check.of_dtype(dtype, "dtype", "fill_constant", _CONSTANT_TYPES)
    check.of_type(shape, "shape", "fill_constant", (Variable, list, tuple))
    if out is not None:
        check.variable(out, "out", "fill_constant", (check.dtype_name(dtype),))
    helper = LayerHelper("fill_constant")
    if out is None:
        out = helper.create_variable_for_type_inference(dtype)
    add_shape(shape, inputs, attrs)
    attrs["dtype"] = dtype
    helper.append_op(type="fill_constant", inputs=inputs, outputs={"Out": [out]}, attrs=attrs)
    out.stop_gradient = True
    return out


def fill_constant_batch_size_like(input: Variable, shape: Shape, dtype: DType, value: float | int,
                                  input_dim_idx: int = 0, output_dim_idx: int = 0, force_cpu: bool = False) -> Variable:
    """Creates a tensor with equal elements. One extent (usually the batch size) is taken from another tensor.

    Args:
        input (Variable): tensor whose extent is used.
        shape (list|tuple): extents. The extent at ``output_dim_idx`` is replaced.
        dtype (str): float32, float64, int32, int64 or bool.
        value (float|int): value of all elements.
        input_dim_idx (int): axis of ``input`` whose extent is used. Default 0.
        output_dim_idx (int): axis of the result that gets this extent. Default 0.
        force_cpu (bool): has no effect on the CPU. Default False.

    Returns:
        Variable: the tensor, which has no gradient.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> fluid.layers.fill_constant_batch_size_like(x, [-1, 1], "float32", 1.0).shape
        (-1, 1)
    """
    helper = LayerHelper("fill_constant_batch_size_like")
    dtype = convert_np_dtype_to_dtype_(dtype)
    out = helper.create_variable_for_type_inference(dtype)
    text = str(int(value)) if check.dtype_name(dtype) in check.INTS else str(float(value))
    helper.append_op(
        type="fill_constant_batch_size_like", inputs={"Input": input}, outputs={"Out": [out]},
        attrs={"shape": list(shape), "dtype": out.dtype, "value": float(value), "str_value": text,
               "input_dim_idx": input_dim_idx, "output_dim_idx": output_dim_idx, "force_cpu": force_cpu})
    out.stop_gradient = True
    return out


def ones(shape: Shape, dtype: DType, force_cpu: bool = False) -> Variable:
    """Creates a tensor of ones.

    Args:
        shape (list|tuple|Variable): as for :func:`fill_constant`.
        dtype (str): bool, float16, float32, float64, int32 or int64.
        force_cpu (bool): has no effect on the CPU. Default False.

    Returns:
        Variable: the tensor, which has no gradient.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.ones([2, 3], "float32").shape
        (2, 3)
    """
    return fill_constant(value=1.0, shape=shape, dtype=dtype, force_cpu=force_cpu)


def zeros(shape: Shape, dtype: DType, force_cpu: bool = False) -> Variable:
    """Creates a tensor of zeros.

    Args:
        shape (list|tuple|Variable): as for :func:`fill_constant`.
        dtype (str): bool, float16, float32, float64, int32 or int64.
        force_cpu (bool): has no effect on the CPU. Default False.

    Returns:
        Variable: the tensor, which has no gradient.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.zeros([2, 3], "int64").shape
        (2, 3)
    """
    return fill_constant(value=0.0, shape=shape, dtype=dtype, force_cpu=force_cpu)


def ones_like(x: Variable, out: Variable | None = None) -> Variable:
    """Creates a tensor of ones with the shape and dtype of ``x``.

    Args:
        x (Variable): [...], bool, float32, float64, int32 or int64.
        out (Variable, optional): receives the result.

    Returns:
        Variable: shape and dtype of ``x``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.ones_like(fluid.data("x", [None, 4], "float32")).shape
        (-1, 4)
    """
    check.variable(x, "x", "ones_like", ("bool",) + WIDE_NUMBERS)
    if out is not None:
        check.variable(out, "out", "ones_like", ("bool",) + WIDE_NUMBERS)
    return one_op("fill_any_like", {"X": [x]}, {"value": 1.0}, layer="ones_like", to=out)


def zeros_like(x: Variable, out: Variable | None = None) -> Variable:
    """Creates a tensor of zeros with the shape and dtype of ``x``.

    Args:
        x (Variable): [...], bool, float32, float64, int32 or int64.
        out (Variable, optional): receives the result.

    Returns:
        Variable: shape and dtype of ``x``. It has no gradient.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.zeros_like(fluid.data("x", [None, 4], "float32")).shape
        (-1, 4)
    """
    check.variable(x, "x", "zeros_like", ("bool",) + WIDE_NUMBERS)
    out = one_op("fill_zeros_like", {"X": [x]}, layer="zeros_like", to=out)
    out.stop_gradient = True
    return out


def range(start: float | int | Variable, end: float | int | Variable, step: float | int | Variable,
          dtype: DType) -> Variable:
    """Creates a vector of the numbers start, start + step, ... up to, but excluding ``end``.

    Args:
        start (float|int|Variable): first number. A Variable must have shape [1].
        end (float|int|Variable): end of the range, which is excluded.
        step (float|int|Variable): distance between two numbers.
        dtype (str): float32, float64, int32 or int64.

    Returns:
        Variable: one axis. It has no gradient.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> len(fluid.layers.range(0, 10, 2, "int32").shape)
        1
    """
    dtype = convert_np_dtype_to_dtype_(dtype)
    check.of_dtype(dtype, "dtype", "range", WIDE_NUMBERS)
    helper = LayerHelper("range")
    start, end, step = (_number(v, dtype) for v in (start, end, step))
    out = helper.create_variable_for_type_inference(dtype)
    helper.append_op(type="range", inputs={"Start": start, "End": end, "Step": step}, outputs={"Out": [out]})
    out.stop_gradient = True
    return out


def _number(value, dtype):
    """Converts a number or a Variable to a Variable of ``dtype``."""
    if not isinstance(value, Variable):
        return fill_constant([1], dtype, value)
    return value if value.dtype == dtype else cast(value, dtype)


def linspace(start: float | Variable, stop: float | Variable, num: int | Variable, dtype: DType) -> Variable:
    """Creates a vector of ``num`` equally spaced numbers from ``start`` to ``stop``, both included.

    Args:
        start (float|Variable): first number. A Variable must have shape [1].
        stop (float|Variable): last number.
        num (int|Variable): number of elements.
        dtype (str): float32 or float64.

    Returns:
        Variable: one axis.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> len(fluid.layers.linspace(0.0, 1.0, 5, "float32").shape)
        1
    """
    start, stop = (v if isinstance(v, Variable) else fill_constant([1], dtype, v) for v in (start, stop))
    if not isinstance(num, Variable):
        num = fill_constant([1], "int32", num)
    return one_op("linspace", {"Start": start, "Stop": stop, "Num": num}, dtype=start.dtype)


def eye(num_rows: int, num_columns: int | None = None, batch_shape: Sequence[Any] | None = None,
        dtype: DType = "float32") -> Variable:
    """Creates an identity matrix.

    Args:
        num_rows (int): number of rows, at least 0.
        num_columns (int, optional): number of columns. Default: ``num_rows``.
        batch_shape (list, optional): leading extents over which the matrix is repeated.
        dtype (str): dtype of the elements. Default "float32".

    Returns:
        Variable: ``[*batch_shape, num_rows, num_columns]``. It has no gradient.

    Raises:
        TypeError: a size is not an int, or is negative.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.eye(3).shape
        (3, 3)
    """
    columns = num_rows if num_columns is None else num_columns
    for argument, value in (("num_rows", num_rows), ("num_columns", columns)):
        if not isinstance(value, int) or value < 0:
            raise InvalidType("eye: %s must be an int that is not negative, got %r" % (argument, value))
    dtype = convert_np_dtype_to_dtype_(dtype)
    helper = LayerHelper("eye")
    out = helper.create_variable_for_type_inference(dtype)
    helper.append_op(type="eye", inputs={}, outputs={"Out": [out]},
                     attrs={"num_rows": num_rows, "num_columns": columns, "dtype": dtype})
    out.stop_gradient = True
    if batch_shape is not None:
        check.of_type(batch_shape, "batch_shape", "eye", list)
        for extent in reversed(batch_shape):
            if extent <= 0:
                raise InvalidType("eye: batch_shape must hold positive ints, got %r" % (batch_shape,))
            out = stack([out] * extent, axis=0)
    return out


def diag(diagonal: Any) -> Variable:
    """Creates a square matrix with the given diagonal and zeros elsewhere.

    Args:
        diagonal (Variable|numpy.ndarray): elements of the diagonal, [N], float32, float64, int32 or int64.

    Returns:
        Variable: [N, N].

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.diag(fluid.data("d", [3], "float32")).shape
        (3, 3)
    """
    check.of_type(diagonal, "diagonal", "diag", (Variable, numpy.ndarray))
    if not isinstance(diagonal, Variable):
        diagonal = assign(diagonal)
    check.operand(diagonal, "diagonal", "diag")
    out = one_op("diag", {"Diagonal": [diagonal]})
    out.stop_gradient = True
    return out


explain(globals())
