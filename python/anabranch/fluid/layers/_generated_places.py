"""Layers that select, add or replace elements by position.

Written by tools/generate_layers.py from the schemas of the operators.
"""
from __future__ import annotations

from collections.abc import Sequence

from ..framework import Variable
from . import check
from .check import one_op

__all__ = [
    "index_select", "index_sample", "gather", "gather_nd", "scatter", "where", "shape", "size", "pad",
    "pad_constant_like", "hash",
]


def index_select(input: Variable, index: Variable, dim: int = 0) -> Variable:
    """out = the slices of input at index along one axis.

    Args:
        input (Variable): [...]; int32, int64, float32, float64.
        index (Variable): [K] or [K, 1] int32 or int64, indices on the axis.
        dim (int): the axis; negative: from the end. Default 0.

    Returns:
        Variable: like input, with K on the axis.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> input = fluid.data("input", [4, 7], "float32")
        >>> index = fluid.data("index", [2], "int64")
        >>> fluid.layers.index_select(input, index, dim=1).shape
        (4, 2)
    """
    check.operand(input, "input", "index_select")
    check.variable(index, "index", "index_select", ("int32", "int64",))
    return one_op("index_select", {"X": input, "Index": index}, {"dim": dim})


def index_sample(x: Variable, index: Variable) -> Variable:
    """out[n, k] = x[n, index[n, k]].

    Args:
        x (Variable): [N, M]; int32, int64, float32, float64.
        index (Variable): [N, K] int32 or int64.

    Returns:
        Variable: [N, K].

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 7], "float32")
        >>> index = fluid.data("index", [None, 2], "int64")
        >>> fluid.layers.index_sample(x, index).shape
        (-1, 2)
    """
    check.operand(x, "x", "index_sample")
    check.variable(index, "index", "index_sample", ("int32", "int64",))
    return one_op("index_sample", {"X": x, "Index": index})


def gather(input: Variable, index: Variable, overwrite: bool = True) -> Variable:
    """out = the rows of input at index.

    Args:
        input (Variable): [n, ...] any.
        index (Variable): [m] or [m, 1] int32 or int64.
        overwrite (bool): gradient of a row that is gathered twice: true: of the last one, false: the sum. Default
            True.

    Returns:
        Variable: [m, ...].

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> input = fluid.data("input", [5, 4], "float32")
        >>> index = fluid.data("index", [3], "int64")
        >>> fluid.layers.gather(input, index).shape
        (3, 4)
    """
    check.variable(input, "input", "gather")
    check.variable(index, "index", "gather", ("int32", "int64",))
    return one_op("gather", {"X": input, "Index": index}, {"overwrite": overwrite})


def gather_nd(input: Variable, index: Variable, name: str | None = None) -> Variable:
    """out = the elements, or blocks of elements, of input at the positions in the last axis of index.

    Args:
        input (Variable): [...] any.
        index (Variable): [..., depth] int32 or int64.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: [other axes of index, axes of input from depth on].

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> input = fluid.data("input", [5, 4, 3], "float32")
        >>> index = fluid.data("index", [2, 2], "int64")
        >>> fluid.layers.gather_nd(input, index).shape
        (2, 3)
    """
    check.variable(input, "input", "gather_nd")
    check.variable(index, "index", "gather_nd", ("int32", "int64",))
    return one_op("gather_nd", {"X": input, "Index": index}, name=name)


def scatter(input: Variable, index: Variable, updates: Variable, name: str | None = None,
            overwrite: bool = True) -> Variable:
    """out = input with the rows at index replaced by those of updates (the last one wins), or, without overwrite, set
    to their sum.

    Args:
        input (Variable): [n, ...] float; int32, int64, float32, float64.
        index (Variable): [m] or [m, 1] int32 or int64.
        updates (Variable): [m, ...] like input; int32, int64, float32, float64.
        name (str, optional): prefix of the output's name.
        overwrite (bool): false: sums rows that occur several times. Default True.

    Returns:
        Variable: like input.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> input = fluid.data("input", [5, 4], "float32")
        >>> index = fluid.data("index", [3], "int64")
        >>> updates = fluid.data("updates", [3, 4], "float32")
        >>> fluid.layers.scatter(input, index, updates).shape
        (5, 4)
    """
    check.operand(input, "input", "scatter")
    check.variable(index, "index", "scatter", ("int32", "int64",))
    check.operand(updates, "updates", "scatter")
    return one_op("scatter", {"X": input, "Ids": index, "Updates": updates}, {"overwrite": overwrite}, name=name)


def where(condition: Variable) -> Variable:
    """out = the positions of the elements of condition that are true (not 0), row by row.

    Args:
        condition (Variable): [...] bool or numbers; bool, int32, int64, float32, float64.

    Returns:
        Variable: [number of positions, rank] int64.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> condition = fluid.data("condition", [None, 4], "bool")
        >>> fluid.layers.where(condition).shape
        (-1, 2)
    """
    check.operand(condition, "condition", "where", "where_index")
    return one_op("where_index", {"Condition": condition}, dtype="int64")


def shape(input: Variable) -> Variable:
    """out = the extents of input.

    Args:
        input (Variable): [...] any.

    Returns:
        Variable: [rank] int32.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> input = fluid.data("input", [None, 4], "float32")
        >>> fluid.layers.shape(input).shape
        (2,)
    """
    check.variable(input, "input", "shape")
    return one_op("shape", {"Input": input}, dtype="int32")


def size(input: Variable) -> Variable:
    """out = the number of elements of input.

    Args:
        input (Variable): [...].

    Returns:
        Variable: [1] int64.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> input = fluid.data("input", [None, 4], "float32")
        >>> fluid.layers.size(input).shape
        (1,)
    """
    check.variable(input, "input", "size")
    return one_op("size", {"Input": input}, dtype="int64")


def pad(x: Variable, paddings: Sequence[int], pad_value: float = 0.0, name: str | None = None) -> Variable:
    """out = x with a border of one value.

    Args:
        x (Variable): [...] any; int32, int64, float32, float64.
        paddings (sequence of int): number of elements before and after axis 0, axis 1 ...
        pad_value (float): value of the border. Default 0.0.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: [extents plus paddings].

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [2, 3], "float32")
        >>> fluid.layers.pad(x, paddings=[0, 1, 1, 2]).shape
        (3, 6)
    """
    check.operand(x, "x", "pad")
    return one_op("pad", {"X": x}, {"paddings": paddings, "pad_value": pad_value}, name=name)


def pad_constant_like(x: Variable, y: Variable, pad_value: float = 0.0, name: str | None = None) -> Variable:
    """out = a tensor of the shape of x that holds y in its first corner, and pad_value elsewhere.

    Args:
        x (Variable): [...]: only its shape is read; int32, int64, float32, float64.
        y (Variable): [...] float or int, no axis longer than that of x; int32, int64, float32, float64.
        pad_value (float): value outside of y. Default 0.0.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: [shape of x] with the dtype of y.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [4, 5], "float32")
        >>> y = fluid.data("y", [2, 3], "float32")
        >>> fluid.layers.pad_constant_like(x, y).shape
        (4, 5)
    """
    check.operand(x, "x", "pad_constant_like")
    check.operand(y, "y", "pad_constant_like")
    return one_op("pad_constant_like", {"X": x, "Y": y}, {"pad_value": pad_value}, name=name)


def hash(input: Variable, hash_size: int, num_hash: int = 1, name: str | None = None) -> Variable:
    """out[i, k] = XXH64 of the bytes of row i of input with seed k, modulo hash_size: num_hash hashes per row.

    Args:
        input (Variable): [rows, width] int64 or int32.
        hash_size (int): exclusive upper bound of the hashes.
        num_hash (int): number of hashes per row. Default 1.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: [rows, num_hash, 1], dtype and LoD of input.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> input = fluid.data("input", [None, 1], "int64")
        >>> fluid.layers.hash(input, hash_size=100, num_hash=4).shape
        (-1, 4, 1)
    """
    check.operand(input, "input", "hash")
    return one_op("hash", {"X": input}, {"mod_by": hash_size, "num_hash": num_hash}, name=name, stop_gradient=True)
