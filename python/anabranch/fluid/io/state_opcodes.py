"""Parser of the opcodes in pickles that ``fluid.save`` and Fluid 1.8.5 write."""
from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

_MOST_OPCODES = 10_000_000

# Opcode: (format of its argument, its action). Formats "s1" .. "s8": 1 to 8 bytes of length, then the bytes.
_OPCODES = {
    b"\x80": ("B", "skip"), b"\x95": ("Q", "skip"), b".": ("", "stop"),
    b"(": ("", "mark"), b"}": ("", "dict"), b")": ("", "empty_tuple"), b"t": ("", "tuple"),
    b"\x85": ("", "tuple1"), b"\x86": ("", "tuple2"), b"\x87": ("", "tuple3"),
    b"N": ("", "none"), b"\x88": ("", "true"), b"\x89": ("", "false"),
    b"J": ("i", "number"), b"K": ("B", "number"), b"M": ("H", "number"), b"G": (">d", "number"),
    b"\x8a": ("s1", "long"),
    b"X": ("s4", "text"), b"\x8c": ("s1", "text"), b"\x8d": ("s8", "text"),
    b"U": ("s1", "bytes"), b"T": ("s4", "bytes"), b"C": ("s1", "bytes"), b"B": ("s4", "bytes"),
    b"\x8e": ("s8", "bytes"),
    b"c": ("lines", "global_"), b"\x93": ("", "stack_global"), b"R": ("", "reduce"), b"b": ("", "build"),
    b"s": ("", "setitem"), b"u": ("", "setitems"),
    b"q": ("B", "put"), b"r": ("I", "put"), b"\x94": ("", "memoize"), b"h": ("B", "get"), b"j": ("I", "get"),
}


class Damaged(Exception):
    """A file is damaged; the message says how."""


def _compiled():
    """For each byte: (name, width of the argument, its reader), width -1: lines, -2: a length, then that many bytes."""
    table = [None] * 256
    for code, (layout, name) in _OPCODES.items():
        if layout == "lines":
            found = (name, -1, None)
        elif layout[:1] == "s":
            found = (name, -2, int(layout[1]))
        else:
            reader = struct.Struct(layout if layout[:1] == ">" else "<" + layout)
            found = (name, reader.size, reader.unpack_from)
        table[code[0]] = found
    return table


_TABLE = _compiled()
OPCODES = {name for _, name in _OPCODES.values()}


def opcodes(data: Any) -> Iterator[Any]:
    """Yields (name, argument) of each opcode up to the end; an argument of bytes is (start, end)."""
    at, size = 0, len(data)
    for _ in range(_MOST_OPCODES):
        found = _TABLE[data[at]] if at < size else None
        if found is None:
            raise Damaged("the file ends too early" if at >= size else "unknown opcode at byte %d" % at)
        name, width, reader = found
        begin = at + 1
        argument = None
        if width >= 0:
            at = begin + width
            if width and at <= size:
                argument, = reader(data, begin)
        elif width == -1:
            at = _line_end(data, _line_end(data, begin))
            argument = data[begin:at - 1].decode("ascii", "replace").split("\n")
        else:
            start = begin + reader
            at = start + int.from_bytes(data[begin:start], "little")
            argument = (start, at)
        if at > size:
            raise Damaged("the file ends too early")
        yield name, argument
        if name == "stop":
            return
    raise Damaged("the file has more than %d opcodes" % _MOST_OPCODES)


def _line_end(data, at):
    end = data.find(b"\n", at, at + 100)
    if end < 0:
        raise Damaged("a name is not terminated")
    return end + 1
