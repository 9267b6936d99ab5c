"""Layers that select, add or replace elements by position.

Written by tools/generate_layers.py from the schemas of the operators.
"""
from __future__ import annotations

from collections.abc import Sequence

from ..explained import explain
from ..framework import Variable
from . import check
from .check import one_op

__all__ = [
    "index_select", "index_sample", "gather", "gather_nd", "scatter", "where", "shape", "size", "pad",
    "pad_constant_like", "hash",
]


def index_select(input: Variable, index: Variable, dim: int = 0) -> Variable:
    """Selects the slices of input at the positions index along an axis.

    Args:
        input (Variable): any shape, int32, int64, float32 or float64.
        index (Variable): [K] or [K, 1], int32 or int64: positions on the axis.
        dim (int): axis along which slices are selected; a negative axis counts from the last. Default 0.

    Returns:
        Variable: shape of input with extent K on the axis; dtype of input.

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
    """Selects elements of each row: out[n, k] = x[n, index[n, k]].

    Args:
        x (Variable): [N, M], int32, int64, float32 or float64.
        index (Variable): [N, K], int32 or int64: columns of x.

    Returns:
        Variable: [N, K], dtype of x.

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
    """Selects the rows of input at the positions index.

    Args:
        input (Variable): [n, ...], any dtype.
        index (Variable): [m] or [m, 1], int32 or int64: rows of input, which may repeat.
        overwrite (bool): gradient of a row that index repeats. True: the gradient of its last occurrence. False: the
            sum over its occurrences. Default True.

    Returns:
        Variable: [m, ...], dtype of input.

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
    """Selects elements or slices of input at the positions that the last axis of index holds.

    Args:
        input (Variable): any shape, any dtype.
        index (Variable): [..., depth], int32 or int64: positions on the first depth axes of input.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: [other axes of index, axes of input from depth on], dtype of input.

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
    """Replaces the rows of input at the positions index with the rows of updates. A row that index repeats is set to
    its last update, or to the sum of its updates if overwrite is false.

    Args:
        input (Variable): [n, ...], int32, int64, float32 or float64.
        index (Variable): [m] or [m, 1], int32 or int64: rows of input to replace.
        updates (Variable): [m, ...], dtype of input.
        name (str, optional): prefix of the output's name. Default: the operator's type.
        overwrite (bool): sets a row that index repeats to its last update instead of the sum. Default True.

    Returns:
        Variable: shape and dtype of input.

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
    """Lists the positions of the elements of condition that are true (not 0), in row-major order.

    Args:
        condition (Variable): any shape, bool, int32, int64, float32 or float64.

    Returns:
        Variable: [number of positions, rank], int64.

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
    """Returns the extents of input.

    Args:
        input (Variable): any shape, any dtype.

    Returns:
        Variable: [rank], int32.

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
    """Returns the number of elements of input.

    Args:
        input (Variable): any shape, any dtype.

    Returns:
        Variable: [1], int64.

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
    """Surrounds x with a border of constant value.

    Args:
        x (Variable): any shape, int32, int64, float32 or float64.
        paddings (sequence of int): number of elements before and after axis 0, before and after axis 1, and so on.
        pad_value (float): value of the border. Default 0.0.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: [extents of x plus paddings], dtype of x.

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
    """Pads y with a constant at the end of each axis up to the shape of x.

    Args:
        x (Variable): any shape, int32, int64, float32 or float64: the tensor whose shape is used.
        y (Variable): any shape, int32, int64, float32 or float64; no axis may be longer than that of x.
        pad_value (float): value of the elements outside y. Default 0.0.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: [shape of x], dtype of y.

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
    """Hashes each row num_hash times: out[i, k] = XXH64 of the bytes of row i of input with seed k, modulo hash_size.

    Args:
        input (Variable): [rows, width], int64 or int32.
        hash_size (int): exclusive upper bound of the hashes.
        num_hash (int): number of hashes per row. Default 1.
        name (str, optional): prefix of the output's name. Default: the operator's type.

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


explain(globals())
