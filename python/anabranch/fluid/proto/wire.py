"""The wire format of protocol buffers: numbers, strings and nested messages as bytes. Knows no message type."""
from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from ..errors import InvalidValue

VARINT, EIGHT, DELIMITED, FOUR = 0, 1, 2, 5

#: Wire type of each kind of field; enums are varints.
WIRE = {"int32": VARINT, "int64": VARINT, "bool": VARINT, "enum": VARINT, "float": FOUR, "string": DELIMITED,
        "message": DELIMITED}


def varint(number: int) -> bytes:
    """bytes: an integer; negative ones take ten bytes.

    >>> varint(300), len(varint(-1))
    (b'\\xac\\x02', 10)
    """
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def tagged(number: int, kind: str, value: Any) -> bytes:
    """bytes: one value with the number of its field."""
    head = varint(number << 3 | WIRE[kind])
    if kind == "float":
        return head + struct.pack("<f", value)
    if kind in ("string", "message"):
        data = value.encode("utf-8", "surrogateescape") if kind == "string" else value.SerializePartialToString()
        return head + varint(len(data)) + data
    return head + varint(int(value))


def fields(data: bytes) -> Iterator[tuple[int, int, Any, bytes]]:
    """The fields of a message, in order: number, wire type, an int or bytes, and the bytes of the whole field.

    Raises:
        ValueError: the bytes are cut off, or are not a message.
    """
    at = 0
    while at < len(data):
        begin = at
        value: Any
        tag, at = read_varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == VARINT:
            value, at = read_varint(data, at)
        elif wire == DELIMITED:
            length, at = read_varint(data, at)
            value, at = _slice(data, at, length)
        elif wire in (EIGHT, FOUR):
            value, at = _slice(data, at, 8 if wire == EIGHT else 4)
        else:
            raise InvalidValue("the wire type at byte %d of the message must be 0, 1, 2 or 5, got %d" % (begin, wire))
        yield number, wire, value, data[begin:at]


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """tuple: the integer at a position, and the position after it. ValueError: the bytes are cut off."""
    result = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise InvalidValue("the message must have a whole integer at byte %d, got %d bytes" % (at, len(data)))
        result |= (data[at] & 127) << shift
        at += 1
        if data[at - 1] < 128:
            return result & ((1 << 64) - 1), at
        shift += 7


def _slice(data: bytes, at: int, length: int) -> tuple[bytes, int]:
    """The next bytes, and the position after them."""
    if length > len(data) - at:
        raise InvalidValue("the message must have %d bytes at byte %d, got %d" % (length, at, len(data) - at))
    return data[at:at + length], at + length


def number(kind: str, value: int) -> Any:
    """int or bool: the value of a varint field.

    >>> number("int32", (1 << 64) - 1), number("bool", 1)
    (-1, True)
    """
    if kind == "bool":
        return bool(value)
    bits = 64 if kind == "int64" else 32
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def repeated(kind: str, wire: int, value: Any) -> list[Any]:
    """list: the numbers of a field that occurs once with one number, or packed with several."""
    if wire != DELIMITED:
        return [struct.unpack("<f", value)[0] if kind == "float" else number(kind, value)]
    if kind == "float":
        if len(value) % 4:
            raise InvalidValue("packed floats must have a multiple of 4 bytes, got %d" % len(value))
        return list(struct.unpack("<%df" % (len(value) // 4), value))
    out, at = [], 0
    while at < len(value):
        one, at = read_varint(value, at)
        out.append(number(kind, one))
    return out
