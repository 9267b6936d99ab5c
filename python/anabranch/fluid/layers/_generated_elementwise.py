"""Elementwise functions of two tensors with broadcasting; comparisons and logic.

Written by tools/generate_layers.py from the schemas of the operators.
"""
from __future__ import annotations

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
    """out = x + y.

    Args:
        x (Variable): [...] numbers, or sparse rows; int32, int64, float32, float64.
        y (Variable): [...] like x, with a shape that broadcasts with it; int32, int64, float32, float64.
        axis (int): axis of x where y starts; -1: aligns y with the last axes. Default -1.
        act (str, optional): activation applied to the result, for example "relu".
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: the joint shape.

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
    """out = x - y.

    Args:
        x (Variable): [...] numbers, or sparse rows; int32, int64, float32, float64.
        y (Variable): [...] like x, with a shape that broadcasts with it; int32, int64, float32, float64.
        axis (int): axis of x where y starts; -1: aligns y with the last axes. Default -1.
        act (str, optional): activation applied to the result, for example "relu".
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: the joint shape.

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
    """out = x y; x may hold sparse rows if y is a scalar.

    Args:
        x (Variable): [...] numbers, or sparse rows; int32, int64, float32, float64.
        y (Variable): [...] like x, with a shape that broadcasts with it; int32, int64, float32, float64.
        axis (int): axis of x where y starts; -1: aligns y with the last axes. Default -1.
        act (str, optional): activation applied to the result, for example "relu".
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: the joint shape.

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
    """out = x / y, truncated towards zero for integers.

    Args:
        x (Variable): [...] numbers, or sparse rows; int32, int64, float32, float64.
        y (Variable): [...] like x, with a shape that broadcasts with it; int32, int64, float32, float64.
        axis (int): axis of x where y starts; -1: aligns y with the last axes. Default -1.
        act (str, optional): activation applied to the result, for example "relu".
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: the joint shape.

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
    """out = the larger of x and y.

    Args:
        x (Variable): [...] numbers, or sparse rows; int32, int64, float32, float64.
        y (Variable): [...] like x, with a shape that broadcasts with it; int32, int64, float32, float64.
        axis (int): axis of x where y starts; -1: aligns y with the last axes. Default -1.
        act (str, optional): activation applied to the result, for example "relu".
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: the joint shape.

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
    """out = the smaller of x and y.

    Args:
        x (Variable): [...] numbers, or sparse rows; int32, int64, float32, float64.
        y (Variable): [...] like x, with a shape that broadcasts with it; int32, int64, float32, float64.
        axis (int): axis of x where y starts; -1: aligns y with the last axes. Default -1.
        act (str, optional): activation applied to the result, for example "relu".
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: the joint shape.

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
    """out = x to the power y.

    Args:
        x (Variable): [...] numbers, or sparse rows; int32, int64, float32, float64.
        y (Variable): [...] like x, with a shape that broadcasts with it; int32, int64, float32, float64.
        axis (int): axis of x where y starts; -1: aligns y with the last axes. Default -1.
        act (str, optional): activation applied to the result, for example "relu".
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: the joint shape.

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
    """out = the remainder of x / y, with the sign of x for integers, else of y.

    Args:
        x (Variable): [...] numbers, or sparse rows; int32, int64, float32, float64.
        y (Variable): [...] like x, with a shape that broadcasts with it; int32, int64, float32, float64.
        axis (int): axis of x where y starts; -1: aligns y with the last axes. Default -1.
        act (str, optional): activation applied to the result, for example "relu".
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: the joint shape.

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
    """out = x / y, truncated towards zero.

    Args:
        x (Variable): [...] numbers, or sparse rows; int32, int64.
        y (Variable): [...] like x, with a shape that broadcasts with it; int32, int64.
        axis (int): axis of x where y starts; -1: aligns y with the last axes. Default -1.
        act (str, optional): activation applied to the result, for example "relu".
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: the joint shape.

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
    """out = x <= y.

    Args:
        x (Variable): [...]; bool, int32, int64, float32, float64.
        y (Variable): [...] like x, with a shape that broadcasts with it; bool, int32, int64, float32, float64.
        cond (Variable, optional): receives the result.

    Returns:
        Variable: the joint shape, bool.

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
    """out = x > y.

    Args:
        x (Variable): [...]; bool, int32, int64, float32, float64.
        y (Variable): [...] like x, with a shape that broadcasts with it; bool, int32, int64, float32, float64.
        cond (Variable, optional): receives the result.

    Returns:
        Variable: the joint shape, bool.

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
    """out = x >= y.

    Args:
        x (Variable): [...]; bool, int32, int64, float32, float64.
        y (Variable): [...] like x, with a shape that broadcasts with it; bool, int32, int64, float32, float64.
        cond (Variable, optional): receives the result.

    Returns:
        Variable: the joint shape, bool.

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
    """out = x == y.

    Args:
        x (Variable): [...]; bool, int32, int64, float32, float64.
        y (Variable): [...] like x, with a shape that broadcasts with it; bool, int32, int64, float32, float64.
        cond (Variable, optional): receives the result.

    Returns:
        Variable: the joint shape, bool.

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
    """out = x != y.

    Args:
        x (Variable): [...]; bool, int32, int64, float32, float64.
        y (Variable): [...] like x, with a shape that broadcasts with it; bool, int32, int64, float32, float64.
        cond (Variable, optional): receives the result.

    Returns:
        Variable: the joint shape, bool.

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
    """out = x < y.

    Args:
        x (Variable): [...]; bool, int32, int64, float32, float64.
        y (Variable): [...] like x, with a shape that broadcasts with it; bool, int32, int64, float32, float64.
        force_cpu (bool, optional): accepted, without effect. Default False.
        cond (Variable, optional): receives the result.

    Returns:
        Variable: the joint shape, bool.

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
    """out = x and y.

    Args:
        x (Variable): [...] bool.
        y (Variable): [...] bool, with the number of elements of x.
        out (Variable, optional): receives the result.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: like x.

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
    """out = x or y.

    Args:
        x (Variable): [...] bool.
        y (Variable): [...] bool, with the number of elements of x.
        out (Variable, optional): receives the result.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: like x.

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
    """out = either x or y.

    Args:
        x (Variable): [...] bool.
        y (Variable): [...] bool, with the number of elements of x.
        out (Variable, optional): receives the result.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: like x.

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
    """out = not x, elementwise.

    Args:
        x (Variable): [...] bool.
        out (Variable, optional): receives the result.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: [...] bool.

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
    """out = x repeated to the shape of target_tensor.

    Args:
        x (Variable): [...] any.
        target_tensor (Variable): only its shape is read.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: as target_tensor.

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
