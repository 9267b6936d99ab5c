"""Damage of bytes, and of the messages of a program file."""

import copy
import struct

from anabranch import _core

NUMBERS = (
    0, 1, 2, 3, 7, 8, 9, 10, 64, 127, 128, 255, 256, 65535, 65536, 2**20, 2**24, 2**28, 2**30, 2**31 - 1, 2**31,
    2**32 - 1, 2**32, 2**33, 2**40, 2**48, 2**56, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64 - 2, 2**61, 2**60 + 1,
)
HEAD = 64  # where counts and versions are


def varint(number):
    number &= 2**64 - 1
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def damaged(r, data):
    b = bytearray(data)
    for _ in range(r.choice([1, 1, 1, 2, 3, 6])):
        at = r.randrange(len(b)) if b else 0
        if b and r.random() < 0.2:
            at = r.randrange(min(len(b), HEAD))
        _damage(r, b, at)
    return bytes(b)


def _damage(r, b, at):
    number, width = r.choice(NUMBERS), r.choice([1, 2, 4, 8, 16, 50])
    kind = r.randrange(10) if b else 3
    if kind == 0:
        b[at] ^= 1 << r.randrange(8)
    elif kind == 1:
        b[at] = r.choice([0, 1, 0x7F, 0x80, 0xFF, r.randrange(256)])
    elif kind == 2:
        del b[at:]
    elif kind == 3:
        b += bytes(r.randrange(256) for _ in range(r.choice([1, 4, 8, 100])))
    elif kind == 4:
        del b[at : at + width]
    elif kind == 5:
        b[at:at] = b[at : at + width]
    elif kind == 6:
        b[at : at + 4] = struct.pack("<I", number & 0xFFFFFFFF)
    elif kind == 7:
        b[at : at + 8] = struct.pack("<Q", number)
    elif kind == 8:
        other = r.randrange(len(b))
        b[at : at + width] = b[other : other + width]
    else:
        b[at : at + r.choice([1, 2, 5, 10])] = varint(number)


# ---- messages: [field, wire type, number, bytes or message]

SCHEMA = {
    "Program": {1: "Block", 4: "Version", 3: "Other"},
    "Block": {3: "Var", 4: "Op"},
    "Op": {1: "Slot", 2: "Slot", 4: "Attr"},
    "Var": {2: "Type"},
    "Type": {2: "Tensor", 3: "Lod", 4: "Lod", 5: "Reader", 7: "Other"},
    "Lod": {1: "Tensor"},
    "Reader": {1: "Lod"},
}
NUMBERED = (3, 6, 10, 12, 13, 14, 15, 4, 7)  # fields of an attribute that hold numbers


def _read_varint(b, at):
    number = shift = 0
    while True:
        number |= (b[at] & 0x7F) << shift
        shift += 7
        at += 1
        if b[at - 1] < 0x80:
            return number, at


def parsed(b, kind="Program"):
    at, out = 0, []
    while at < len(b):
        key, at = _read_varint(b, at)
        field, wire = key >> 3, key & 7
        if wire == 0:
            value, at = _read_varint(b, at)
        else:
            size = {1: 8, 5: 4}.get(wire)
            if size is None:
                size, at = _read_varint(b, at)
            value, at = b[at : at + size], at + size
            below = SCHEMA.get(kind, {}).get(field)
            if below and wire == 2:
                value = parsed(value, below)
        out.append([field, wire, value])
    return out


def written(message):
    out = bytearray()
    for field, wire, value in message:
        out += varint(field << 3 | wire)
        if wire == 0:
            out += varint(value)
        elif wire in (1, 5):
            out += value
        else:
            body = written(value) if isinstance(value, list) else varint(value) if isinstance(value, int) else value
            out += varint(len(body)) + body
    return bytes(out)


def elements(message, kind="Program"):
    """(message, index in it, kind of the message) of everything inside."""
    for k, e in enumerate(message):
        yield message, k, kind
        if isinstance(e[2], list):
            yield from elements(e[2], SCHEMA.get(kind, {}).get(e[0], "Other"))


def changed_program(r, data, other):
    """The program with fields changed, doubled, moved or taken from `other`."""
    message = parsed(data)
    for _ in range(r.choice([1, 1, 1, 1, 2, 3, 5])):
        found = list(elements(message))
        if not found:
            break
        preferred = r.choice(
            ["Op", "Attr", "Slot", "Var", "Type", "Tensor", "Lod", "Block", "Program", "Attr", "Slot", "Tensor", None]
        )
        where, k, kind = r.choice([f for f in found if f[2] == preferred] or found)
        _change(r, where, k, [f for f in found if f[2] == kind], other, kind)
        if r.random() < 0.2:
            _change_op(r, list(elements(message)))
    return written(message)


def _change(r, where, k, alike, other, kind):
    e, way = where[k], r.randrange(11)
    if way <= 4:
        _change_value(r, e, [w[i][2] for w, i, _ in alike if isinstance(w[i][2], (bytes, bytearray))])
    elif way == 5:
        del where[k]
    elif way == 6:
        where.insert(r.randrange(len(where) + 1), copy.deepcopy(e))
    elif way == 7:
        j = r.randrange(len(where))
        where[k], where[j] = where[j], where[k]
    elif way == 8:
        w, i, _ = r.choice(alike)
        where[k] = copy.deepcopy(w[i])
    elif way == 9:
        where.insert(k, [r.choice([*range(1, 16), 100]), 0, r.choice(NUMBERS)])
    else:
        found = [f for f in elements(parsed(other)) if f[2] == kind]
        if found:
            w, i, _ = r.choice(found)
            where[k] = copy.deepcopy(w[i])


def _change_value(r, e, texts):
    if e[1] == 0:
        e[2] = r.choice([r.choice(NUMBERS), e[2] + 1, e[2] - 1, 2**64 - 1, 2**64 - 5, r.randrange(30)])
    elif e[1] == 5:
        e[2] = struct.pack("<f", r.choice([0.0, -1.0, 1e30, float("nan"), float("inf"), 2.0]))
    elif isinstance(e[2], (bytes, bytearray)):
        e[2] = r.choice(
            [b"", b"\xff\xfe", b"a" * 300, b"@EMPTY@", b"../../x", b"\0", damaged(r, e[2])]
            + r.choices(texts or [b""], k=8)
        )


def _change_op(r, found):
    """Another type of an op, another argument, or another number in an attribute."""
    way = r.randrange(3)
    if way == 0:
        types = [f for f in found if f[2] == "Op" and f[0][f[1]][0] == 3]
        if types:
            where, k, _ = r.choice(types)
            where[k][2] = r.choice(_core.op_types()).encode()
    elif way == 1:
        swap_arguments(r, found)
    else:
        numbered = [f for f in found if f[2] == "Attr" and f[0][f[1]][0] in NUMBERED]
        if numbered:
            where, k, _ = r.choice(numbered)
            _change_value(r, where[k], [])


def swap_arguments(r, found):
    arguments = [f for f in found if f[2] == "Slot" and f[0][f[1]][0] == 2]
    if len(arguments) > 1:
        (a, i, _), (b, j, _) = r.sample(arguments, 2)
        a[i][2] = b[j][2]
