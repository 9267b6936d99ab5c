"""Creates LoDTensors from data and the lengths of their sequences."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from . import arguments
from .errors import EnforceNotMet, InvalidType, Violated

if TYPE_CHECKING:
    from .core import LoDTensor
    from .hints import Place

__all__ = ["create_lod_tensor", "create_random_int_lodtensor"]


def create_lod_tensor(data: Any, recursive_seq_lens: Sequence[Sequence[int]], place: Place) -> LoDTensor:
    """Creates a LoDTensor with the given sequences.

    Args:
        data (numpy.ndarray|LoDTensor|list): the rows, sequence after sequence. A list of sequences of rows becomes an
            array of shape [N, 1], or [N, ..., 1] if rows are lists. Its dtype is int64 for integers and float64
            otherwise.
        recursive_seq_lens (list of list of int): lengths of the sequences, the outermost level first: [[2, 3]] is a
            sequence of two rows and one of three.
        place (CPUPlace|CUDAPlace): location of the tensor.

    Returns:
        LoDTensor.

    Raises:
        AssertionError: the lengths do not match the data.
        TypeError: ``data`` has the wrong type.

    Examples:
        >>> import numpy, anabranch.fluid as fluid
        >>> t = fluid.create_lod_tensor(numpy.zeros((5, 1), "float32"), [[2, 3]], fluid.CPUPlace())
        >>> t.lod(), t.recursive_sequence_lengths()
        ([[0, 2, 5]], [[2, 3]])
    """
    if not hasattr(place, "is_cpu_place"):
        raise InvalidType("create_lod_tensor: place must be a CPUPlace or CUDAPlace, got %s" % type(place).__name__)
    if not isinstance(recursive_seq_lens, (list, tuple)):
        raise InvalidType("create_lod_tensor: recursive_seq_lens must be a list of lists of lengths, got %.60r"
                          % (recursive_seq_lens,))
    if isinstance(data, _core.LoDTensor):
        return create_lod_tensor(np.array(data), recursive_seq_lens, place)
    if isinstance(data, list):
        lengths, rows = _flatten(data)
        if [lengths] != [list(level) for level in recursive_seq_lens]:
            raise Violated("create_lod_tensor: the list has sequences of lengths %s, recursive_seq_lens says %s"
                           % ([lengths], recursive_seq_lens))
        return create_lod_tensor(_as_rows(rows), recursive_seq_lens, place)
    if not isinstance(data, np.ndarray):
        raise InvalidType("create_lod_tensor: data must be an ndarray, LoDTensor or list, got %s" % type(data).__name__)
    tensor = _core.LoDTensor()
    tensor.set(data, place)
    try:
        tensor.set_recursive_sequence_lengths([[int(n) for n in level] for level in recursive_seq_lens])
    except EnforceNotMet as e:
        raise _BadLengths("create_lod_tensor: %s" % e) from None
    return tensor


class _BadLengths(Violated):
    """The lengths do not match. An AssertionError whose name Fluid 1.8.5 shows as EnforceNotMet."""


_BadLengths.__name__ = "EnforceNotMet"


def _flatten(sequences):
    """Returns (lengths, rows) of a list of sequences."""
    lengths, rows = [], []
    for sequence in sequences:
        if not isinstance(sequence, (list, tuple, np.ndarray)):
            raise InvalidType("create_lod_tensor: data must be a list of sequences, got an element %r" % (sequence,))
        lengths.append(len(sequence))
        rows.extend(sequence)
    return lengths, rows


def _as_rows(rows):
    """Returns the rows as an array with an additional last axis of extent 1."""
    try:
        array = np.array(rows)
    except ValueError:
        array = np.array(rows, dtype=object)
    if array.dtype.kind not in "biuf":
        raise InvalidType("create_lod_tensor: the rows must be numbers or lists of equal lengths, got %r" % (rows[:2],))
    return array.astype({"i": "int64", "u": "int64", "f": "float64"}.get(array.dtype.kind, array.dtype))[..., None]


def create_random_int_lodtensor(recursive_seq_lens: Sequence[Sequence[int]], base_shape: Sequence[int], place: Place,
                                low: int, high: int) -> LoDTensor:
    """Creates a LoDTensor of integers drawn uniformly from [low, high], both bounds included.

    Args:
        recursive_seq_lens (list of list of int): lengths of the sequences.
        base_shape (list of int): shape of one row.
        place (CPUPlace|CUDAPlace): location of the tensor.
        low (int), high (int): bounds.

    Returns:
        LoDTensor: int64, shape [sum of the last level] + base_shape.

    Raises:
        AssertionError: ``base_shape`` is not a list.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.create_random_int_lodtensor([[2, 3]], [4], fluid.CPUPlace(), 0, 9).shape()
        [5, 4]
    """
    if not isinstance(base_shape, list):
        raise Violated("create_random_int_lodtensor: base_shape must be a list, got %s" % type(base_shape).__name__)
    rows = sum(recursive_seq_lens[-1])
    data = np.random.randint(low, high + 1, [rows] + base_shape).astype("int64")
    return create_lod_tensor(data, recursive_seq_lens, place)


arguments.explain(globals())
