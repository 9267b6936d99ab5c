"""OpProtoHolder: the declarations of the operators, by type."""
from __future__ import annotations

from typing import Any, NamedTuple

from ... import _core
from ..errors import InvalidValue, Unsupported, Violated

#: Attributes that every operator has, with the names of their types.
_GENERATED = {"op_callstack": "STRINGS", "op_device": "STRING", "op_namescope": "STRING", "op_role": "INT",
              "op_role_var": "STRINGS"}
#: Numbers of the types of attributes in program files.
_NUMBERS = {name: number for number, name in enumerate((
    "INT", "FLOAT", "STRING", "INTS", "FLOATS", "STRINGS", "BOOLEAN", "BOOLEANS", "BLOCK", "LONG", "BLOCKS", "LONGS"))}


class SlotProto(NamedTuple):
    """An input or output slot of an operator."""

    name: str
    comment: str
    duplicable: bool
    intermediate: bool
    dispensable: bool


class AttrProto(NamedTuple):
    """An attribute of an operator; ``type`` is the number of ``core.AttrType``."""

    name: str
    type: int
    comment: str
    generated: bool


class OpProto(NamedTuple):
    """The declaration of an operator."""

    type: str
    inputs: list[SlotProto]
    outputs: list[SlotProto]
    attrs: list[AttrProto]
    comment: str


def _slots(declared: Any) -> list[SlotProto]:
    return [SlotProto(s["name"], s["doc"], s["list"], s.get("intermediate", False), s["optional"]) for s in declared]


def _proto(op_type: str) -> OpProto:
    info = _core.op_info(op_type)
    attrs = [AttrProto(a["name"], _NUMBERS[a["type"]], a["doc"], False) for a in info["attrs"]
             if a["name"] not in _GENERATED]
    attrs += [AttrProto(name, _NUMBERS[kind], "", True) for name, kind in _GENERATED.items()]
    return OpProto(op_type, _slots(info["inputs"]), _slots(info["outputs"]), attrs, info["doc"])


class OpProtoHolder:
    """The declarations of all operators. There is one holder, which ``instance`` returns.

    Examples:
        >>> from anabranch.fluid.framework import OpProtoHolder
        >>> proto = OpProtoHolder.instance().get_op_proto("mul")
        >>> proto.type, [slot.name for slot in proto.inputs], [slot.name for slot in proto.outputs]
        ('mul', ['X', 'Y'], ['Out'])
    """

    _instance: OpProtoHolder | None = None

    def __init__(self) -> None:
        if OpProtoHolder._instance is not None:
            raise Violated("OpProtoHolder: use OpProtoHolder.instance()")
        self._protos: dict[str, OpProto] = {}

    @classmethod
    def instance(cls) -> OpProtoHolder:
        """OpProtoHolder: the holder."""
        if OpProtoHolder._instance is None:
            OpProtoHolder._instance = cls()
        return OpProtoHolder._instance

    def get_op_proto(self, type: str) -> OpProto:
        """The declaration of an operator.

        Args:
            type (str): type of the operator.

        Returns:
            OpProto: type, inputs, outputs, attrs and comment.

        Raises:
            ValueError: there is no such operator.
        """
        if type not in self._protos:
            if type not in _core.op_types():
                raise InvalidValue('Operator "%s" has not been registered.' % type)
            self._protos[type] = _proto(type)
        return self._protos[type]

    @property
    def op_proto_map(self) -> dict[str, OpProto]:
        """dict: type -> declaration, of all operators."""
        return {type: self.get_op_proto(type) for type in _core.op_types()}

    def update_op_proto(self) -> None:
        """Raises NotImplementedError: there are no operators of other libraries."""
        raise Unsupported("OpProtoHolder.update_op_proto is not supported: load_op_library is not supported, either")

    @staticmethod
    def generated_op_attr_names() -> set[str]:
        """set of str: names of the attributes that every operator has."""
        return set(_GENERATED)


def get_all_op_protos() -> list[OpProto]:
    """The declarations of all operators, in order of their types.

    Returns:
        list of OpProto: declarations.

    Examples:
        >>> len(get_all_op_protos()) > 400
        True
    """
    return list(OpProtoHolder.instance().op_proto_map.values())


def _number(value: int) -> bytes:
    made = bytearray()
    while value > 127:
        made.append(value & 127 | 128)
        value >>= 7
    return bytes((*made, value))


def _fields(*values: Any) -> bytes:
    """The fields 1, 2, ... of a message: a text, a number, or a list of messages; None for a field that is not set."""
    made = b""
    for field, value in enumerate(values, 1):
        if isinstance(value, int):
            made += _number(field << 3) + _number(value)
            continue
        for one in () if value is None else [value.encode()] if isinstance(value, str) else value:
            made += _number(field << 3 | 2) + _number(len(one)) + one
    return made


def _slot_messages(slots: list[SlotProto]) -> list[bytes]:
    return [_fields(s.name, s.comment, s.duplicable or None, s.intermediate or None, s.dispensable or None)
            for s in slots]


def serialized_op_protos() -> list[bytes]:
    """The declarations of all operators as messages ``OpProto`` of ``framework.proto``.

    Returns:
        list of bytes: messages.

    Examples:
        >>> serialized_op_protos()[0].startswith(b"\\n")
        True
    """
    return [_fields(proto.type, _slot_messages(proto.inputs), _slot_messages(proto.outputs),
                    [_fields(*attr) for attr in proto.attrs], proto.comment) for proto in get_all_op_protos()]
