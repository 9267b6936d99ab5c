"""Messages and enums of program files. The names of ``fluid.proto.framework_pb2``."""
from __future__ import annotations

from typing import Any

from .. import core
from .messages import Message, message

_COMPATIBLE = {"COMPATIBLE": 0, "DEFINITELY_NOT": 1, "POSSIBLE": 2, "BUG_FIX": 3, "PRECISION_CHANGE": 4}

#: Message types, each after those that it contains. A line is: number, label, type, name, and a default.
_TABLES = {
    "Version": """1 optional int64 version 0""",
    "OpDesc.Attr": """
        1 required string name
        2 required AttrType type
        3 optional int32 i
        4 optional float f
        5 optional string s
        6 repeated int32 ints
        7 repeated float floats
        8 repeated string strings
        10 optional bool b
        11 repeated bool bools
        12 optional int32 block_idx
        13 optional int64 l
        14 repeated int32 blocks_idx
        15 repeated int64 longs""",
    "OpDesc.Var": """
        1 required string parameter
        2 repeated string arguments""",
    "OpDesc": """
        1 repeated OpDesc.Var inputs
        2 repeated OpDesc.Var outputs
        3 required string type
        4 repeated OpDesc.Attr attrs
        5 optional bool is_target 0""",
    "OpProto.Var": """
        1 required string name
        2 required string comment
        3 optional bool duplicable 0
        4 optional bool intermediate 0
        5 optional bool dispensable 0""",
    "OpProto.Attr": """
        1 required string name
        2 required AttrType type
        3 required string comment
        4 optional bool generated 0""",
    "OpProto": """
        1 required string type
        2 repeated OpProto.Var inputs
        3 repeated OpProto.Var outputs
        4 repeated OpProto.Attr attrs
        5 required string comment""",
    "VarType.TensorDesc": """
        1 required VarType.Type data_type
        2 repeated int64 dims""",
    "VarType.LoDTensorDesc": """
        1 required VarType.TensorDesc tensor
        2 optional int32 lod_level 0""",
    "VarType.LoDTensorArrayDesc": """
        1 required VarType.TensorDesc tensor
        2 optional int32 lod_level 0""",
    "VarType.ReaderDesc": """1 repeated VarType.LoDTensorDesc lod_tensor""",
    "VarType.Tuple": """1 repeated VarType.Type element_type""",
    "VarType": """
        1 required VarType.Type type
        2 optional VarType.TensorDesc selected_rows
        3 optional VarType.LoDTensorDesc lod_tensor
        4 optional VarType.LoDTensorArrayDesc tensor_array
        5 optional VarType.ReaderDesc reader
        7 optional VarType.Tuple tuple""",
    "VarDesc": """
        1 required string name
        2 required VarType type
        3 optional bool persistable 0
        4 optional bool need_check_feed 0""",
    "BlockDesc": """
        1 required int32 idx
        2 required int32 parent_idx
        3 repeated VarDesc vars
        4 repeated OpDesc ops
        5 optional int32 forward_block_idx -1""",
    "CompatibleInfo": """
        1 required string version
        2 required CompatibleInfo.Type type""",
    "OpCompatibleMap.OpCompatiblePair": """
        1 required string op_name
        2 required CompatibleInfo compatible_info""",
    "OpCompatibleMap": """
        1 repeated OpCompatibleMap.OpCompatiblePair pair
        2 optional string default_required_version""",
    "ProgramDesc": """
        1 repeated BlockDesc blocks
        3 optional OpCompatibleMap op_compatible_map
        4 optional Version version""",
}


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

    def __getattr__(self, name: str) -> int:
        if name in self.__dict__.get("_numbers", ()):
            return self._numbers[name]
        raise AttributeError("the enum has no value %s" % name)

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

_enums = {"VarType.Type": _Enum(_kinds), "AttrType": _Enum(_attributes), "CompatibleInfo.Type": _Enum(_COMPATIBLE)}

#: Types of attributes, which are also names of this module: ``framework_pb2.INTS`` is 3.
AttrType = _enums["AttrType"]
globals().update(_attributes)

_made: dict[str, type[Message]] = {}
for _name, _table in _TABLES.items():
    _made[_name] = message(_name, _table, _made, _enums)

BlockDesc: Any = _made["BlockDesc"]
CompatibleInfo: Any = _made["CompatibleInfo"]
OpCompatibleMap: Any = _made["OpCompatibleMap"]
OpDesc: Any = _made["OpDesc"]
OpProto: Any = _made["OpProto"]
ProgramDesc: Any = _made["ProgramDesc"]
VarDesc: Any = _made["VarDesc"]
Version: Any = _made["Version"]
#: Types of variables and of elements: ``VarType.FP32`` is 5; ``VarType.Type`` has names of numbers.
VarType: Any = _made["VarType"]

__all__ = ["AttrType", "BlockDesc", "CompatibleInfo", "OpCompatibleMap", "OpDesc", "OpProto", "ProgramDesc", "VarDesc",
           "VarType", "Version", *_attributes]
