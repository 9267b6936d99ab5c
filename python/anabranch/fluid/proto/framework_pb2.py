"""Enums of program files. The names of ``fluid.proto.framework_pb2``; its messages are refused at their first use."""
from __future__ import annotations

from typing import Any, NoReturn

from ..._absent import Absent
from .. import core
from ..errors import Unsupported

_MESSAGES = ("BlockDesc", "CompatibleInfo", "OpCompatibleMap", "OpDesc", "OpProto", "ProgramDesc", "VarDesc", "Version")


class _Enum:
    """An enum as generated code of protocol buffers offers it.

    >>> kinds = _Enum({"INT": 0, "FLOAT": 1})
    >>> kinds.Name(1), kinds.Value("INT"), kinds.items()
    ('FLOAT', 0, [('INT', 0), ('FLOAT', 1)])
    """

    def __init__(self, numbers: dict[str, int]) -> None:
        self._numbers = numbers

    def Name(self, number: int) -> str:
        """str: the name of a number; ValueError: there is none."""
        for name, value in self._numbers.items():
            if value == number:
                return name
        raise ValueError("the enum has no name for %s" % (number,))

    def Value(self, name: str) -> int:
        """int: the number of a name; ValueError: there is none."""
        if name not in self._numbers:
            raise ValueError("the enum has no value %s" % (name,))
        return self._numbers[name]

    def keys(self) -> list[str]:
        """list of str: names."""
        return list(self._numbers)

    def values(self) -> list[int]:
        """list of int: numbers."""
        return list(self._numbers.values())

    def items(self) -> list[tuple[str, int]]:
        """list of tuple: names and numbers."""
        return list(self._numbers.items())


_kinds = {**{kind.name: int(kind) for kind in core.VarDesc.VarType}, "SIZE_T": 19}
_attributes = {{"BOOL": "BOOLEAN", "BOOLS": "BOOLEANS"}.get(kind.name, kind.name): int(kind) for kind in core.AttrType}

#: Kinds of variables and element types: ``VarType.FP32`` is 5; ``VarType.Type`` has names of numbers.
VarType = type("VarType", (), {**_kinds, "Type": _Enum(_kinds)})
#: Types of attributes, which are also names of this module: ``framework_pb2.INTS`` is 3.
AttrType = _Enum(_attributes)
globals().update(_attributes)


def _refused(name: str) -> NoReturn:
    raise Unsupported("%s is not available: Program.parse_from_string and program.desc.serialize_to_string() read and "
                      "write program files" % name)


def __getattr__(name: str) -> Any:
    """The messages."""
    if name in _MESSAGES:
        return Absent("proto.framework_pb2." + name, _refused)
    raise AttributeError("module %r has no attribute %r" % (__name__, name))


__all__ = ["AttrType", "VarType"]
