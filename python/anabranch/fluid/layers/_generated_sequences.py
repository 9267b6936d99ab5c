"""Sequences joined, repeated, reversed, cut.

Written by tools/generate_layers.py from the schemas of the operators.
"""
from __future__ import annotations

from collections.abc import Sequence

from ..framework import Variable
from . import check
from .check import one_op

__all__ = [
    "sequence_concat", "sequence_expand", "sequence_expand_as", "sequence_reverse", "sequence_reshape",
    "sequence_enumerate", "sequence_scatter", "sequence_softmax", "gather_tree", "add_position_encoding",
]


def sequence_concat(input: Variable | Sequence[Variable], name: str | None = None) -> Variable:
    """Sequence i of out is sequence i of every input, one behind the other.

    Args:
        input (Variable | sequence of Variable): [rows, ...] each, with equally many sequences.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: [sum of rows, ...].

    Raises:
        TypeError: an argument has another type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> input = fluid.data("input", [None, 4], "float32", lod_level=1)
        >>> fluid.layers.sequence_concat([input, input]).shape
        (-1, 4)
    """
    input = check.variables(input, "input", "sequence_concat")
    return one_op("sequence_concat", {"X": input}, name=name)


def sequence_expand(x: Variable, y: Variable, ref_level: int = -1, name: str | None = None) -> Variable:
    """Row i of x (or its sequence i, when x has sequences) is repeated as often as sequence i of the level ref_level
    of y is long.

    Args:
        x (Variable): [rows, ...], with one level of sequences or none.
        y (Variable): gives its sequences only.
        ref_level (int): level of y; -1: the innermost. Default -1.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: [repeated rows, ...]; with sequences when x has some.

    Raises:
        TypeError: an argument has another type or dtype.

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
    """Row i of x is repeated as often as sequence i of y is long; out has the sequences of y.

    Args:
        x (Variable): [sequences of y, ...].
        y (Variable): gives its sequences only, of one level.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: [rows of y, ...].

    Raises:
        TypeError: an argument has another type or dtype.

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
    """The rows of each sequence of the innermost level in the opposite order.

    Args:
        x (Variable): [rows, ...] with sequences.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: as x.

    Raises:
        TypeError: an argument has another type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32", lod_level=1)
        >>> fluid.layers.sequence_reverse(x).shape
        (-1, 4)
    """
    check.variable(x, "x", "sequence_reverse")
    return one_op("sequence_reverse", {"X": x}, name=name, out="Y")


def sequence_reshape(input: Variable, new_dim: int) -> Variable:
    """The numbers of each sequence, in their order, as rows of width new_dim.

    Args:
        input (Variable): [rows, width] with one level of sequences; new_dim divides the numbers of each.
        new_dim (int): width of out, at least 1.

    Returns:
        Variable: [rows width / new_dim, new_dim] with as many sequences.

    Raises:
        TypeError: an argument has another type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> input = fluid.data("input", [None, 4], "float32", lod_level=1)
        >>> fluid.layers.sequence_reshape(input, new_dim=2).shape
        (-1, 2)
    """
    check.variable(input, "input", "sequence_reshape")
    return one_op("sequence_reshape", {"X": input}, {"new_dim": new_dim})


def sequence_enumerate(input: Variable, win_size: int, pad_value: int = 0, name: str | None = None) -> Variable:
    """Row t of out is the ids t, t + 1, ... of the same sequence, win_size of them; pad_value past its end.

    Args:
        input (Variable): [rows, 1] int32 or int64 with sequences.
        win_size (int): ids in a window, at least 1.
        pad_value (int): stands for ids past the end. Default 0.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: [rows, win_size] with the same sequences.

    Raises:
        TypeError: an argument has another type or dtype.

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
    """out = input, and out[i, id] += u for each id of sequence i of index and its u of updates.

    Args:
        input (Variable): [N, D] numbers; int32, int64, float32, float64.
        index (Variable): [rows, 1] int32 or int64 in [0, D), N sequences.
        updates (Variable): [rows, 1], dtype of input; int32, int64, float32, float64.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: as input.

    Raises:
        TypeError: an argument has another type or dtype.

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
    """Softmax over the rows of each sequence of the innermost level.

    Args:
        input (Variable): [rows, 1] float with sequences; float32, float64.
        use_cudnn (bool): accepted, without effect. Default False.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: as input.

    Raises:
        TypeError: an argument has another type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> input = fluid.data("input", [None, 1], "float32", lod_level=1)
        >>> fluid.layers.sequence_softmax(input).shape
        (-1, 1)
    """
    check.operand(input, "input", "sequence_softmax")
    return one_op("sequence_softmax", {"X": input}, {"use_cudnn": use_cudnn}, name=name)


def gather_tree(ids: Variable, parents: Variable) -> Variable:
    """out[last] = ids[last]; backwards, out[t, batch, beam] is the id of step t in the beam that parents name.

    Args:
        ids (Variable): [steps, batch, beams] int32 or int64.
        parents (Variable): as ids, in [0, beams): the beam of the step before.

    Returns:
        Variable: as ids, whole paths.

    Raises:
        TypeError: an argument has another type or dtype.

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
    """out = alpha input + beta P; row t of a sequence has P[k] = sin(t / 10000^(k / (D/2 - 1))) for the first half of
    the D columns, and the cosines of the same for the other.

    Vaswani et al., Attention is all you need, NIPS 2017, section 3.5.

    Args:
        input (Variable): [rows, D] float with sequences, or [batch, rows, D]; D even; float32, float64.
        alpha (float): factor of input.
        beta (float): factor of the encoding.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: as input.

    Raises:
        TypeError: an argument has another type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> input = fluid.data("input", [None, 7, 4], "float32")
        >>> fluid.layers.add_position_encoding(input, alpha=1.0, beta=0.5).shape
        (-1, 7, 4)
    """
    check.operand(input, "input", "add_position_encoding")
    return one_op("add_position_encoding", {"X": input}, {"alpha": alpha, "beta": beta}, name=name)
