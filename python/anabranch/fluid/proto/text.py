"""Messages as text, one field on each line, as protocol buffers print them."""
from __future__ import annotations

from typing import Any


def of(message: Any, indent: int = 0) -> str:
    """str: the fields that are set, by number; nested messages are indented."""
    lines = []
    space = " " * indent
    for field, value in message.ListFields():
        for one in value if field.label == "repeated" else [value]:
            if field.kind == "message":
                lines.append("%s%s {\n%s%s}\n" % (space, field.name, of(one, indent + 2), space))
            else:
                lines.append("%s%s: %s\n" % (space, field.name, _value(field, one)))
    return "".join(lines)


def _value(field: Any, value: Any) -> str:
    if field.kind == "string":
        return '"%s"' % "".join(map(_escaped, value.encode("utf-8", "surrogateescape")))
    if field.kind == "enum":
        return str(field.of.Name(value))
    if field.kind == "bool":
        return "true" if value else "false"
    return str(value)


def _escaped(byte: int) -> str:
    """One byte of a string: as it is, or as an escape sequence."""
    known = {10: "\\n", 13: "\\r", 9: "\\t", 34: '\\"', 39: "\\'", 92: "\\\\"}
    return known.get(byte) or (chr(byte) if 32 <= byte < 127 else "\\%03o" % byte)
