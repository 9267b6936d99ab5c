"""Triangles and diagonals of matrices, distances and products of vectors."""
from __future__ import annotations

import numpy

from ..errors import InvalidType, InvalidValue, Violated
from ..framework import Variable
from ..layer_helper import LayerHelper
from . import check
from .check import one_op
from .copies import assign

__all__ = ["tril", "triu", "trace", "diag_embed", "cross", "dist", "allclose"]


def _triangle(layer, input, diagonal, name):
    check.operand(input, "input", layer, "tril_triu")
    check.of_type(diagonal, "diagonal", layer, int)
    if len(input.shape) < 2:
        raise InvalidValue("%s: input must have two axes or more, got shape %s" % (layer, list(input.shape)))
    helper = LayerHelper(layer, name=name)
    out = helper.create_variable(name=helper.name, dtype=input.dtype, persistable=False)
    helper.append_op(type="tril_triu", inputs={"X": input}, outputs={"Out": out},
                     attrs={"diagonal": diagonal, "lower": layer == "tril"})
    return out


def tril(input: Variable, diagonal: int = 0, name: str | None = None) -> Variable:
    """Matrices with zeros above a diagonal.

    Args:
        input (Variable): [..., rows, columns], float32, float64, int32 or int64.
        diagonal (int): the last diagonal that is kept; 0: the main one, above 0: higher. Default 0.
        name (str, optional): of the result.

    Returns:
        Variable: shape and dtype of ``input``.

    Raises:
        TypeError: an argument has the wrong type or dtype.
        ValueError: fewer than two axes.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.tril(fluid.data("x", [3, 4], "float32")).shape
        (3, 4)
    """
    return _triangle("tril", input, diagonal, name)


def triu(input: Variable, diagonal: int = 0, name: str | None = None) -> Variable:
    """Matrices with zeros below a diagonal.

    Args:
        input (Variable): [..., rows, columns], float32, float64, int32 or int64.
        diagonal (int): the first diagonal that is kept; 0: the main one, above 0: higher. Default 0.
        name (str, optional): of the result.

    Returns:
        Variable: shape and dtype of ``input``.

    Raises:
        TypeError: an argument has the wrong type or dtype.
        ValueError: fewer than two axes.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.triu(fluid.data("x", [3, 4], "float32"), diagonal=1).shape
        (3, 4)
    """
    return _triangle("triu", input, diagonal, name)


def _check_axes(layer, rank, dim1, dim2):
    for argument, dim in (("dim1", dim1), ("dim2", dim2)):
        check.of_type(dim, argument, layer, int)
        if not -rank <= dim < rank:
            raise Violated("%s: %s must be from %d to %d, got %d" % (layer, argument, -rank, rank - 1, dim))
    if dim1 % rank == dim2 % rank:
        raise Violated("%s: dim1 and dim2 must be two axes, got %d and %d" % (layer, dim1, dim2))


def trace(input: Variable, offset: int = 0, dim1: int = 0, dim2: int = 1, out: Variable | None = None,
          name: str | None = None) -> Variable:
    """Sums of a diagonal of the matrices that lie in two axes; their rows are in the first of the two.

    Args:
        input (Variable): [...], two axes or more, float32, float64, int32 or int64.
        offset (int): which diagonal; 0: the main one, above 0: higher. Default 0.
        dim1 (int): one axis of the matrices, in [-rank, rank). Default 0.
        dim2 (int): the other axis. Default 1.
        out (Variable, optional): written instead of a new Variable.
        name (str, optional): prefix of the result.

    Returns:
        Variable: the other axes of ``input``; [1] where there is none.

    Raises:
        TypeError: an argument has the wrong type or dtype.
        AssertionError: fewer than two axes, ``dim1`` or ``dim2`` out of range, or both the same.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.trace(fluid.data("x", [2, 3, 4], "float32"), dim1=1, dim2=2).shape
        (2,)
    """
    check.operand(input, "input", "trace")
    if len(input.shape) < 2:
        raise Violated("trace: input must have two axes or more, got shape %s" % list(input.shape))
    _check_axes("trace", len(input.shape), dim1, dim2)
    return one_op("trace", {"Input": input}, {"offset": offset, "dim1": dim1, "dim2": dim2}, name=name, to=out)


def diag_embed(input: Variable | numpy.ndarray, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Variable:
    """Matrices with the last axis of a tensor on a diagonal and zeros elsewhere.

    Args:
        input (Variable|numpy.ndarray): [..., n], float32, float64, int32 or int64.
        offset (int): which diagonal; 0: the main one, above 0: higher. Default 0.
        dim1 (int): where the axis of the rows goes, in [-rank - 1, rank]. Default -2.
        dim2 (int): where the axis of the columns goes. Default -1.

    Returns:
        Variable: the axes of ``input`` but the last, and two of extent n + \\|offset\\|. No gradient flows through it.

    Raises:
        TypeError: an argument has the wrong type or dtype.
        AssertionError: ``dim1`` or ``dim2`` out of range, or both the same.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.diag_embed(fluid.data("x", [2, 3], "float32"), offset=1).shape
        (2, 4, 4)
    """
    if not isinstance(input, Variable):
        input = assign(input)
    check.operand(input, "input", "diag_embed")
    _check_axes("diag_embed", len(input.shape) + 1, dim1, dim2)
    out = one_op("diag_embed", {"Input": [input]}, {"offset": offset, "dim1": dim1, "dim2": dim2})
    out.stop_gradient = True
    return out


def cross(input: Variable, other: Variable, dim: int | None = None) -> Variable:
    """Vector products of the vectors of three numbers that lie along an axis.

    Args:
        input (Variable): [...], with extent 3 on the axis, float32, float64, int32 or int64.
        other (Variable): of the same shape and dtype.
        dim (int, optional): the axis, in [-rank, rank). By default, and where it is 0, the first one of extent 3.

    Returns:
        Variable: shape and dtype of ``input``.

    Raises:
        TypeError: an argument has the wrong type or dtype.
        ValueError: different shapes, or no axis of extent 3.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, y = fluid.data("x", [4, 3], "float32"), fluid.data("y", [4, 3], "float32")
        >>> fluid.layers.cross(x, y).shape
        (4, 3)
    """
    check.operand(input, "input", "cross")
    check.variable(other, "other", "cross")
    return one_op("cross", {"X": input, "Y": other}, {"dim": dim or 9})


def dist(x: Variable, y: Variable, p: float = 2) -> Variable:
    """The p-norm of the difference of two tensors, with broadcasting: (sum of \\|x - y\\|^p)^(1/p).

    Args:
        x (Variable): [...], 1 to 6 axes, float32 or float64.
        y (Variable): likewise; extents of 1 and axes that one side lacks are repeated.
        p (float): the order; 0 counts the elements that differ, infinity takes the largest difference, minus infinity
            the smallest. Default 2.

    Returns:
        Variable: [1], dtype of ``x``.

    Raises:
        TypeError: an argument has the wrong type or dtype.
        ValueError: shapes that do not fit.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, y = fluid.data("x", [3, 4], "float32"), fluid.data("y", [4], "float32")
        >>> fluid.layers.dist(x, y, p=1).shape
        (1,)
    """
    check.operand(x, "x", "dist")
    check.operand(y, "y", "dist")
    return one_op("dist", {"X": [x], "Y": [y]}, {"p": float(p)})


def allclose(input: Variable, other: Variable, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False,
             name: str | None = None) -> Variable:
    """Whether two tensors are equal up to a tolerance: \\|input - other\\| <= atol + rtol \\|other\\| for all elements.

    As in Fluid, two infinities of one sign are not close.

    Args:
        input (Variable): [...], float32 or float64.
        other (Variable): of the same shape and dtype.
        rtol (float): tolerance relative to ``other``. Default 1e-05.
        atol (float): absolute tolerance. Default 1e-08.
        equal_nan (bool): two NaN count as equal. Default False.
        name (str, optional): prefix of the result.

    Returns:
        Variable: [1] bool.

    Raises:
        TypeError: an argument has the wrong type or dtype.
        ValueError: different shapes.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, y = fluid.data("x", [3], "float32"), fluid.data("y", [3], "float32")
        >>> fluid.layers.allclose(x, y, atol=0.1).shape
        (1,)
    """
    check.operand(input, "input", "allclose")
    check.operand(other, "other", "allclose")
    check.of_type(rtol, "rtol", "allclose", float)
    check.of_type(atol, "atol", "allclose", float)
    check.is_bool(equal_nan, "equal_nan", "allclose", InvalidType)
    return one_op("allclose", {"Input": input, "Other": other}, {"rtol": rtol, "atol": atol, "equal_nan": equal_nan},
                  dtype="bool", name=name)
