"""Triangles and diagonals of matrices, distances, and products of vectors."""
from __future__ import annotations

import numpy

from ..errors import InvalidType, InvalidValue, Violated
from ..explained import explain
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
    """Sets the elements of matrices above a diagonal to zero.

    Args:
        input (Variable): [..., rows, columns], float32, float64, int32 or int64.
        diagonal (int): last diagonal to keep. 0 is the main diagonal; positive numbers are above it. Default 0.
        name (str, optional): name of the result.

    Returns:
        Variable: shape and dtype of ``input``.

    Raises:
        TypeError: an argument has the wrong type or dtype.
        ValueError: ``input`` has fewer than two axes.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.tril(fluid.data("x", [3, 4], "float32")).shape
        (3, 4)
    """
    return _triangle("tril", input, diagonal, name)


def triu(input: Variable, diagonal: int = 0, name: str | None = None) -> Variable:
    """Sets the elements of matrices below a diagonal to zero.

    Args:
        input (Variable): [..., rows, columns], float32, float64, int32 or int64.
        diagonal (int): first diagonal to keep. 0 is the main diagonal; positive numbers are above it. Default 0.
        name (str, optional): name of the result.

    Returns:
        Variable: shape and dtype of ``input``.

    Raises:
        TypeError: an argument has the wrong type or dtype.
        ValueError: ``input`` has fewer than two axes.

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
    """Sums a diagonal of the matrices that two axes form. The first of the two axes counts the rows.

    Args:
        input (Variable): [...], two axes or more, float32, float64, int32 or int64.
        offset (int): number of the diagonal. 0 is the main diagonal; positive numbers are above it. Default 0.
        dim1 (int): first axis of the matrices, in [-rank, rank). Default 0.
        dim2 (int): second axis of the matrices. Default 1.
        out (Variable, optional): receives the result.
        name (str, optional): prefix of the result's name.

    Returns:
        Variable: the other axes of ``input``, or [1] if there are none.

    Raises:
        TypeError: an argument has the wrong type or dtype.
        AssertionError: ``input`` has fewer than two axes, or ``dim1`` or ``dim2`` is out of range, or both are equal.

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
    """Creates matrices that contain the last axis of a tensor on a diagonal and zeros elsewhere.

    Args:
        input (Variable|numpy.ndarray): [..., n], float32, float64, int32 or int64.
        offset (int): number of the diagonal. 0 is the main diagonal; positive numbers are above it. Default 0.
        dim1 (int): position of the row axis, in [-rank - 1, rank]. Default -2.
        dim2 (int): position of the column axis. Default -1.

    Returns:
        Variable: the axes of ``input`` except the last one, and two axes of extent n + \\|offset\\|. It has no
        gradient.

    Raises:
        TypeError: an argument has the wrong type or dtype.
        AssertionError: ``dim1`` or ``dim2`` is out of range, or both are equal.

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
    """Computes the cross products of vectors of three numbers, which lie along an axis.

    Args:
        input (Variable): [...], with extent 3 on the axis, float32, float64, int32 or int64.
        other (Variable): the same shape and dtype.
        dim (int, optional): axis of the vectors, in [-rank, rank). 0 (default) stands for the first axis of extent 3.

    Returns:
        Variable: shape and dtype of ``input``.

    Raises:
        TypeError: an argument has the wrong type or dtype.
        ValueError: the shapes differ, or no axis has extent 3.

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
        y (Variable): dtype of ``x``, with a shape that broadcasts with that of ``x``.
        p (float): order of the norm. 0 counts the elements that differ; infinity returns the largest difference, minus
            infinity the smallest one. Default 2.

    Returns:
        Variable: [1], dtype of ``x``.

    Raises:
        TypeError: an argument has the wrong type or dtype.
        ValueError: the shapes do not match.

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
    """Tests whether two tensors are equal up to a tolerance: \\|input - other\\| <= atol + rtol \\|other\\| for all
    elements.

    As in Fluid, infinities of the same sign are not close.

    Args:
        input (Variable): [...], float32 or float64.
        other (Variable): the same shape and dtype.
        rtol (float): tolerance relative to ``other``. Default 1e-05.
        atol (float): absolute tolerance. Default 1e-08.
        equal_nan (bool): treats two NaN as equal. Default False.
        name (str, optional): prefix of the result's name.

    Returns:
        Variable: [1] bool.

    Raises:
        TypeError: an argument has the wrong type or dtype.
        ValueError: the shapes differ.

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


explain(globals())
