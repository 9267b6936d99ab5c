"""Messages and enums of program files. The names of ``fluid.proto.framework_pb2``.

The messages are classes of the package protobuf. Without that package, only the numbers of enums are available, such as
``VarType.FP32`` and ``INTS``.
"""
from __future__ import annotations

from typing import Any

from .. import core

_COMPATIBLE = {"COMPATIBLE": 0, "DEFINITELY_NOT": 1, "POSSIBLE": 2, "BUG_FIX": 3, "PRECISION_CHANGE": 4}

#: Messages. A line is a field: number, label, type, name, and a default. ``src/ir/framework.proto`` has the same.
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

_ATTRIBUTES = {{"BOOL": "BOOLEAN", "BOOLS": "BOOLEANS"}.get(kind.name, kind.name): int(kind) for kind in core.AttrType}
_ENUMS = {"AttrType": _ATTRIBUTES, "CompatibleInfo.Type": _COMPATIBLE,
          "VarType.Type": {**{kind.name: int(kind) for kind in core.VarDesc.VarType}, "SIZE_T": 19}}
_SCALARS = {"int32": 5, "int64": 3, "float": 2, "bool": 8, "string": 9}  # numbers of protobuf's descriptors
_LABELS = {"optional": 1, "required": 2, "repeated": 3}
_ENUM, _MESSAGE = 14, 11
_PACKAGE = "paddle.framework.proto"


def _fill(field: Any, number: str, label: str, kind: str, name: str, default: str | None = None) -> None:
    """Describes a field from the words of its line."""
    field.number, field.label, field.name = int(number), _LABELS[label], name
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
    else:
        field.type, field.type_name = _ENUM if kind in _ENUMS else _MESSAGE, ".%s.%s" % (_PACKAGE, kind)
    if default is not None:
        field.default_value = {"bool": "false"}.get(kind, default)


def _description(file: Any) -> Any:
    """Fills a FileDescriptorProto with the tables; messages and enums are inside those that their names begin with."""
    file.name, file.package = "anabranch/framework.proto", _PACKAGE
    made: dict[str, Any] = {"": file}

    def add(name: str, kind: str) -> Any:
        around, _, short = name.rpartition(".")
        if around not in made:
            add(around, "message_type")
        if name not in made:
            where = "nested_type" if around and kind == "message_type" else kind
            made[name] = getattr(made[around], where).add(name=short)
        return made[name]

    for name, table in _TABLES.items():
        message = add(name, "message_type")
        for line in table.strip().splitlines():
            _fill(message.field.add(), *line.split())
    for name, numbers in _ENUMS.items():
        enum = add(name, "enum_type")
        for value, number in numbers.items():
            enum.value.add(name=value, number=number)
    return file


def _from_protobuf() -> dict[str, Any]:
    """Name -> class of a message or wrapper of an enum. Raises ImportError if protobuf is not installed."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
    pool = descriptor_pool.DescriptorPool()  # our own: other packages may define the same names
    pool.AddSerializedFile(_description(descriptor_pb2.FileDescriptorProto()).SerializeToString())
    of = getattr(message_factory, "GetMessageClass", None) or message_factory.MessageFactory(pool).GetPrototype
    names: dict[str, Any] = {name: of(pool.FindMessageTypeByName(_PACKAGE + "." + name))
                             for name in _TABLES if "." not in name}
    names["AttrType"] = EnumTypeWrapper(pool.FindEnumTypeByName(_PACKAGE + ".AttrType"))
    return names


class _Absent:
    """A message or an enum where protobuf is not installed: only the numbers of its enum."""

    def __init__(self, name: str, numbers: dict[str, int]) -> None:
        self.__dict__.update(numbers, __name__=name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise ImportError("framework_pb2.%s needs the package protobuf: pip install protobuf" % self.__name__)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self()


try:
    _names = _from_protobuf()
except ImportError:
    _names = {_name: _Absent(_name, {**_ENUMS.get(_name, {}), **_ENUMS.get(_name + ".Type", {})})
              for _name in ("AttrType", *_TABLES) if "." not in _name}

AttrType: Any = _names["AttrType"]
BlockDesc: Any = _names["BlockDesc"]
CompatibleInfo: Any = _names["CompatibleInfo"]
OpCompatibleMap: Any = _names["OpCompatibleMap"]
OpDesc: Any = _names["OpDesc"]
OpProto: Any = _names["OpProto"]
ProgramDesc: Any = _names["ProgramDesc"]
VarDesc: Any = _names["VarDesc"]
#: Types of variables and of elements: ``VarType.FP32`` is 5.
VarType: Any = _names["VarType"]
Version: Any = _names["Version"]
#: Types of attributes are also names of this module: ``framework_pb2.INTS`` is 3.
globals().update(_ATTRIBUTES)

__all__ = [*_names, *_ATTRIBUTES]  # noqa: PLE0605
