"""Random fields of raw rows as bytes, and the values of Python, JSON and Arrow that say the same."""

import decimal
import json
import re
import unicodedata

import numpy as np

NUMBERS = (
    """0 -0 +0 1 -1 7 -1.5 0.1 .5 5. 1e5 1E-40 -1e-44 7e-46 3.4028235e38 3.4028236e38 1e39 -1e39 1e400 -1e400 1e-400
    -1e-400 1e99999999999999999999 1e-99999999999999999999 nan NaN -nan nan(12) inf -inf Infinity 0x1p3 0X.8 0x1p-200
    0xinf 16777217 0.30000001192092896 1.00000017881393432617187499 1.00000017881393432617187501 +5 --1 +-1 1,5 1_000
    x 1e 1e+ e5 . - + 1d 1f 1.5.2 100000.0 1e22 5.0 -7.0""".split()
    + ["9" * 400, "0." + "3" * 900, "1" * 5000, "0" * 5000 + "1", " 1", "1 ", "\u0661", "1\0", "\0", "1\xa0",
       "\u22121"]
)
INTEGERS = (
    """0 -0 1 -1 +5 7 007 100 101 -101 9007199254740993 9223372036854775807 9223372036854775808 18446744073709551615
    18446744073709551616 -9223372036854775808 -9223372036854775809 99999999999999999999 1.0 1e3 x 0x10 1_000 nan --1
    -""".split()
    + [" 1", "1 ", "\u0667", "1\0", "9" * 5000]
)
TEXTS = [
    "red", "blue", "none", "\u00e9t\u00e9", "e\u0301", "a,b", 'say "x"', '"', '""', "'", "tab\there", "a|b", "|", ";",
    "\u65e5\u672c", "\U0001f600", "nul\0byte", " pad ", " ", "7", "-7", "007", "7.0", "1e5", "line\rend", "end\r",
    "\\n", "#", "\ufeff", "\ufeffred", "null", "None", "NA", "nan", "true", "\u2028", "\x1a", "\x0b", "$1", "=1+1",
]
JSON_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?", re.ASCII)
JSON_INTEGER = re.compile(r"-?(0|[1-9][0-9]*)", re.ASCII)


def some_bytes(r):
    return bytes(r.choice([r.randrange(256), r.randrange(128, 256)]) for _ in range(r.randrange(1, 9)))


def some_text(r):
    made = "".join(chr(r.choice([r.randint(32, 126), r.randint(160, 0xD7FF), r.randint(0x10000, 0x1FFFF)]))
                   for _ in range(r.randint(0, 12)))
    return unicodedata.normalize(r.choice(["NFC", "NFD"]), made)


def one(r, type_, words, calm):
    """bytes: a value of a column of this type; a calm one has no mistake, though a step may refuse it."""
    chance = r.uniform(0.4 if calm else 0, 1)
    if chance < 0.12:
        return b""
    if type_ == "number":
        if chance < 0.4:
            return r.choice(NUMBERS).encode()
        scale = 10.0 ** r.choice([0, 0, 1, 2, r.randint(-45, 37)])
        return r.choice([repr(r.gauss(0, 1) * scale), str(r.randint(-99, 99)), "%.3f" % r.gauss(0, 10)]).encode()
    if type_ == "integer":
        return (r.choice(INTEGERS) if chance < 0.3 else str(r.randint(-9, 200))).encode()
    if chance < 0.2:
        return some_bytes(r)
    made = r.choice([lambda: r.choice(TEXTS), lambda: r.choice(words or TEXTS), lambda: str(r.randint(-9, 9)),
                     lambda: some_text(r)])
    return made().encode()


def of_column(r, column, words, calm):
    """bytes: a field of this column; it may hold separators of any kind, but no end of line."""
    if column.split:
        parts = [one(r, column.type, words, calm) for _ in range(r.choice([0, 1, 1, 2, 3]))]
        made = column.split.encode().join(parts)
    else:
        made = one(r, column.type, words, calm)
    return made.replace(b"\n", b"")


def as_text(data):
    """The str of bytes; other bytes than UTF-8 become those that os.fsdecode gives."""
    return data.decode("utf-8", "surrogateescape")


def is_utf8(data):
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def scalar(r, data, type_):
    """A value of Python that has this text in a file."""
    text = as_text(data)
    found = [text, data, np.str_(text)] if text == str(np.str_(text)) else [text, data]
    if not data:
        found += [None, float("nan"), None]
    elif len(data) < 4000 and JSON_INTEGER.fullmatch(text) and text != "-0":
        found += [int(text)] * 3 + ([np.int64(int(text))] if abs(int(text)) < 2**63 else [])
    elif type_ != "text" and len(data) < 4000 and JSON_NUMBER.fullmatch(text):
        number = float(text)
        if repr(number) == text:
            found += [number, np.float64(number), number]
        if 1e-300 < abs(number) < 1e300 and str(decimal.Decimal(text)) == text:
            found.append(decimal.Decimal(text))
    return r.choice(found)


def value(r, data, column):
    """A scalar, or a list of them if the column is one."""
    if not column.listed or r.random() < 0.5:
        return scalar(r, data, column.type)
    parts = [scalar(r, part, column.type) for part in data.split(column.split.encode())]
    if parts == [""] and r.random() < 0.5:
        parts = []
    return r.choice([list, tuple])(parts)


def in_json(r, data, type_):
    """The same as JSON: a number where the text is one, and so for text only an integer."""
    text = as_text(data)
    if not data and r.random() < 0.5:
        return "null"
    pattern = JSON_INTEGER if type_ == "text" else JSON_NUMBER
    if pattern.fullmatch(text) and (type_ != "text" or text != "-0") and r.random() < 0.7:
        return text
    return json.dumps(text, ensure_ascii=r.random() < 0.5 or not is_utf8(data))


def json_value(r, data, column):
    if not column.listed or r.random() < 0.5:
        return in_json(r, data, column.type)
    return "[%s]" % ", ".join(in_json(r, part, column.type) for part in data.split(column.split.encode()))
