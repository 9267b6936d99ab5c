"""Sums, means, extremes and products over axes.

Written by tools/generate_layers.py from the schemas of the operators.
"""
from __future__ import annotations

from collections.abc import Sequence

from ..explained import explain
from ..framework import Variable
from . import check
from .check import one_op

__all__ = [
    "mean", "cumsum", "softmax", "isfinite", "has_inf", "has_nan", "reduce_sum", "reduce_mean", "reduce_max",
    "reduce_min", "reduce_prod", "reduce_all", "reduce_any",
]


def mean(x: Variable, name: str | None = None) -> Variable:
    """Mean of all elements of x; NaN if x is empty.

    Args:
        x (Variable): any shape, float32 or float64.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: [1], dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> fluid.layers.mean(x).shape
        (1,)
    """
    check.operand(x, "x", "mean")
    return one_op("mean", {"X": x}, name=name)


def cumsum(x: Variable, axis: int | None = None, exclusive: bool | None = None,
           reverse: bool | None = None) -> Variable:
    """Cumulative sum of x along an axis.

    Args:
        x (Variable): any shape, int32, int64, float32 or float64.
        axis (int, optional): axis along which elements are summed; a negative axis counts from the last. Default -1.
        exclusive (bool, optional): excludes each element from its own sum. Default False.
        reverse (bool, optional): sums from the last element to the first. Default False.

    Returns:
        Variable: shape and dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> fluid.layers.cumsum(x, axis=0).shape
        (-1, 4)
    """
    check.operand(x, "x", "cumsum")
    return one_op("cumsum", {"X": x}, {"axis": axis, "exclusive": exclusive, "reverse": reverse})


def softmax(input: Variable, use_cudnn: bool = False, name: str | None = None, axis: int = -1) -> Variable:
    """Softmax along `axis`: out = exp(input) / sum(exp(input)), where input is at least its maximum on the axis minus
    64.

    Args:
        input (Variable): any shape, float32 or float64.
        use_cudnn (bool): no effect; accepted because programs of Fluid 1.8.5 may set it. Default False.
        name (str, optional): prefix of the output's name. Default: the operator's type.
        axis (int): axis along which the elements of the result sum to 1; a negative axis counts from the last.
            Default -1.

    Returns:
        Variable: shape and dtype of input.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> input = fluid.data("input", [None, 4], "float32")
        >>> fluid.layers.softmax(input).shape
        (-1, 4)
    """
    check.operand(input, "input", "softmax")
    return one_op("softmax", {"X": input}, {"use_cudnn": use_cudnn, "axis": axis}, name=name)


def isfinite(x: Variable) -> Variable:
    """Tests whether all elements of x are finite.

    Args:
        x (Variable): any shape, int32, int64, float32 or float64.

    Returns:
        Variable: [1], bool.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> fluid.layers.isfinite(x).shape
        (1,)
    """
    check.operand(x, "x", "isfinite")
    return one_op("isfinite", {"X": x}, dtype="bool")


def has_inf(x: Variable) -> Variable:
    """Tests whether any element of x is infinite.

    Args:
        x (Variable): any shape, int32, int64, float32 or float64.

    Returns:
        Variable: [1], bool.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> fluid.layers.has_inf(x).shape
        (1,)
    """
    check.operand(x, "x", "has_inf", "isinf")
    return one_op("isinf", {"X": x})


def has_nan(x: Variable) -> Variable:
    """Tests whether any element of x is NaN.

    Args:
        x (Variable): any shape, int32, int64, float32 or float64.

    Returns:
        Variable: [1], bool.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> fluid.layers.has_nan(x).shape
        (1,)
    """
    check.operand(x, "x", "has_nan", "isnan")
    return one_op("isnan", {"X": x})


def reduce_sum(input: Variable, dim: int | Sequence[int] | None = None, keep_dim: bool = False,
               name: str | None = None) -> Variable:
    """Sum of input over the axes in dim.

    Args:
        input (Variable): any shape, int32, int64, float32 or float64.
        dim (int | sequence of int, optional): axes to reduce; negative axes count from the last; an empty list
            reduces all axes. Default: all axes.
        keep_dim (bool): keeps reduced axes with extent 1. Default False.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape of input without the reduced axes, or [1] if none is left; dtype of input.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> input = fluid.data("input", [3, 4, 5], "float32")
        >>> fluid.layers.reduce_sum(input, dim=[0, -1], keep_dim=True).shape
        (1, 4, 1)
    """
    return check.reduced('reduce_sum', input, dim, keep_dim, name)


def reduce_mean(input: Variable, dim: int | Sequence[int] | None = None, keep_dim: bool = False,
                name: str | None = None) -> Variable:
    """Mean of input over the axes in dim.

    Args:
        input (Variable): any shape, int32, int64, float32 or float64.
        dim (int | sequence of int, optional): axes to reduce; negative axes count from the last; an empty list
            reduces all axes. Default: all axes.
        keep_dim (bool): keeps reduced axes with extent 1. Default False.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape of input without the reduced axes, or [1] if none is left; dtype of input.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> input = fluid.data("input", [3, 4, 5], "float32")
        >>> fluid.layers.reduce_mean(input, dim=[0, -1], keep_dim=True).shape
        (1, 4, 1)
    """
    return check.reduced('reduce_mean', input, dim, keep_dim, name)


def reduce_max(input: Variable, dim: int | Sequence[int] | None = None, keep_dim: bool = False,
               name: str | None = None) -> Variable:
    """Maximum of input over the axes in dim.

    Args:
        input (Variable): any shape, int32, int64, float32 or float64.
        dim (int | sequence of int, optional): axes to reduce; negative axes count from the last; an empty list
            reduces all axes. Default: all axes.
        keep_dim (bool): keeps reduced axes with extent 1. Default False.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape of input without the reduced axes, or [1] if none is left; dtype of input.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> input = fluid.data("input", [3, 4, 5], "float32")
        >>> fluid.layers.reduce_max(input, dim=[0, -1], keep_dim=True).shape
        (1, 4, 1)
    """
    return check.reduced('reduce_max', input, dim, keep_dim, name)


def reduce_min(input: Variable, dim: int | Sequence[int] | None = None, keep_dim: bool = False,
               name: str | None = None) -> Variable:
    """Minimum of input over the axes in dim.

    Args:
        input (Variable): any shape, int32, int64, float32 or float64.
        dim (int | sequence of int, optional): axes to reduce; negative axes count from the last; an empty list
            reduces all axes. Default: all axes.
        keep_dim (bool): keeps reduced axes with extent 1. Default False.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape of input without the reduced axes, or [1] if none is left; dtype of input.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> input = fluid.data("input", [3, 4, 5], "float32")
        >>> fluid.layers.reduce_min(input, dim=[0, -1], keep_dim=True).shape
        (1, 4, 1)
    """
    return check.reduced('reduce_min', input, dim, keep_dim, name)


def reduce_prod(input: Variable, dim: int | Sequence[int] | None = None, keep_dim: bool = False,
                name: str | None = None) -> Variable:
    """Product of input over the axes in dim.

    Args:
        input (Variable): any shape, int32, int64, float32 or float64.
        dim (int | sequence of int, optional): axes to reduce; negative axes count from the last; an empty list
            reduces all axes. Default: all axes.
        keep_dim (bool): keeps reduced axes with extent 1. Default False.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape of input without the reduced axes, or [1] if none is left; dtype of input.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> input = fluid.data("input", [3, 4, 5], "float32")
        >>> fluid.layers.reduce_prod(input, dim=[0, -1], keep_dim=True).shape
        (1, 4, 1)
    """
    return check.reduced('reduce_prod', input, dim, keep_dim, name)


def reduce_all(input: Variable, dim: int | Sequence[int] | None = None, keep_dim: bool = False,
               name: str | None = None) -> Variable:
    """Logical and of input over the axes in dim.

    Args:
        input (Variable): any shape, bool.
        dim (int | sequence of int, optional): axes to reduce; negative axes count from the last; an empty list
            reduces all axes. Default: all axes.
        keep_dim (bool): keeps reduced axes with extent 1. Default False.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape of input without the reduced axes, or [1] if none is left; dtype of input.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> input = fluid.data("input", [3, 4, 5], "bool")
        >>> fluid.layers.reduce_all(input, dim=[0, -1], keep_dim=True).shape
        (1, 4, 1)
    """
    return check.reduced('reduce_all', input, dim, keep_dim, name)


def reduce_any(input: Variable, dim: int | Sequence[int] | None = None, keep_dim: bool = False,
               name: str | None = None) -> Variable:
    """Logical or of input over the axes in dim.

    Args:
        input (Variable): any shape, bool.
        dim (int | sequence of int, optional): axes to reduce; negative axes count from the last; an empty list
            reduces all axes. Default: all axes.
        keep_dim (bool): keeps reduced axes with extent 1. Default False.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape of input without the reduced axes, or [1] if none is left; dtype of input.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> input = fluid.data("input", [3, 4, 5], "bool")
        >>> fluid.layers.reduce_any(input, dim=[0, -1], keep_dim=True).shape
        (1, 4, 1)
    """
    return check.reduced('reduce_any', input, dim, keep_dim, name)


explain(globals())
