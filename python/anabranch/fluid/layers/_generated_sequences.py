"""Layers that join, repeat, reverse or split sequences.

Written by tools/generate_layers.py from the schemas of the operators.
"""
from __future__ import annotations

from collections.abc import Sequence

from ..explained import explain
from ..framework import Variable
from . import check
from .check import one_op

__all__ = [
    "sequence_concat", "sequence_expand", "sequence_expand_as", "sequence_reverse", "sequence_reshape",
    "sequence_enumerate", "sequence_scatter", "sequence_softmax", "gather_tree", "add_position_encoding",
]


def sequence_concat(input: Variable | Sequence[Variable], name: str | None = None) -> Variable:
    """Concatenates sequences: sequence i of out holds the rows of sequence i of every input, in the order of the
    inputs.

    Args:
        input (Variable | sequence of Variable): [rows, ...] each, with the same number of sequences.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: [sum of rows, ...], dtype of input.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> input = fluid.data("input", [None, 4], "float32", lod_level=1)
        >>> fluid.layers.sequence_concat([input, input]).shape
        (-1, 4)
    """
    input = check.variables(input, "input", "sequence_concat")
    return one_op("sequence_concat", {"X": input}, name=name)


def sequence_expand(x: Variable, y: Variable, ref_level: int = -1, name: str | None = None) -> Variable:
    """Repeats row i of x, or sequence i if x has LoD, n times, where n is the length of sequence i of y at level
    ref_level.

    Args:
        x (Variable): [rows, ...], with one LoD level or none.
        y (Variable): the tensor whose LoD is used.
        ref_level (int): LoD level of y; -1 is the innermost. Default -1.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: [repeated rows, ...], dtype of x; with LoD if x has it.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 1], "float32", lod_level=1)
        >>> y = fluid.data("y", [None, 1], "float32", lod_level=1)
        >>> fluid.layers.sequence_expand(x, y).shape
        (-1, 1)
    """
    check.variable(x, "x", "sequence_expand")
    check.variable(y, "y", "sequence_expand")
    return one_op("sequence_expand", {"X": x, "Y": y}, {"ref_level": ref_level}, name=name)


def sequence_expand_as(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """Repeats row i of x for each row of sequence i of y. The result has the LoD of y.

    Args:
        x (Variable): [S, ...]: a row for each of the S sequences of y.
        y (Variable): the tensor whose LoD is used; it has one level.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: [rows of y, ...], dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 1], "float32")
        >>> y = fluid.data("y", [None, 1], "float32", lod_level=1)
        >>> fluid.layers.sequence_expand_as(x, y).shape
        (-1, 1)
    """
    check.variable(x, "x", "sequence_expand_as")
    check.variable(y, "y", "sequence_expand_as")
    return one_op("sequence_expand_as", {"X": x, "Y": y}, name=name)


def sequence_reverse(x: Variable, name: str | None = None) -> Variable:
    """Reverses the order of the rows of each sequence of the innermost level.

    Args:
        x (Variable): [rows, ...], with LoD.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape and dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32", lod_level=1)
        >>> fluid.layers.sequence_reverse(x).shape
        (-1, 4)
    """
    check.variable(x, "x", "sequence_reverse")
    return one_op("sequence_reverse", {"X": x}, name=name, out="Y")


def sequence_reshape(input: Variable, new_dim: int) -> Variable:
    """Reshapes the numbers of each sequence, in order, to rows of width new_dim.

    Args:
        input (Variable): [rows, width], with one LoD level; new_dim must divide the number of elements of each
            sequence.
        new_dim (int): width of out, at least 1.

    Returns:
        Variable: [rows width / new_dim, new_dim], dtype of input, with the same number of sequences.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> input = fluid.data("input", [None, 4], "float32", lod_level=1)
        >>> fluid.layers.sequence_reshape(input, new_dim=2).shape
        (-1, 2)
    """
    check.variable(input, "input", "sequence_reshape")
    return one_op("sequence_reshape", {"X": input}, {"new_dim": new_dim})


def sequence_enumerate(input: Variable, win_size: int, pad_value: int = 0, name: str | None = None) -> Variable:
    """Lists windows of ids: out[t] holds the win_size ids of a sequence from position t on, and pad_value past its
    end.

    Args:
        input (Variable): [rows, 1], int32 or int64, with LoD.
        win_size (int): number of ids in a window, at least 1.
        pad_value (int): value of the ids past the end. Default 0.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: [rows, win_size], dtype and LoD of input.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> input = fluid.data("input", [None, 1], "int64", lod_level=1)
        >>> fluid.layers.sequence_enumerate(input, win_size=3).shape
        (-1, 3)
    """
    check.operand(input, "input", "sequence_enumerate")
    return one_op("sequence_enumerate", {"X": input}, {"win_size": win_size, "pad_value": pad_value}, name=name,
                  stop_gradient=True)


def sequence_scatter(input: Variable, index: Variable, updates: Variable, name: str | None = None) -> Variable:
    """Adds numbers to elements of input: out = input, plus u at out[i, id] for each id of sequence i of index and its
    number u in updates.

    Args:
        input (Variable): [N, D], int32, int64, float32 or float64.
        index (Variable): [rows, 1], int32 or int64, with N sequences: ids in [0, D).
        updates (Variable): [rows, 1], dtype of input.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape and dtype of input.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> input = fluid.data("input", [None, 6], "float32")
        >>> index = fluid.data("index", [None, 1], "int64", lod_level=1)
        >>> updates = fluid.data("updates", [None, 1], "float32", lod_level=1)
        >>> fluid.layers.sequence_scatter(input, index, updates).shape
        (-1, 6)
    """
    check.operand(input, "input", "sequence_scatter")
    check.variable(index, "index", "sequence_scatter", ("int32", "int64",))
    check.operand(updates, "updates", "sequence_scatter")
    return one_op("sequence_scatter", {"X": input, "Ids": index, "Updates": updates}, name=name)


def sequence_softmax(input: Variable, use_cudnn: bool = False, name: str | None = None) -> Variable:
    """Softmax of input over the rows of each sequence of the innermost level.

    Args:
        input (Variable): [rows, 1], float32 or float64, with LoD.
        use_cudnn (bool): no effect; accepted because programs of Fluid 1.8.5 may set it. Default False.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape and dtype of input.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> input = fluid.data("input", [None, 1], "float32", lod_level=1)
        >>> fluid.layers.sequence_softmax(input).shape
        (-1, 1)
    """
    check.operand(input, "input", "sequence_softmax")
    return one_op("sequence_softmax", {"X": input}, {"use_cudnn": use_cudnn}, name=name)


def gather_tree(ids: Variable, parents: Variable) -> Variable:
    """Traces the beams of a search back to whole paths: out[last] = ids[last], and out[t, batch, beam] is the id of
    step t in the beam that parents gives.

    Args:
        ids (Variable): [steps, batch, beams], int32 or int64.
        parents (Variable): shape and dtype of ids: the beam of the previous step, in [0, beams).

    Returns:
        Variable: shape and dtype of ids: the ids of whole paths.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> ids = fluid.data("ids", [5, None, 3], "int64")
        >>> parents = fluid.data("parents", [5, None, 3], "int64")
        >>> fluid.layers.gather_tree(ids, parents).shape
        (5, -1, 3)
    """
    check.operand(ids, "ids", "gather_tree")
    check.variable(parents, "parents", "gather_tree")
    return one_op("gather_tree", {"Ids": ids, "Parents": parents})


def add_position_encoding(input: Variable, alpha: float, beta: float, name: str | None = None) -> Variable:
    """Adds position encodings: out = alpha input + beta P. Row t of a sequence has P[k] = sin(t / 10000^(k / (D/2 -
    1))) in the first half of the D columns, and the cosines of the same angles in the second half.

    Vaswani et al., Attention is all you need, NIPS 2017, section 3.5.

    Args:
        input (Variable): [rows, D], float32 or float64, with LoD, or [batch, rows, D]; D must be even.
        alpha (float): factor for input.
        beta (float): factor for the encoding.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape and dtype of input.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> input = fluid.data("input", [None, 7, 4], "float32")
        >>> fluid.layers.add_position_encoding(input, alpha=1.0, beta=0.5).shape
        (-1, 7, 4)
    """
    check.operand(input, "input", "add_position_encoding")
    return one_op("add_position_encoding", {"X": input}, {"alpha": alpha, "beta": beta}, name=name)


explain(globals())
