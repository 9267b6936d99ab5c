"""Schemas of MultiSlot and libsvm files, lines of such files, and the fields of a line by the grammar that the pages
describe, read by other code than the engine's. A field is what a row has for a column: the text of one value, or the
values of a list with a space between them."""

import re

import raw_fields
import raw_schemas

import anabranch

NAMES = ("multislot", "libsvm")
RANGES = ("", " 0-5", " 6-", " 3-3", " 100-900")
TYPES = raw_schemas.TYPES
BLANKS = re.compile(rb"[ \t]+")
MOST = 2**64


def draw(r, name):
    """A Drawn of at least one feature."""
    columns = (slots if name == "multislot" else pairs)(r)
    schema = anabranch.Schema.multislot([one.name for one in columns]) if name == "multislot" else (
        anabranch.Schema.libsvm())
    drawn = raw_schemas.Drawn(schema, " ", columns, kind=name)
    for number in range(r.randint(1, 6)):
        add = raw_schemas.cross if r.random() < 0.2 else raw_schemas.feature
        add(r, drawn, "f%d" % number)
    if not len(schema):
        raw_schemas.feature(r, drawn, "f")
    return drawn


def slots(r):
    names = r.sample(raw_schemas.NAMES, r.randint(1, 7))
    return [raw_schemas.Column(name, r.choice(TYPES), r.choice(["", " ", " ", "|"])) for name in names]


def pairs(r):
    label = raw_schemas.Column("label", r.choice(TYPES[:2]))
    numbers = r.sample([*range(9), 77, 1000, 2**40], r.randint(1, 6))
    found = [raw_schemas.Column(number, r.choice(TYPES)) for number in numbers]
    for part in r.sample(RANGES, r.randint(0, 2)):
        found.append(raw_schemas.Column("index" + part, r.choice(("integer", "text")), " ", always=True))
        found.append(raw_schemas.Column("value" + part, r.choice(TYPES), " ", always=True))
    if r.random() < 0.3:
        found.append(raw_schemas.Column("qid", "integer"))
    return [label, *found]


# ---- lines


def token(r, type_, words, calm):
    """A value as one token of a line; empty if it has no bytes that a token may have."""
    return re.sub(rb"[ \t\r\n]", b"", raw_fields.one(r, type_, words, calm))


def blank(r):
    return r.choice([b" "] * 20 + [b"\t", b"  ", b" \t "])


def slots_line(r, drawn, calm):
    line = b""
    for column in drawn.columns:
        count = r.choice([0, 1, 2, 3, 9]) if column.split == " " or r.random() < 0.03 else 1
        values = [one for one in (token(r, column.type, drawn.words, calm) for _ in range(count)) if one]
        wrong = 0 if r.random() < 0.995 else r.choice([-1, 1, 10**20])
        for one in [b"%d" % (len(values) + wrong), *values]:
            line += one + blank(r)
    return line[:-1] if r.random() < 0.9 else line


def pairs_line(r, drawn, calm):
    types = {column.name: column.type for column in drawn.columns}
    line = token(r, types["label"], [], calm) or b"1"
    if r.random() < 0.2:
        line += b" qid:" + (token(r, "integer", [], calm) or b"7")
    named = [name for name in types if isinstance(name, int)]
    count = r.choice([0, 1, 3, 10])
    indices = {r.choice([*named, r.randrange(12), r.randrange(1000), r.randrange(MOST)]) for _ in range(count)}
    indices = sorted(indices) if r.random() < 0.7 else list(indices)
    if indices and r.random() < 0.05:
        indices.append(r.choice(indices))
    lists = [type_ for name, type_ in types.items() if str(name).startswith("value")] or ["number"]
    for index in indices:
        value = token(r, types.get(index, r.choice(lists)), drawn.words, calm)
        line += blank(r) + b"%s:%s" % (spelled(r, index), value)
    return line + (b" # 5:1" if r.random() < 0.05 else b"")


def spelled(r, index):
    return r.choice([b"%d"] * 30 + [b"+%d", b"00%d", b"-%d", b"%d.0", b" %d", b"x%d"]) % index


def text(r, drawn, count):
    """The bytes of a file of this number of rows, some of which are damaged."""
    import raw_lines

    hostile = r.choice([0, 0.01, 0.05, 0.3])
    lines = []
    for _ in range(count):
        line = (slots_line if drawn.kind == "multislot" else pairs_line)(r, drawn, r.random() < 0.7)
        lines.append(raw_lines.damaged(r, line) if r.random() < hostile else line)
    end = r.choice([b"\n", b"\n", b"\r\n"])
    return (raw_lines.BYTE_ORDER_MARK if r.random() < 0.2 else b"") + end.join(lines) + end


# ---- the fields of a line


def cut_slots(line, drawn):
    """Fields; None if the line is malformed; the reason if a feature refuses it before a later part is malformed."""
    tokens = [one for one in BLANKS.split(line) if one]
    fields, refused = [], None
    for column in drawn.columns:
        count = tokens.pop(0) if tokens else b""
        if not re.fullmatch(rb"[0-9]{1,18}", count) or not int(count):
            return refused
        if int(count) != 1 and column.single:
            refused = refused or (column.single, "the number of values is not that of the variable's shape")
        if len(tokens) < int(count):
            return refused
        fields.append(b" ".join(tokens[: int(count)]))
        del tokens[: int(count)]
    return refused if tokens else fields


def cut_pairs(line, drawn):
    tokens = [one for one in re.split(rb"[ \t\r]+", line.split(b"#", 1)[0]) if one]
    if not tokens or b":" in tokens[0]:
        return None
    found, of = {"label": tokens.pop(0)}, []
    named = {column.name for column in drawn.columns if column.used}
    if tokens and tokens[0].startswith(b"qid:"):
        found["qid"] = tokens.pop(0)[4:]
    for one in tokens:
        index, colon, value = one.partition(b":")
        if not colon or not value or not re.fullmatch(rb"\+?[0-9]+", index) or int(index) >= MOST:
            return None
        if int(index) in found and int(index) in named:
            return None
        found[int(index)] = value
        of.append((int(index), value))
    for column in drawn.columns:
        if str(column.name).startswith(("index", "value")):
            low, high = bounds(column.name)
            found[column.name] = b" ".join(
                b"%d" % index if column.name.startswith("index") else value
                for index, value in of if low <= index <= high)
    return [found.get(column.name, b"") for column in drawn.columns]


def bounds(name):
    low, _, high = name.partition(" ")[2].partition("-")
    return int(low or 0), int(high or MOST)


def rows_of(data, drawn):
    """[fields, None for a malformed line, or (feature, reason)] of the lines of a file."""
    import raw_lines

    data = data[3:] if data.startswith(raw_lines.BYTE_ORDER_MARK) else data
    lines = data.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    cut = cut_slots if drawn.kind == "multislot" else cut_pairs
    return [cut(line[:-1] if line.endswith(b"\r") else line, drawn) for line in lines]
