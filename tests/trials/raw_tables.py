"""The ways in which the same raw rows get to a schema: dicts, columns, lists, tables of Arrow."""

import numpy as np
import raw_fields


def ways(r, drawn, good):
    """[(name, rows)] for Schema.feed of rows (fields, dict)."""
    used = [column for column in drawn.columns if column.used]
    yield "dicts", [row for _, row in good]
    yield "columns", {column.name: [row[column.name] for _, row in good] for column in used}
    if not drawn.named:
        yield "lists", [r.choice([list, tuple])(fields) for fields, _ in good]
    table = arrow_table(r, drawn, [fields for fields, _ in good])
    if table is not None:
        begin = r.randrange(len(good))
        yield "Arrow", table
        yield "batches of Arrow", [table.slice(0, begin), table.slice(begin)]


def feed(drawn, way, rows):
    if way == "batches of Arrow":
        import pyarrow as pa

        rows = pa.concat_tables(rows)
    return drawn.schema.feed(rows)


def arrow_table(r, drawn, rows):
    """None without pyarrow, and if Arrow would cut a name."""
    try:
        import pyarrow as pa
    except ImportError:
        return None
    if any("\0" in str(column.name) for column in drawn.columns):
        return None
    columns = [arrow(r, pa, [fields[at] if at < len(fields) else b"" for fields in rows], column)
               for at, column in enumerate(drawn.columns)]
    return pa.table(columns, names=[str(column.name) for column in drawn.columns])


def arrow(r, pa, values, column):
    """A column of Arrow with these texts, in a random type that can hold them; a missing value may be null."""
    given = [None if not value and r.random() < 0.5 else value for value in values]
    kinds = [pa.binary(), pa.large_binary(), pa.dictionary(pa.int32(), pa.binary())]
    if all(map(raw_fields.is_utf8, values)):
        kinds += [pa.string(), pa.large_string(), pa.dictionary(pa.int16(), pa.string()), pa.string_view()]
    texts = [raw_fields.as_text(value) for value in values]
    if all(not text or is_int64(text) for text in texts):
        given = [int(text) if text else None for text in texts]
        kinds = [pa.int64()] + integer_types(pa, [value for value in given if value is not None])
    elif column.type != "text" and all(not text or is_float64(text) for text in texts):
        given = [float(text) if text else None for text in texts]
        narrow = all(not text or str(np.float32(text)) == text for text in texts)
        kinds = [pa.float32() if narrow and r.random() < 0.7 else pa.float64()]
    elif column.listed and r.random() < 0.5 and all(map(raw_fields.is_utf8, values)):
        kinds = [pa.list_(pa.string()), pa.large_list(pa.large_string())]
        given = [None if text is None else text.decode().split(column.split) for text in given]
    kind = r.choice(kinds)
    if pa.types.is_dictionary(kind):
        return pa.array(given, kind.value_type).dictionary_encode().cast(kind)
    made = pa.array(given, kind)
    plain = not pa.types.is_nested(kind) and kind != pa.string_view()  # pyarrow writes no dictionary of views
    return made.dictionary_encode() if plain and r.random() < 0.1 else made


def integer_types(pa, values):
    """The other types of integers that hold these values."""
    low, high = min(values, default=0), max(values, default=0)
    found = [pa.uint64()] if low >= 0 else []
    sizes = [(8, pa.int8(), pa.uint8()), (16, pa.int16(), pa.uint16()), (32, pa.int32(), pa.uint32())]
    for bits, signed, unsigned in sizes:
        if -(2 ** (bits - 1)) <= low and high < 2 ** (bits - 1):
            found.append(signed)
        if 0 <= low and high < 2**bits:
            found.append(unsigned)
    return found


def is_int64(text):
    return len(text) < 18 and text != "-0" and raw_fields.JSON_INTEGER.fullmatch(text)


def is_float64(text):
    return len(text) < 400 and raw_fields.JSON_NUMBER.fullmatch(text) and repr(float(text)) == text
