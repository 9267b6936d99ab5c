"""Messages of protocol buffers in Python, for scripts that read and write program files themselves.

A message has the methods and the behavior of generated classes: fields are attributes, unset fields have their
defaults, and nested messages exist when they are read. Classes come from tables of fields (``framework_pb2.py``).
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..errors import InvalidType, InvalidValue
from . import text, wire
from .fields import Field, Fields, checked

_M = TypeVar("_M", bound="Message")
_EMPTY: dict[str, Any] = {"int32": 0, "int64": 0, "enum": 0, "float": 0.0, "bool": False, "string": ""}


class Message:
    """A message. Subclasses are made by :func:`message`."""

    _fields: dict[str, Field] = {}
    _numbers: dict[int, Field] = {}

    def __init__(self, **values: Any) -> None:
        self._reset()
        for name, value in values.items():
            field = self._field(name)
            if field.label == "repeated":
                getattr(self, name).extend(value)
            elif field.kind == "message":
                getattr(self, name).CopyFrom(value)
            elif value is not None:
                setattr(self, name, value)

    def _reset(self, changed: Callable[[], None] | None = None) -> None:
        self.__dict__.update(_values={}, _present=set(), _unknown=b"",
                             _changed=changed or self.__dict__.get("_changed") or (lambda: None))

    # ---- fields

    def _field(self, name: str) -> Field:
        if name not in self._fields:
            raise InvalidValue("%s has no field %s: its fields are %s" % (type(self).__name__, name,
                                                                         ", ".join(self._fields)))
        return self._fields[name]

    def _set(self, name: str) -> None:
        """Marks a field as present, in this message and in the one that holds it."""
        if name not in self._present:
            self._present.add(name)
        self._changed()

    def __getattr__(self, name: str) -> Any:
        field = self._fields.get(name)
        if field is None:
            raise AttributeError("%s has no field %s" % (type(self).__name__, name))
        if name not in self._values:
            if field.label == "repeated":
                self._values[name] = Fields(field, self._changed_by(name))
            elif field.kind == "message":
                self._values[name] = field.of()
                self._values[name].__dict__["_changed"] = self._changed_by(name)
            else:
                return _EMPTY[field.kind] if field.default is None else field.default
        return self._values[name]

    def _changed_by(self, name: str) -> Callable[[], None]:
        values = self._values

        def changed() -> None:
            if values is self._values and name in values:
                self._set(name)
        return changed

    def __setattr__(self, name: str, value: Any) -> None:
        field = self._fields.get(name)
        if field is None:
            raise AttributeError("%s has no field %s" % (type(self).__name__, name))
        if field.label == "repeated" or field.kind == "message":
            raise AttributeError("%s.%s cannot be assigned: change it in place, with %s" % (
                type(self).__name__, name, "append and extend" if field.label == "repeated" else "CopyFrom"))
        self._values[name] = checked(field, value)
        self._set(name)

    def HasField(self, name: str) -> bool:
        """bool: whether a field is set. ValueError: the message has no such field, or it is repeated."""
        if self._field(name).label == "repeated":
            raise InvalidValue("HasField: %s is repeated: use len" % name)
        return name in self._present

    def ClearField(self, name: str) -> None:
        """Unsets a field."""
        self._field(name)
        self._values.pop(name, None)
        self._present.discard(name)
        self._changed()

    def Clear(self) -> None:
        """Unsets all fields."""
        self._reset()
        self._changed()

    def SetInParent(self) -> None:
        """Marks this message as present in the one that holds it."""
        self._changed()

    def ListFields(self) -> list[tuple[Field, Any]]:
        """list of tuple: the fields that are set, and their values, by number."""
        return [(field, self._values[name]) for name, field in self._fields.items()
                if name in self._values and (self._values[name] if field.label == "repeated"
                                             else name in self._present)]

    # ---- other messages

    def CopyFrom(self, other: Any) -> None:
        """Takes the fields of another message of the same type."""
        if other is not self:
            self._same(other)
            self.Clear()
            self.MergeFrom(other)

    def MergeFrom(self, other: Any) -> None:
        """Adds the fields of another message of the same type; repeated fields are joined."""
        self._same(other)
        for field, value in other.ListFields():
            if field.label == "repeated":
                getattr(self, field.name).extend(value)
            elif field.kind == "message":
                getattr(self, field.name).MergeFrom(value)
                self._set(field.name)
            else:
                setattr(self, field.name, value)
        self.__dict__["_unknown"] += other._unknown

    def _same(self, other: Any) -> None:
        if type(other) is not type(self):
            raise InvalidType("%s: the other message must be of the same type, got %s" % (type(self).__name__,
                                                                                        type(other).__name__))

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.ListFields() == other.ListFields()

    __hash__ = None  # type: ignore[assignment]

    def __deepcopy__(self: _M, memo: Any = None) -> _M:
        made = type(self)()
        made.MergeFrom(self)
        return made

    def __reduce__(self) -> Any:
        return (_read, (type(self), self.SerializePartialToString()))

    # ---- bytes and text

    def IsInitialized(self) -> bool:
        """bool: whether all required fields are set, in nested messages too."""
        return not self.FindInitializationErrors()

    def FindInitializationErrors(self) -> list[str]:
        """list of str: required fields that are not set, as paths."""
        found = [name for name, field in self._fields.items()
                 if field.label == "required" and name not in self._present]
        for field, value in self.ListFields():
            if field.kind == "message":
                nested = enumerate(value) if field.label == "repeated" else [(None, value)]
                found += ["%s%s.%s" % (field.name, "" if index is None else "[%d]" % index, missing)
                          for index, one in nested for missing in one.FindInitializationErrors()]
        return found

    def SerializeToString(self, **options: Any) -> bytes:
        """bytes: the message. ValueError: a required field is not set."""
        self._complete()
        return self.SerializePartialToString()

    def SerializePartialToString(self, **options: Any) -> bytes:
        """bytes: the message, also if required fields are not set."""
        return b"".join(wire.tagged(field.number, field.kind, one) for field, value in self.ListFields()
                        for one in (value if field.label == "repeated" else [value])) + bytes(self._unknown)

    def ByteSize(self) -> int:
        """int: number of bytes of the message."""
        return len(self.SerializePartialToString())

    def ParseFromString(self, data: bytes) -> int:
        """int: number of bytes, after the message has taken their fields. ValueError: they are not such a message."""
        made = type(self)()
        made.MergeFromString(data)
        made._complete()
        self.CopyFrom(made)
        return len(data)

    def MergeFromString(self, data: bytes) -> int:
        """int: number of bytes, after their fields have been added."""
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise InvalidType("%s: the data must be bytes, got %s" % (type(self).__name__, type(data).__name__))
        for number, kind, value, whole in wire.fields(bytes(data)):
            field = self._numbers.get(number)
            if field is None or not self._take(field, kind, value):
                self.__dict__["_unknown"] += whole
        return len(data)

    @classmethod
    def FromString(cls: type[_M], data: bytes) -> _M:
        """Message: the message of these bytes."""
        made = cls()
        made.ParseFromString(data)
        return made

    def _complete(self) -> None:
        missing = self.FindInitializationErrors()
        if missing:
            raise InvalidValue("%s must have its required fields, got none for %s" % (type(self).__name__,
                                                                                    ", ".join(missing)))

    def _take(self, field: Field, kind: int, value: Any) -> bool:
        """Adds a field that was read; False: its value is not of the field's type."""
        expected = wire.WIRE[field.kind]
        if kind != expected and not (kind == wire.DELIMITED and field.label == "repeated"):
            return False
        if field.kind == "message":
            nested = getattr(self, field.name).add() if field.label == "repeated" else self._nested(field)
            nested.MergeFromString(value)
            return True
        values = ([value.decode("utf-8", "surrogateescape")] if field.kind == "string"
                  else wire.repeated(field.kind, kind, value))
        if field.kind == "enum" and not all(one in field.of.values() for one in values):
            return False
        if field.label == "repeated":
            getattr(self, field.name).extend(values)
        else:
            setattr(self, field.name, values[-1])
        return True

    def _nested(self, field: Field) -> Any:
        self._set(field.name)
        return getattr(self, field.name)

    def __str__(self) -> str:
        return text.of(self)

    __repr__ = __str__


def _read(of: type[Message], data: bytes) -> Message:
    """The message of bytes that may lack required fields; for pickle."""
    made = of()
    made.MergeFromString(data)
    return made


def message(name: str, table: str, made: dict[str, type[Message]], enums: dict[str, Any]) -> type[Message]:
    """type: a message class. The classes and enums whose names begin with its name become its attributes.

    Args:
        name (str): name, with those of the outer messages: ``OpDesc.Attr``.
        table (str): lines of number, label, type, name, and a default.
        made (dict of str to type): classes for fields.
        enums (dict of str to enum): enums for fields.
    """
    fields = {}
    for line in table.strip().splitlines():
        number, label, kind, field, *default = line.split()
        of = made.get(kind) or enums.get(kind)
        kind = "message" if kind in made else "enum" if kind in enums else kind
        unset = None if not default else bool(int(default[0])) if kind == "bool" else int(default[0])
        fields[field] = Field(field, int(number), kind, label, unset, of)
    nested = {key[len(name) + 1:]: value for key, value in {**made, **enums}.items() if key.startswith(name + ".")}
    for enum in nested.values():
        if not isinstance(enum, type):
            nested = {**nested, **dict(enum.items())}
    return type(name.rpartition(".")[2], (Message,), {
        "__doc__": "%s of a program file." % name, "__module__": "%s.framework_pb2" % __package__, "__qualname__": name,
        "_fields": fields, "_numbers": {field.number: field for field in fields.values()}, **nested})
