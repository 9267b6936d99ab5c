"""Layers that move the rows of sequences: joined, repeated, cut, reversed, given another width."""
from . import check
from .check import INTS, WIDE_FLOATS, WIDE_NUMBERS, one_op

__all__ = [
    "sequence_concat", "sequence_expand", "sequence_expand_as", "sequence_slice", "sequence_reverse",
    "sequence_reshape",
    "sequence_enumerate", "sequence_scatter", "sequence_softmax",
]


def sequence_concat(input, name=None):
    """Sequence i of the result is sequence i of every input, one behind the other.

    Args:
        input (list|tuple): Variables [rows, ...] with equally many sequences, float32, float64 or int64. They may
            differ in the number of rows only.
        name (str, optional): stem of the result's name.

    Returns:
        Variable: [sum of rows, ...].

    Raises:
        TypeError: ``input`` is not a list or tuple of Variables, or of another dtype.
        EnforceNotMet: when run, an input without sequences, or with another number of them.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> a = fluid.data("a", [None, 8], "float32", lod_level=1)
        >>> b = fluid.data("b", [None, 8], "float32", lod_level=1)
        >>> fluid.layers.sequence_concat([a, b]).shape
        (-1, 8)
    """
    check.of_type(input, "input", "sequence_concat", (list, tuple))
    values = check.variables(input, "input", "sequence_concat", ("float32", "float64", "int64"))
    return one_op("sequence_concat", {"X": values}, name=name)


def sequence_expand(x, y, ref_level=-1, name=None):
    """Row i of ``x`` (or its sequence i, when it has sequences) repeated as often as sequence i of ``y`` is long.

    Args:
        x (Variable): [rows, ...] with one level of sequences or none, float32, float64, int32 or int64.
        y (Variable): gives its sequences only.
        ref_level (int): the level of ``y`` whose lengths count; -1: the innermost. Default -1.
        name (str, optional): stem of the result's name.

    Returns:
        Variable: [repeated rows, ...]; with sequences when ``x`` has some.

    Raises:
        TypeError: ``x`` is no Variable of a number type.
        EnforceNotMet: when run, ``y`` has no such level, or another number of sequences than ``x``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> query = fluid.data("query", [None, 8], "float32")
        >>> words = fluid.data("words", [None, 8], "float32", lod_level=1)
        >>> fluid.layers.sequence_expand(query, words, ref_level=0).shape
        (-1, 8)
    """
    check.variable(x, "x", "sequence_expand", WIDE_NUMBERS)
    check.variable(y, "y", "sequence_expand")
    return one_op("sequence_expand", {"X": x, "Y": y}, {"ref_level": ref_level}, name=name)


def sequence_expand_as(x, y, name=None):
    """Row i of ``x`` repeated as often as sequence i of ``y`` is long; the result has the sequences of ``y``.

    Args:
        x (Variable): [sequences of y, ...], float32, float64, int32 or int64.
        y (Variable): gives its sequences only, of one level.
        name (str, optional): stem of the result's name.

    Returns:
        Variable: [rows of y, ...].

    Raises:
        TypeError: ``x`` is no Variable of a number type, or ``y`` no Variable.
        EnforceNotMet: when run, ``x`` has another number of rows than ``y`` sequences.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> query = fluid.data("query", [None, 8], "float32")
        >>> words = fluid.data("words", [None, 8], "float32", lod_level=1)
        >>> fluid.layers.sequence_expand_as(query, words).shape
        (-1, 8)
    """
    check.variable(x, "x", "sequence_expand_as", WIDE_NUMBERS)
    check.variable(y, "y", "sequence_expand_as")
    return one_op("sequence_expand_as", {"X": x, "Y": y}, name=name)


def sequence_slice(input, offset, length, name=None):
    """A piece of each sequence: ``length`` rows from row ``offset`` on.

    Args:
        input (Variable): [rows, ...] with sequences, float32, float64, int32 or int64.
        offset (Variable): [sequences, 1], int32 or int64, at least 0.
        length (Variable): [sequences, 1], int32 or int64, at least 1.
        name (str, optional): stem of the result's name.

    Returns:
        Variable: [sum of length, ...] with as many sequences.

    Raises:
        TypeError: another dtype.
        EnforceNotMet: when run, a piece that is not inside its sequence.

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


def sequence_reverse(x, name=None):
    """The rows of each sequence in the opposite order.

    Args:
        x (Variable): [rows, ...] with sequences, float32, float64, int8, int32 or int64.
        name (str, optional): stem of the result's name.

    Returns:
        Variable: as ``x``, with the same sequences.

    Raises:
        TypeError: ``x`` is no Variable of a number type.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> words = fluid.data("words", [None, 8], "float32", lod_level=1)
        >>> fluid.layers.sequence_reverse(words).shape
        (-1, 8)
    """
    check.variable(x, "x", "sequence_reverse", WIDE_NUMBERS + ("int8",))
    return one_op("sequence_reverse", {"X": x}, name=name, out="Y")


def sequence_reshape(input, new_dim):
    """The numbers of each sequence, in their order, as rows of width ``new_dim``.

    Args:
        input (Variable): [rows, width] with one level of sequences, float32, float64, int32 or int64.
        new_dim (int): divides rows * width of every sequence.

    Returns:
        Variable: [rows * width / new_dim, new_dim] with as many sequences.

    Raises:
        TypeError: ``input`` is no Variable of a number type.
        EnforceNotMet: when run, a sequence that cannot be divided.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> words = fluid.data("words", [None, 8], "float32", lod_level=1)
        >>> fluid.layers.sequence_reshape(words, new_dim=16).shape
        (-1, 16)
    """
    check.variable(input, "input", "sequence_reshape", WIDE_NUMBERS)
    return one_op("sequence_reshape", {"X": [input]}, {"new_dim": new_dim})


def sequence_enumerate(input, win_size, pad_value=0, name=None):
    """Windows over ids: row t is the ids t, t + 1, ... of its sequence, ``win_size`` of them.

    Args:
        input (Variable): [rows, 1] with sequences, int32 or int64.
        win_size (int): ids in a window, at least 1.
        pad_value (int): stands for ids past the end. Default 0.
        name (str, optional): stem of the result's name.

    Returns:
        Variable: [rows, win_size] with the same sequences; it has no gradient.

    Raises:
        TypeError: ``input`` is no Variable of an integer type.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> ids = fluid.data("ids", [None, 1], "int64", lod_level=1)
        >>> fluid.layers.sequence_enumerate(ids, win_size=3).shape
        (-1, 3)
    """
    check.variable(input, "input", "sequence_enumerate", INTS)
    return one_op("sequence_enumerate", {"X": input}, {"win_size": win_size, "pad_value": pad_value}, name=name,
                  stop_gradient=True)


def sequence_scatter(input, index, updates, name=None):
    """``input`` with numbers added to row i at the places that sequence i of ``index`` names.

    Args:
        input (Variable): [N, D], float32, float64, int32 or int64.
        index (Variable): [rows, 1] with N sequences, int32 or int64 in [0, D).
        updates (Variable): [rows, 1], a number for each place, dtype of ``input``.
        name (str, optional): stem of the result's name.

    Returns:
        Variable: [N, D].

    Raises:
        TypeError: another dtype.
        EnforceNotMet: when run, a place outside of [0, D), or another number of sequences.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [3, 6], "float32")
        >>> at = fluid.data("at", [None, 1], "int64", lod_level=1)
        >>> more = fluid.data("more", [None, 1], "float32", lod_level=1)
        >>> fluid.layers.sequence_scatter(x, at, more).shape
        (3, 6)
    """
    check.variable(input, "input", "sequence_scatter", WIDE_NUMBERS)
    check.variable(index, "index", "sequence_scatter", INTS)
    check.variable(updates, "updates", "sequence_scatter", WIDE_NUMBERS)
    return one_op("sequence_scatter", {"X": input, "Ids": index, "Updates": updates}, name=name)


def sequence_softmax(input, use_cudnn=False, name=None):
    """Softmax over the rows of each sequence.

    Args:
        input (Variable): [rows, 1] with sequences, float32 or float64.
        use_cudnn (bool): not used. Default False.
        name (str, optional): stem of the result's name.

    Returns:
        Variable: as ``input``, with the same sequences.

    Raises:
        TypeError: ``input`` is no Variable of float32 or float64.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> scores = fluid.data("scores", [None, 1], "float32", lod_level=1)
        >>> fluid.layers.sequence_softmax(scores).shape
        (-1, 1)
    """
    check.variable(input, "input", "sequence_softmax", WIDE_FLOATS)
    return one_op("sequence_softmax", {"X": input}, {"use_cudnn": use_cudnn}, name=name)
