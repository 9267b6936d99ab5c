"""Elementwise mathematical functions of one tensor.

Written by tools/generate_layers.py from the schemas of the operators.
"""
from __future__ import annotations

from ..explained import explain
from ..framework import Variable
from . import check
from .check import one_op

__all__ = [
    "exp", "log", "sqrt", "rsqrt", "abs", "ceil", "floor", "round", "cos", "sin", "acos", "asin", "atan",
    "reciprocal", "square", "erf", "log1p",
]


def exp(x: Variable, name: str | None = None) -> Variable:
    """Exponential of each element: out = e^x.

    Args:
        x (Variable): any shape, int32, int64, float32 or float64.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape and dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> fluid.layers.exp(x).shape
        (-1, 4)
    """
    check.operand(x, "x", "exp")
    return one_op("exp", {"X": x}, name=name)


def log(x: Variable, name: str | None = None) -> Variable:
    """Natural logarithm of each element: out = ln(x).

    Args:
        x (Variable): any shape, float32 or float64.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape and dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> fluid.layers.log(x).shape
        (-1, 4)
    """
    check.operand(x, "x", "log")
    return one_op("log", {"X": x}, name=name)


def sqrt(x: Variable, name: str | None = None) -> Variable:
    """Square root of each element: out = x^(1/2).

    Args:
        x (Variable): any shape, float32 or float64.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape and dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> fluid.layers.sqrt(x).shape
        (-1, 4)
    """
    check.operand(x, "x", "sqrt")
    return one_op("sqrt", {"X": x}, name=name)


def rsqrt(x: Variable, name: str | None = None) -> Variable:
    """Reciprocal of the square root of each element: out = x^(-1/2).

    Args:
        x (Variable): any shape, float32 or float64.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape and dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> fluid.layers.rsqrt(x).shape
        (-1, 4)
    """
    check.operand(x, "x", "rsqrt")
    return one_op("rsqrt", {"X": x}, name=name)


def abs(x: Variable, name: str | None = None) -> Variable:
    """Absolute value of each element: out = |x|.

    Args:
        x (Variable): any shape, int32, int64, float32 or float64.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape and dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> fluid.layers.abs(x).shape
        (-1, 4)
    """
    check.operand(x, "x", "abs")
    return one_op("abs", {"X": x}, name=name)


def ceil(x: Variable, name: str | None = None) -> Variable:
    """Rounds each element up to an integer: out = ceil(x).

    Args:
        x (Variable): any shape, float32 or float64.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape and dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> fluid.layers.ceil(x).shape
        (-1, 4)
    """
    check.operand(x, "x", "ceil")
    return one_op("ceil", {"X": x}, name=name)


def floor(x: Variable, name: str | None = None) -> Variable:
    """Rounds each element down to an integer: out = floor(x).

    Args:
        x (Variable): any shape, float32 or float64.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape and dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> fluid.layers.floor(x).shape
        (-1, 4)
    """
    check.operand(x, "x", "floor")
    return one_op("floor", {"X": x}, name=name)


def round(x: Variable, name: str | None = None) -> Variable:
    """Rounds each element to the nearest integer, and halves away from zero.

    Args:
        x (Variable): any shape, float32 or float64.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape and dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> fluid.layers.round(x).shape
        (-1, 4)
    """
    check.operand(x, "x", "round")
    return one_op("round", {"X": x}, name=name)


def cos(x: Variable, name: str | None = None) -> Variable:
    """Cosine of each element, in radians: out = cos(x).

    Args:
        x (Variable): any shape, float32 or float64.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape and dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> fluid.layers.cos(x).shape
        (-1, 4)
    """
    check.operand(x, "x", "cos")
    return one_op("cos", {"X": x}, name=name)


def sin(x: Variable, name: str | None = None) -> Variable:
    """Sine of each element, in radians: out = sin(x).

    Args:
        x (Variable): any shape, float32 or float64.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape and dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> fluid.layers.sin(x).shape
        (-1, 4)
    """
    check.operand(x, "x", "sin")
    return one_op("sin", {"X": x}, name=name)


def acos(x: Variable, name: str | None = None) -> Variable:
    """Arccosine of each element, in radians: out = arccos(x).

    Args:
        x (Variable): any shape, float32 or float64.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape and dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> fluid.layers.acos(x).shape
        (-1, 4)
    """
    check.operand(x, "x", "acos")
    return one_op("acos", {"X": x}, name=name)


def asin(x: Variable, name: str | None = None) -> Variable:
    """Arcsine of each element, in radians: out = arcsin(x).

    Args:
        x (Variable): any shape, float32 or float64.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape and dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> fluid.layers.asin(x).shape
        (-1, 4)
    """
    check.operand(x, "x", "asin")
    return one_op("asin", {"X": x}, name=name)


def atan(x: Variable, name: str | None = None) -> Variable:
    """Arctangent of each element, in radians: out = arctan(x).

    Args:
        x (Variable): any shape, float32 or float64.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape and dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> fluid.layers.atan(x).shape
        (-1, 4)
    """
    check.operand(x, "x", "atan")
    return one_op("atan", {"X": x}, name=name)


def reciprocal(x: Variable, name: str | None = None) -> Variable:
    """Reciprocal of each element: out = 1 / x.

    Args:
        x (Variable): any shape, float32 or float64.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape and dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> fluid.layers.reciprocal(x).shape
        (-1, 4)
    """
    check.operand(x, "x", "reciprocal")
    return one_op("reciprocal", {"X": x}, name=name)


def square(x: Variable, name: str | None = None) -> Variable:
    """Square of each element: out = x^2.

    Args:
        x (Variable): any shape, int32, int64, float32 or float64.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape and dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> fluid.layers.square(x).shape
        (-1, 4)
    """
    check.operand(x, "x", "square")
    return one_op("square", {"X": x}, name=name)


def erf(x: Variable) -> Variable:
    """Error function of each element: out = 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x.

    Args:
        x (Variable): any shape, float32 or float64.

    Returns:
        Variable: shape and dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> fluid.layers.erf(x).shape
        (-1, 4)
    """
    check.operand(x, "x", "erf")
    return one_op("erf", {"X": x})


def log1p(x: Variable, out: Variable | None = None, name: str | None = None) -> Variable:
    """Natural logarithm of 1 plus each element: out = ln(1 + x).

    Args:
        x (Variable): any shape, float32 or float64.
        out (Variable, optional): receives the result. Default: a new Variable.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape and dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> fluid.layers.log1p(x).shape
        (-1, 4)
    """
    check.operand(x, "x", "log1p")
    return one_op("log1p", {"X": x}, to=out, name=name)


explain(globals())
