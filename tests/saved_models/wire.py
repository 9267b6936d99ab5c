"""Program files by their fields, so that one thing in them may change and all other bytes stay.

A message is a list of [number, kind, value]: kind 0 is a whole number, 5 four bytes, 1 eight bytes, 2 bytes of a text
or of another message. The numbers are those of framework.proto.
"""
BLOCKS, OPS = 1, 4                                      # of a program, of a block
INPUTS, OUTPUTS, TYPE, ATTRS = 1, 2, 3, 4               # of an op
NAME, KIND, INTEGER, FLOAT, INTEGERS, STRINGS, LONGS = 1, 2, 3, 4, 6, 8, 15     # of an attribute
INT_TYPE, FLOAT_TYPE, INTS_TYPE, LONGS_TYPE = 0, 1, 3, 11                       # its kinds


def _number(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return value, at


def _bytes_of(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def fields(data):
    """list: the fields of a message, in their order."""
    found, at = [], 0
    while at < len(data):
        tag, at = _number(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = _number(data, at)
        else:
            size = {1: 8, 5: 4}.get(kind)
            if size is None:
                size, at = _number(data, at)
            value, at = data[at:at + size], at + size
        found.append([tag >> 3, kind, value])
    return found


def message(found):
    """bytes: the message of these fields."""
    out = []
    for number, kind, value in found:
        out.append(_bytes_of(number << 3 | kind))
        if kind == 0:
            out.append(_bytes_of(value))
        else:
            out.append((_bytes_of(len(value)) if kind == 2 else b"") + value)
    return b"".join(out)


def changed(data, number, change):
    """bytes: the message after each field ``number`` became what ``change`` makes of its bytes; None takes it away."""
    out = []
    for field in fields(data):
        if field[0] == number:
            field[2] = change(field[2])
        if field[2] is not None:
            out.append(field)
    return message(out)


def text_of(data, number):
    """str: the text in field ``number``."""
    return next(value for n, _, value in fields(data) if n == number).decode()


def with_ops(program, change):
    """bytes: the program after each operator became what ``change`` makes of its bytes."""
    return changed(program, BLOCKS, lambda block: changed(block, OPS, change))


def without_stacks(program):
    """bytes: the program whose operators do not say where they were made."""
    def attr(data):
        stack = text_of(data, NAME) == "op_callstack"
        return message([f for f in fields(data) if not (stack and f[0] == STRINGS)])
    return with_ops(program, lambda op: changed(op, ATTRS, attr))
