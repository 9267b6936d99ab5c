"""Layers that map ids to shards, add elements at positions, and reorder rows."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..errors import InvalidValue
from ..explained import explain
from . import check
from .check import INTS, one_op
from .fill import zeros

if TYPE_CHECKING:
    from ..framework import Variable
    from ..hints import Shape

__all__ = [
    "shard_index", "scatter_nd_add", "scatter_nd", "reverse", "multiplex",
]


def shard_index(input: Variable, index_num: int, nshards: int, shard_id: int, ignore_value: int = -1) -> Variable:
    """Maps global ids to ids local to one of ``nshards`` equal ranges.

    Args:
        input (Variable): [..., 1], int64, each in [0, index_num).
        index_num (int): number of ids.
        nshards (int): number of ranges. Each has index_num / nshards ids, rounded up.
        shard_id (int): number of the range, in [0, nshards).
        ignore_value (int): result for ids of other ranges. Default -1.

    Returns:
        Variable: shape and dtype of ``input``.

    Raises:
        TypeError: the dtype is not supported.
        ValueError: ``shard_id`` is out of range.
        EnforceNotMet: at run time, an id is out of range.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> ids = fluid.data("ids", [None, 1], "int64")
        >>> fluid.layers.shard_index(ids, index_num=20, nshards=2, shard_id=0).shape
        (-1, 1)
    """
    check.variable(input, "input", "shard_index", INTS)
    if shard_id < 0 or shard_id >= nshards:
        raise InvalidValue("shard_index: shard_id must be from 0 to %d, got %r" % (nshards - 1, shard_id))
    return one_op("shard_index", {"X": input}, {"index_num": index_num, "nshards": nshards, "shard_id": shard_id,
                                                "ignore_value": ignore_value})


def scatter_nd_add(ref: Variable, index: Variable, updates: Variable, name: str | None = None) -> Variable:
    """Adds ``updates`` to ``ref`` at the positions in ``index``. The updates of a repeated position are summed.

    Args:
        ref (Variable): [...], float32, float64, int32 or int64.
        index (Variable): [..., K], int32 or int64. K is at most the number of axes of ``ref``.
        updates (Variable): the shape of ``index`` without its last axis, followed by the axes of ``ref`` from K on;
            dtype of ``ref``.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: shape and dtype of ``ref``.

    Raises:
        TypeError: an argument is not a Variable, or ``index`` has an unsupported dtype.
        ValueError: the dtypes of ``ref`` and ``updates`` differ.
        EnforceNotMet: shapes do not match, or a position is out of range at run time.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, u = fluid.data("x", [5, 3], "float32"), fluid.data("u", [2, 3], "float32")
        >>> fluid.layers.scatter_nd_add(x, fluid.data("i", [2, 1], "int64"), u).shape
        (5, 3)
    """
    for argument, value in (("ref", ref), ("index", index), ("updates", updates)):
        check.variable(value, argument, "scatter_nd_add")
    if ref.dtype != updates.dtype:
        raise InvalidValue("scatter_nd_add: ref and updates must have the same dtype, got %s and %s"
                           % (check.dtype_name(ref.dtype), check.dtype_name(updates.dtype)))
    return one_op("scatter_nd_add", {"X": ref, "Index": index, "Updates": updates}, name=name)


def scatter_nd(index: Variable, updates: Variable, shape: Shape, name: str | None = None) -> Variable:
    """Adds ``updates`` to a tensor of zeros at the positions in ``index``, like :func:`scatter_nd_add`.

    Args:
        index (Variable): [..., K], int32 or int64.
        updates (Variable): the shape of ``index`` without its last axis, followed by ``shape`` from K on.
        shape (list): shape of the result.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: ``shape``, dtype of ``updates``.

    Raises:
        TypeError: an argument is not a Variable.
        EnforceNotMet: shapes do not match, or a position is out of range at run time.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> u = fluid.data("u", [2, 3], "float32")
        >>> fluid.layers.scatter_nd(fluid.data("i", [2, 1], "int64"), u, [5, 3]).shape
        (5, 3)
    """
    check.variable(updates, "updates", "scatter_nd")
    return scatter_nd_add(zeros(shape, updates.dtype), index, updates, name)


def reverse(x: Variable, axis: int | Sequence[Any]) -> Variable:
    """Reverses a tensor along some axes.

    Args:
        x (Variable): [...], any number type.
        axis (int|list|tuple): axes to reverse.

    Returns:
        Variable: shape and dtype of ``x``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.reverse(fluid.data("x", [2, 3], "float32"), axis=[1]).shape
        (2, 3)
    """
    check.variable(x, "x", "reverse")
    return one_op("reverse", {"X": x}, {"axis": [axis] if isinstance(axis, int) else list(axis)})


def multiplex(inputs: Sequence[Any], index: Variable) -> Variable:
    """Row i of the result is row i of inputs[index[i]].

    Args:
        inputs (list): at least two Variables [N, ...] of equal shapes; float32, float64, int32 or int64.
        index (Variable): [N, 1], int32 or int64.

    Returns:
        Variable: shape and dtype of each input.

    Raises:
        ValueError: there are fewer than two inputs.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, y = fluid.data("x", [None, 4], "float32"), fluid.data("y", [None, 4], "float32")
        >>> fluid.layers.multiplex([x, y], fluid.data("i", [None, 1], "int32")).shape
        (-1, 4)
    """
    if not isinstance(inputs, list) or len(inputs) < 2:
        raise InvalidValue("multiplex: inputs must be a list of at least two Variables, got %r" % (inputs,))
    check.variables(inputs, "inputs", "multiplex", check.WIDE_NUMBERS)
    check.variable(index, "index", "multiplex", check.INTS)
    return one_op("multiplex", {"X": inputs, "Ids": index})


explain(globals())
