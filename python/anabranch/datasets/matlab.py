"""Reads matrices from files of MATLAB 5, in which some data sets store their labels. SciPy is not needed."""
from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

import numpy as np

from ..fluid.errors import InvalidValue, Unsupported

__all__ = ["tables"]

_HEADER = 128
_MATRIX, _COMPRESSED = 14, 15
#: Kinds of numbers, by what a file calls them.
_NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
#: Kinds of matrices that are numbers; others are texts, structures, cells.
_NUMERIC = range(6, 16)
_MOST_BYTES = 1 << 28


def _elements(data: bytes, order: str) -> Iterator[tuple[int, bytes]]:
    """(kind, bytes) of the elements that follow each other."""
    at = 0
    while at + 8 <= len(data):
        kind, size = struct.unpack_from(order + "II", data, at)
        begin, room = at + 8, size if kind == _COMPRESSED else size + -size % 8
        if kind >> 16:                                  # a short one: kind, size and bytes in eight bytes
            kind, size, begin, room = kind & 0xFFFF, kind >> 16, at + 4, 4
        if size > min(room, len(data) - begin):
            raise InvalidValue("an element has %d bytes, but only %d are left" % (size, len(data) - begin))
        yield kind, data[begin:begin + size]
        at = begin + room


def _numbers(kind: int, data: bytes, order: str) -> np.ndarray:
    if kind not in _NUMBERS:
        raise InvalidValue("the number type %d is unknown" % kind)
    return np.frombuffer(data, order + _NUMBERS[kind])


def _matrix(data: bytes, order: str) -> tuple[str, np.ndarray | None]:
    """The name and the numbers of a matrix, None for one of other things."""
    parts = list(_elements(data, order))
    if len(parts) < 4:
        raise InvalidValue("a matrix must have at least four parts, got %d" % len(parts))
    flags, extents = _numbers(*parts[0], order), _numbers(*parts[1], order)
    name = parts[2][1].decode("ascii", "replace")
    if not len(flags) or int(flags[0]) & 0xFF not in _NUMERIC:
        return name, None
    values = _numbers(*parts[3], order)
    if min(extents, default=0) < 0 or int(np.prod(extents, dtype=np.int64)) != len(values):
        raise InvalidValue("%s has the extents %s and %d numbers" % (name, extents.tolist(), len(values)))
    return name, values.reshape(extents.tolist(), order="F")


def tables(path: str) -> dict[str, np.ndarray]:
    """Returns all numeric matrices in a file by name.

    Args:
        path (str): a file of MATLAB 5 to 7, compressed or not.

    Returns:
        dict: name -> numpy.ndarray.

    Raises:
        ValueError: the file does not exist or is damaged.
        NotImplementedError: a file of MATLAB 7.3, which is HDF5.
    """
    with open(path, "rb") as file:
        data = file.read(_MOST_BYTES)
    if data[:10] == b"MATLAB 7.3":
        raise Unsupported("%s is a file of MATLAB 7.3 (HDF5); save it with -v7" % path)
    order = {b"IM": "<", b"MI": ">"}.get(data[126:_HEADER])
    if order is None:
        raise InvalidValue("%s must be a file of MATLAB 5 to 7: its header has no byte order" % path)
    found = {}
    try:
        for kind, part in _elements(data[_HEADER:], order):
            if kind == _COMPRESSED:
                (kind, part), = _elements(zlib.decompressobj().decompress(part, _MOST_BYTES), order)
            if kind == _MATRIX:
                name, values = _matrix(part, order)
                if values is not None:
                    found[name] = values
    except (InvalidValue, ValueError, struct.error, zlib.error) as e:
        raise InvalidValue("%s is damaged: %s" % (path, e)) from None
    return found
