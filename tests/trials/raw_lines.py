"""Lines of files of raw rows: how fields are spelled, what goes wrong, and the fields of a line by the grammar that the
pages describe, read by other code than the engine's."""

import re

import raw_fields

QUOTED = re.compile(rb'"([^"]*(?:""[^"]*)*)"')
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def cut(line, separator):
    """The fields of a line; None if a quote does not end, or text follows it."""
    line = line[:-1] if line.endswith(b"\r") else line
    fields, at = [], 0
    while True:
        if separator != b"\t" and line[at : at + 1] == b'"':
            found = QUOTED.match(line, at)
            if not found or line[found.end() : found.end() + 1] not in (b"", separator):
                return None
            fields.append(found.group(1).replace(b'""', b'"'))
            at = found.end()
        else:
            end = line.find(separator, at)
            end = len(line) if end < 0 else end
            fields.append(line[at:end])
            at = end
        if at == len(line):
            return fields
        at += 1


def spelled(r, field, separator, last):
    """A field as a file has it. One of a file with tabs cannot hold a tab, and its last one cannot end with \\r."""
    if separator == b"\t":
        return field.replace(b"\t", b" ")
    if field.startswith(b'"') or separator in field or (last and field.endswith(b"\r")) or r.random() < 0.15:
        return b'"%s"' % field.replace(b'"', b'""')
    return field


def joined(r, fields, separator):
    return separator.join(spelled(r, field, separator, at == len(fields) - 1) for at, field in enumerate(fields))


def damaged(r, line):
    """A line with another number of fields, with quotes that do not fit, or with any bytes."""
    at = r.randrange(len(line) + 1)
    return r.choice([
        lambda: line[:at],
        lambda: line[:at] + b'"' + line[at:],
        lambda: line[:at] + r.choice([b",", b"\t", b";", b"|", b" ", b"\r", b"\0", b'""']) + line[at:],
        lambda: line[:at] + line[at + 1 :],
        lambda: b"",
        lambda: raw_fields.some_bytes(r).replace(b"\n", b""),
        lambda: line + r.choice([b",", b"\t", b'"', b" ", b'"\r']),
    ])()


def text(r, drawn, rows):
    """The bytes of a file of these rows (lists of fields), some of which are damaged."""
    separator = drawn.separator.encode()
    names = [column.name.encode() for column in drawn.columns] if drawn.named else []
    lines = [joined(r, names, separator)] if names else []
    hostile = r.choice([0, 0.01, 0.05, 0.3])
    for fields in rows:
        line = joined(r, fields, separator)
        lines.append(damaged(r, line) if r.random() < hostile else line)
    end = r.choice([b"\n", b"\n", b"\r\n"])
    whole = end.join(lines) + (end if r.random() < 0.8 else b"")
    return (BYTE_ORDER_MARK if r.random() < 0.2 else b"") + whole


def rows_of(data, drawn):
    """[fields, or None for a malformed line] of the lines of a file after its header."""
    separator = drawn.separator.encode()
    data = data[3:] if data.startswith(BYTE_ORDER_MARK) else data
    lines = data.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    found = [cut(line, separator) for line in lines]
    first = found[0] if found else None
    width = len(first) if first else 0
    further = drawn.schema._form["ragged"] or width < drawn.width
    width = drawn.width if further else width
    return [fields if fields and (len(fields) >= width if further else len(fields) == width) else None
            for fields in (found[1:] if drawn.named else found)]
