"""Fields of messages: what they store, and lists of values."""
from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ..errors import InvalidType, InvalidValue


class Field(NamedTuple):
    """One field of a message type."""

    name: str
    number: int
    kind: str
    label: str
    default: Any
    of: Any  # the class of a nested message, the enum of an enum


class Fields(list):
    """The values of a repeated field."""

    def __init__(self, field: Field, changed: Callable[[], None]) -> None:
        super().__init__()
        self._field, self._changed = field, changed

    def append(self, value: Any) -> None:
        """Appends a value; of a message, a copy."""
        super().append(self._checked(value))
        self._changed()

    def extend(self, values: Iterable[Any]) -> None:
        """Appends values; of messages, copies."""
        super().extend([self._checked(value) for value in values])
        self._changed()

    def __iadd__(self, values: Iterable[Any]) -> Fields:  # type: ignore[misc]
        self.extend(values)
        return self

    def insert(self, index: Any, value: Any) -> None:
        """Inserts a value."""
        super().insert(index, self._checked(value))
        self._changed()

    def __setitem__(self, index: Any, value: Any) -> None:
        if self._field.kind == "message":
            raise InvalidType("%s: elements are messages: change them in place, or use CopyFrom" % self._field.name)
        super().__setitem__(index, [self._checked(v) for v in value] if isinstance(index, slice)
                            else self._checked(value))

    def add(self, **values: Any) -> Any:
        """Message: a new message, which is appended."""
        if self._field.kind != "message":
            raise AttributeError("%s holds no messages: use append" % self._field.name)
        super().append(self._field.of(**values))
        self._changed()
        return self[-1]

    MergeFrom = extend

    def _checked(self, value: Any) -> Any:
        return checked(self._field, value)


def checked(field: Field, value: Any) -> Any:
    """The value as its field stores it. TypeError, ValueError: it does not fit."""
    kind = field.kind
    if kind == "message":
        if type(value) is not field.of:
            raise InvalidType("%s must be %s, got %s" % (field.name, field.of.__name__, type(value).__name__))
        return value.__deepcopy__()
    if kind == "string":
        value = value.decode() if isinstance(value, bytes) else value
        if not isinstance(value, str):
            raise InvalidType("%s must be a string, got %s" % (field.name, type(value).__name__))
        return value
    if kind == "float":
        if not hasattr(value, "__float__") or isinstance(value, str):
            raise InvalidType("%s must be a number, got %s" % (field.name, type(value).__name__))
        return _float32(float(value))
    if not hasattr(value, "__index__"):
        raise InvalidType("%s must be an integer, got %s" % (field.name, type(value).__name__))
    value = value.__index__()
    if kind == "bool":
        return bool(value)
    if kind == "enum" and value not in field.of.values():
        raise InvalidValue("%s must be a number of the enum, got %d" % (field.name, value))
    bits = 63 if kind == "int64" else 31
    if not -(1 << bits) <= value < 1 << bits:
        raise InvalidValue("%s must fit in %s, got %d" % (field.name, kind, value))
    return value


def _float32(value: float) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
