"""Elementwise functions of two tensors with broadcasting; comparisons and logic.

Written by tools/generate_layers.py from the schemas of the operators.
"""
from __future__ import annotations

from ..explained import explain
from ..framework import Variable
from . import check
from .check import one_op

__all__ = [
    "elementwise_add", "elementwise_sub", "elementwise_mul", "elementwise_div", "elementwise_max", "elementwise_min",
    "elementwise_pow", "elementwise_mod", "elementwise_floordiv", "less_equal", "greater_than", "greater_equal",
    "equal", "not_equal", "less_than", "logical_and", "logical_or", "logical_xor", "logical_not", "expand_as",
]


def elementwise_add(x: Variable, y: Variable, axis: int = -1, act: str | None = None,
                    name: str | None = None) -> Variable:
    """Sum of two tensors, with broadcasting: out = x + y.

    Args:
        x (Variable): any shape, int32, int64, float32 or float64.
        y (Variable): dtype of x; its shape must broadcast with that of x.
        axis (int): axis of x with which the first axis of y is aligned; -1 aligns the last axes. Default -1.
        act (str, optional): activation applied to the result, for example "relu". Default: none.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape of x and y after broadcasting; dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 3, 4], "float32")
        >>> y = fluid.data("y", [3], "float32")
        >>> fluid.layers.elementwise_add(x, y, axis=1).shape
        (-1, 3, 4)
    """
    check.operand(x, "x", "elementwise_add")
    check.operand(y, "y", "elementwise_add")
    return one_op("elementwise_add", {"X": x, "Y": y}, {"axis": axis, "use_mkldnn": False}, act=act, name=name)


def elementwise_sub(x: Variable, y: Variable, axis: int = -1, act: str | None = None,
                    name: str | None = None) -> Variable:
    """Difference of two tensors, with broadcasting: out = x - y.

    Args:
        x (Variable): any shape, int32, int64, float32 or float64.
        y (Variable): dtype of x; its shape must broadcast with that of x.
        axis (int): axis of x with which the first axis of y is aligned; -1 aligns the last axes. Default -1.
        act (str, optional): activation applied to the result, for example "relu". Default: none.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape of x and y after broadcasting; dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 3, 4], "float32")
        >>> y = fluid.data("y", [3], "float32")
        >>> fluid.layers.elementwise_sub(x, y, axis=1).shape
        (-1, 3, 4)
    """
    check.operand(x, "x", "elementwise_sub")
    check.operand(y, "y", "elementwise_sub")
    return one_op("elementwise_sub", {"X": x, "Y": y}, {"axis": axis, "use_mkldnn": False}, act=act, name=name)


def elementwise_mul(x: Variable, y: Variable, axis: int = -1, act: str | None = None,
                    name: str | None = None) -> Variable:
    """Product of two tensors, with broadcasting: out = x y. x may hold sparse rows if y is a scalar.

    Args:
        x (Variable): any shape, int32, int64, float32 or float64, or sparse rows.
        y (Variable): dtype of x; its shape must broadcast with that of x.
        axis (int): axis of x with which the first axis of y is aligned; -1 aligns the last axes. Default -1.
        act (str, optional): activation applied to the result, for example "relu". Default: none.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape of x and y after broadcasting; dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 3, 4], "float32")
        >>> y = fluid.data("y", [3], "float32")
        >>> fluid.layers.elementwise_mul(x, y, axis=1).shape
        (-1, 3, 4)
    """
    check.operand(x, "x", "elementwise_mul")
    check.operand(y, "y", "elementwise_mul")
    return one_op("elementwise_mul", {"X": x, "Y": y}, {"axis": axis, "use_mkldnn": False}, act=act, name=name)


def elementwise_div(x: Variable, y: Variable, axis: int = -1, act: str | None = None,
                    name: str | None = None) -> Variable:
    """Quotient of two tensors, with broadcasting: out = x / y, truncated towards zero for integers.

    Args:
        x (Variable): any shape, int32, int64, float32 or float64, or sparse rows.
        y (Variable): dtype of x; its shape must broadcast with that of x.
        axis (int): axis of x with which the first axis of y is aligned; -1 aligns the last axes. Default -1.
        act (str, optional): activation applied to the result, for example "relu". Default: none.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape of x and y after broadcasting; dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 3, 4], "float32")
        >>> y = fluid.data("y", [3], "float32")
        >>> fluid.layers.elementwise_div(x, y, axis=1).shape
        (-1, 3, 4)
    """
    check.operand(x, "x", "elementwise_div")
    check.operand(y, "y", "elementwise_div")
    return one_op("elementwise_div", {"X": x, "Y": y}, {"axis": axis, "use_mkldnn": False}, act=act, name=name)


def elementwise_max(x: Variable, y: Variable, axis: int = -1, act: str | None = None,
                    name: str | None = None) -> Variable:
    """Elementwise maximum of two tensors, with broadcasting: out = max(x, y).

    Args:
        x (Variable): any shape, int32, int64, float32 or float64.
        y (Variable): dtype of x; its shape must broadcast with that of x.
        axis (int): axis of x with which the first axis of y is aligned; -1 aligns the last axes. Default -1.
        act (str, optional): activation applied to the result, for example "relu". Default: none.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape of x and y after broadcasting; dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 3, 4], "float32")
        >>> y = fluid.data("y", [3], "float32")
        >>> fluid.layers.elementwise_max(x, y, axis=1).shape
        (-1, 3, 4)
    """
    check.operand(x, "x", "elementwise_max")
    check.operand(y, "y", "elementwise_max")
    return one_op("elementwise_max", {"X": x, "Y": y}, {"axis": axis, "use_mkldnn": False}, act=act, name=name)


def elementwise_min(x: Variable, y: Variable, axis: int = -1, act: str | None = None,
                    name: str | None = None) -> Variable:
    """Elementwise minimum of two tensors, with broadcasting: out = min(x, y).

    Args:
        x (Variable): any shape, int32, int64, float32 or float64.
        y (Variable): dtype of x; its shape must broadcast with that of x.
        axis (int): axis of x with which the first axis of y is aligned; -1 aligns the last axes. Default -1.
        act (str, optional): activation applied to the result, for example "relu". Default: none.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape of x and y after broadcasting; dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 3, 4], "float32")
        >>> y = fluid.data("y", [3], "float32")
        >>> fluid.layers.elementwise_min(x, y, axis=1).shape
        (-1, 3, 4)
    """
    check.operand(x, "x", "elementwise_min")
    check.operand(y, "y", "elementwise_min")
    return one_op("elementwise_min", {"X": x, "Y": y}, {"axis": axis, "use_mkldnn": False}, act=act, name=name)


def elementwise_pow(x: Variable, y: Variable, axis: int = -1, act: str | None = None,
                    name: str | None = None) -> Variable:
    """First tensor to the power of the second, with broadcasting: out = x^y.

    Args:
        x (Variable): any shape, int32, int64, float32 or float64.
        y (Variable): dtype of x; its shape must broadcast with that of x.
        axis (int): axis of x with which the first axis of y is aligned; -1 aligns the last axes. Default -1.
        act (str, optional): activation applied to the result, for example "relu". Default: none.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape of x and y after broadcasting; dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 3, 4], "float32")
        >>> y = fluid.data("y", [3], "float32")
        >>> fluid.layers.elementwise_pow(x, y, axis=1).shape
        (-1, 3, 4)
    """
    check.operand(x, "x", "elementwise_pow")
    check.operand(y, "y", "elementwise_pow")
    return one_op("elementwise_pow", {"X": x, "Y": y}, {"axis": axis, "use_mkldnn": False}, act=act, name=name)


def elementwise_mod(x: Variable, y: Variable, axis: int = -1, act: str | None = None,
                    name: str | None = None) -> Variable:
    """Remainder of x / y, with broadcasting. It has the sign of x for integers, and of y for other dtypes.

    Args:
        x (Variable): any shape, int32, int64, float32 or float64.
        y (Variable): dtype of x; its shape must broadcast with that of x.
        axis (int): axis of x with which the first axis of y is aligned; -1 aligns the last axes. Default -1.
        act (str, optional): activation applied to the result, for example "relu". Default: none.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape of x and y after broadcasting; dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 3, 4], "float32")
        >>> y = fluid.data("y", [3], "float32")
        >>> fluid.layers.elementwise_mod(x, y, axis=1).shape
        (-1, 3, 4)
    """
    check.operand(x, "x", "elementwise_mod")
    check.operand(y, "y", "elementwise_mod")
    return one_op("elementwise_mod", {"X": x, "Y": y}, {"axis": axis, "use_mkldnn": False}, act=act, name=name)


def elementwise_floordiv(x: Variable, y: Variable, axis: int = -1, act: str | None = None,
                         name: str | None = None) -> Variable:
    """Quotient of integers, with broadcasting: out = x / y, truncated towards zero.

    Args:
        x (Variable): any shape, int32 or int64.
        y (Variable): dtype of x; its shape must broadcast with that of x.
        axis (int): axis of x with which the first axis of y is aligned; -1 aligns the last axes. Default -1.
        act (str, optional): activation applied to the result, for example "relu". Default: none.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape of x and y after broadcasting; dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 3, 4], "int64")
        >>> y = fluid.data("y", [3], "int64")
        >>> fluid.layers.elementwise_floordiv(x, y, axis=1).shape
        (-1, 3, 4)
    """
    check.operand(x, "x", "elementwise_floordiv")
    check.operand(y, "y", "elementwise_floordiv")
    return one_op("elementwise_floordiv", {"X": x, "Y": y}, {"axis": axis, "use_mkldnn": False}, act=act, name=name)


def less_equal(x: Variable, y: Variable, cond: Variable | None = None) -> Variable:
    """Compares two tensors, with broadcasting: out = x <= y.

    Args:
        x (Variable): any shape, int32, int64, float32 or float64.
        y (Variable): dtype of x; its shape must broadcast with that of x.
        cond (Variable, optional): receives the result. Default: a new Variable.

    Returns:
        Variable: shape of x and y after broadcasting; bool.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> y = fluid.data("y", [None, 4], "float32")
        >>> fluid.layers.less_equal(x, y).shape
        (-1, 4)
    """
    check.operand(x, "x", "less_equal")
    check.operand(y, "y", "less_equal")
    return one_op("less_equal", {"X": x, "Y": y}, dtype="bool", to=cond, stop_gradient=True)


def greater_than(x: Variable, y: Variable, cond: Variable | None = None) -> Variable:
    """Compares two tensors, with broadcasting: out = x > y.

    Args:
        x (Variable): any shape, int32, int64, float32 or float64.
        y (Variable): dtype of x; its shape must broadcast with that of x.
        cond (Variable, optional): receives the result. Default: a new Variable.

    Returns:
        Variable: shape of x and y after broadcasting; bool.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> y = fluid.data("y", [None, 4], "float32")
        >>> fluid.layers.greater_than(x, y).shape
        (-1, 4)
    """
    check.operand(x, "x", "greater_than")
    check.operand(y, "y", "greater_than")
    return one_op("greater_than", {"X": x, "Y": y}, dtype="bool", to=cond, stop_gradient=True)


def greater_equal(x: Variable, y: Variable, cond: Variable | None = None) -> Variable:
    """Compares two tensors, with broadcasting: out = x >= y.

    Args:
        x (Variable): any shape, int32, int64, float32 or float64.
        y (Variable): dtype of x; its shape must broadcast with that of x.
        cond (Variable, optional): receives the result. Default: a new Variable.

    Returns:
        Variable: shape of x and y after broadcasting; bool.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> y = fluid.data("y", [None, 4], "float32")
        >>> fluid.layers.greater_equal(x, y).shape
        (-1, 4)
    """
    check.operand(x, "x", "greater_equal")
    check.operand(y, "y", "greater_equal")
    return one_op("greater_equal", {"X": x, "Y": y}, dtype="bool", to=cond, stop_gradient=True)


def equal(x: Variable, y: Variable, cond: Variable | None = None) -> Variable:
    """Compares two tensors, with broadcasting: out = x == y.

    Args:
        x (Variable): any shape, int32, int64, float32 or float64.
        y (Variable): dtype of x; its shape must broadcast with that of x.
        cond (Variable, optional): receives the result. Default: a new Variable.

    Returns:
        Variable: shape of x and y after broadcasting; bool.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> y = fluid.data("y", [None, 4], "float32")
        >>> fluid.layers.equal(x, y).shape
        (-1, 4)
    """
    check.operand(x, "x", "equal")
    check.operand(y, "y", "equal")
    return one_op("equal", {"X": x, "Y": y}, dtype="bool", to=cond, stop_gradient=True)


def not_equal(x: Variable, y: Variable, cond: Variable | None = None) -> Variable:
    """Compares two tensors, with broadcasting: out = x != y.

    Args:
        x (Variable): any shape, int32, int64, float32 or float64.
        y (Variable): dtype of x; its shape must broadcast with that of x.
        cond (Variable, optional): receives the result. Default: a new Variable.

    Returns:
        Variable: shape of x and y after broadcasting; bool.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> y = fluid.data("y", [None, 4], "float32")
        >>> fluid.layers.not_equal(x, y).shape
        (-1, 4)
    """
    check.operand(x, "x", "not_equal")
    check.operand(y, "y", "not_equal")
    return one_op("not_equal", {"X": x, "Y": y}, dtype="bool", to=cond, stop_gradient=True)


def less_than(x: Variable, y: Variable, force_cpu: bool | None = None, cond: Variable | None = None) -> Variable:
    """Compares two tensors, with broadcasting: out = x < y.

    Args:
        x (Variable): any shape, int32, int64, float32 or float64.
        y (Variable): dtype of x; its shape must broadcast with that of x.
        force_cpu (bool, optional): no effect; accepted because programs of Fluid 1.8.5 may set it. Default False.
        cond (Variable, optional): receives the result. Default: a new Variable.

    Returns:
        Variable: shape of x and y after broadcasting; bool.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> y = fluid.data("y", [None, 4], "float32")
        >>> fluid.layers.less_than(x, y).shape
        (-1, 4)
    """
    check.operand(x, "x", "less_than")
    check.operand(y, "y", "less_than")
    return one_op("less_than", {"X": x, "Y": y}, {"force_cpu": force_cpu}, dtype="bool", to=cond, stop_gradient=True)


def logical_and(x: Variable, y: Variable, out: Variable | None = None, name: str | None = None) -> Variable:
    """Logical and of two tensors, elementwise: out = x and y.

    Args:
        x (Variable): any shape, bool.
        y (Variable): any shape, bool, as many elements as x.
        out (Variable, optional): receives the result. Default: a new Variable.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape and dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "bool")
        >>> y = fluid.data("y", [None, 4], "bool")
        >>> fluid.layers.logical_and(x, y).shape
        (-1, 4)
    """
    check.operand(x, "x", "logical_and")
    check.operand(y, "y", "logical_and")
    return one_op("logical_and", {"X": x, "Y": y}, to=out, name=name)


def logical_or(x: Variable, y: Variable, out: Variable | None = None, name: str | None = None) -> Variable:
    """Logical or of two tensors, elementwise: out = x or y.

    Args:
        x (Variable): any shape, bool.
        y (Variable): any shape, bool, as many elements as x.
        out (Variable, optional): receives the result. Default: a new Variable.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape and dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "bool")
        >>> y = fluid.data("y", [None, 4], "bool")
        >>> fluid.layers.logical_or(x, y).shape
        (-1, 4)
    """
    check.operand(x, "x", "logical_or")
    check.operand(y, "y", "logical_or")
    return one_op("logical_or", {"X": x, "Y": y}, to=out, name=name)


def logical_xor(x: Variable, y: Variable, out: Variable | None = None, name: str | None = None) -> Variable:
    """Logical exclusive or of two tensors, elementwise: out = x xor y.

    Args:
        x (Variable): any shape, bool.
        y (Variable): any shape, bool, as many elements as x.
        out (Variable, optional): receives the result. Default: a new Variable.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape and dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "bool")
        >>> y = fluid.data("y", [None, 4], "bool")
        >>> fluid.layers.logical_xor(x, y).shape
        (-1, 4)
    """
    check.operand(x, "x", "logical_xor")
    check.operand(y, "y", "logical_xor")
    return one_op("logical_xor", {"X": x, "Y": y}, to=out, name=name)


def logical_not(x: Variable, out: Variable | None = None, name: str | None = None) -> Variable:
    """Logical not of each element: out = not x.

    Args:
        x (Variable): any shape, bool.
        out (Variable, optional): receives the result. Default: a new Variable.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape and dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "bool")
        >>> fluid.layers.logical_not(x).shape
        (-1, 4)
    """
    check.operand(x, "x", "logical_not")
    return one_op("logical_not", {"X": x}, to=out, name=name)


def expand_as(x: Variable, target_tensor: Variable, name: str | None = None) -> Variable:
    """Repeats x along each axis up to the shape of target_tensor.

    Args:
        x (Variable): any shape, any dtype.
        target_tensor (Variable): any shape: the tensor whose shape is used.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: [shape of target_tensor], dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [1, 3], "float32")
        >>> target_tensor = fluid.data("target_tensor", [4, 3], "float32")
        >>> fluid.layers.expand_as(x, target_tensor).shape
        (4, 3)
    """
    check.variable(x, "x", "expand_as")
    check.variable(target_tensor, "target_tensor", "expand_as")
    return one_op("expand_as", {"X": x, "target_tensor": target_tensor}, name=name)


explain(globals())
