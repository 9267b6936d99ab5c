"""Slices of sequences."""
from __future__ import annotations

from typing import TYPE_CHECKING

from ..explained import explain
from . import check
from .check import INTS, WIDE_NUMBERS, one_op

if TYPE_CHECKING:
    from ..framework import Variable

__all__ = [
    "sequence_slice",
]


def sequence_slice(input: Variable, offset: Variable, length: Variable, name: str | None = None) -> Variable:
    """Returns a slice of each sequence: ``length`` rows from row ``offset`` on.

    Args:
        input (Variable): [rows, ...] with sequences, float32, float64, int32 or int64.
        offset (Variable): [sequences, 1], int32 or int64: first row, at least 0.
        length (Variable): [sequences, 1], int32 or int64: number of rows, at least 0.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: [sum of length, ...] with the same number of sequences.

    Raises:
        TypeError: the dtype is not supported.
        EnforceNotMet: at run time, a slice is not inside its sequence.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> words = fluid.data("words", [None, 8], "float32", lod_level=1)
        >>> first, count = fluid.data("first", [None, 1], "int64"), fluid.data("count", [None, 1], "int64")
        >>> fluid.layers.sequence_slice(words, first, count).shape
        (-1, 8)
    """
    check.variable(input, "input", "sequence_slice", WIDE_NUMBERS)
    check.variable(offset, "offset", "sequence_slice", INTS)
    check.variable(length, "length", "sequence_slice", INTS)
    offset.stop_gradient = True
    length.stop_gradient = True
    return one_op("sequence_slice", {"X": input, "Offset": offset, "Length": length}, name=name)


explain(globals())
