"""Typed attributes of BuildStrategy and ExecutionStrategy, which cannot be changed once the strategy is in use."""
from __future__ import annotations

import enum
import numbers
from typing import Any

import numpy as np

from .errors import EnforceNotMet, InvalidType, InvalidValue


class Field:
    """An attribute with a type, a default and a description. It cannot be set once its owner is in use.

    An automatic attribute returns its default until it is set; until then, the engine chooses its value. An inert
    attribute is kept for programs that set it, and the engine ignores it.
    """

    def __init__(self, default: Any, kind: Any, doc: Any, least: Any = None, optional: Any = False,
                 automatic: Any = False, inert: Any = False) -> None:
        self.default, self.kind, self.least = default, kind, least
        self.optional, self.automatic, self.inert = optional, automatic, inert
        self.__doc__ = doc

    def __set_name__(self, owner: Any, name: str) -> None:
        self.name = name

    def __get__(self, obj: Any, owner: Any = None) -> Any:
        if obj is None:
            return self
        return obj._values.get(self.name, self.default)

    def __set__(self, obj: Any, value: Any) -> None:
        if obj._finalized:
            raise EnforceNotMet("%s is finalized: %s cannot be changed after the first run"
                                % (type(obj).__name__, self.name))
        obj._values[self.name] = self._checked(type(obj).__name__, value)

    def _checked(self, owner, value):
        expected = "None or " * self.optional + self.kind.__name__
        if value is None and self.optional:
            return None
        two_valued = self.kind is bool and self.default is not None
        if two_valued and (value is None or isinstance(value, (numbers.Real, np.bool_))):
            value = bool(value)  # Fluid 1.8.5 accepts numbers as booleans, too
        if self.kind is list and isinstance(value, tuple):
            value = list(value)
        if not isinstance(value, self.kind) or (self.kind is int and isinstance(value, (bool, enum.Enum))):
            raise InvalidType("%s.%s must be a %s, got %r" % (owner, self.name, expected, value))
        if self.kind in (list, set) and not all(isinstance(v, str) for v in value):
            raise InvalidType("%s.%s must hold strings, got %r" % (owner, self.name, value))
        if self.kind is int and value is not None and not -2**31 <= value < 2**31:
            raise InvalidValue("%s.%s must be a 32-bit integer, got %d" % (owner, self.name, value))
        if self.least is not None and value < self.least:
            raise InvalidValue("%s.%s must be at least %d, got %d" % (owner, self.name, self.least, value))
        return value


class Strategy:
    """Base class whose only attributes are the fields of the class."""

    _values: Any = None  # of the fields that were set
    _finalized = False
    _passes = None       # a PassBuilder, created at the first request

    def __init__(self) -> None:
        self._values = {}

    def __setattr__(self, name: str, value: Any) -> None:
        if not hasattr(type(self), name):
            raise AttributeError("%s has no attribute %r" % (type(self).__name__, name))
        object.__setattr__(self, name, value)

    @classmethod
    def _fields(cls):
        return [f for kind in reversed(cls.__mro__) for f in vars(kind).values() if isinstance(f, Field)]

    def _finalize(self):
        self._finalized = True

    def __repr__(self) -> str:
        changed = ", ".join("%s=%r" % (name, value) for name, value in sorted(self._values.items())
                            if value or not isinstance(value, (list, set)))
        return "%s(%s)" % (type(self).__name__, changed)
