"""Warnings about texts that a schema reads in a way that is hardly meant, by the first lines of a file."""
from __future__ import annotations

import csv
import gzip
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..user_warnings import warn

_BYTES = 1 << 16    # of a file that are looked at
_LEAST = 20         # values of a column that say something
_SEPARATORS = "|,; "
_NAMES = {"tab": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " "}     # of separators in a format
_FLOAT_ID = re.compile(r"-?\d+\.0$")


def _lines(path: str) -> list[str]:
    """The first lines of a file of text, which gzip may have compressed; none if it has another format."""
    with open(path, "rb") as file:
        start = file.read(6)
        file.seek(0)
        opened: Any = gzip.GzipFile(fileobj=file) if start[:2] == b"\x1f\x8b" else file
        if start[:4] in (b"\x28\xb5\x2f\xfd", b"PAR1") or start == b"ARROW1":
            return []
        text: bytes = opened.read(_BYTES)
    lines = text.decode("utf-8-sig", "surrogateescape").split("\n")
    return [line.rstrip("\r") for line in (lines if len(text) < _BYTES else lines[:-1]) if line]


def _columns(schema: Mapping[str, Any], path: str) -> dict[Any, list[str]]:
    """Column -> its values that are not empty. No column if the file cannot be read: the pass says why."""
    separator = schema["separator"]
    quoting: Any = csv.QUOTE_NONE if separator == "\t" else csv.QUOTE_MINIMAL
    try:
        rows = list(csv.reader(_lines(path), delimiter=separator, quoting=quoting))
    except (OSError, EOFError, csv.Error):
        return {}
    if not rows:
        return {}
    names = rows.pop(0) if schema["header"] else list(range(len(rows[0])))
    return {name: [row[place] for row in rows if place < len(row) and row[place]] for place, name in enumerate(names)}


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _separator(form: str) -> str | None:
    """Of a format whose files have no header; None for another one."""
    if form.startswith("{"):
        schema = json.loads(form)
        return None if "lines" in schema or schema["header"] else schema["separator"]
    words = form.split("\n", 1)[0].split()
    return None if words[:1] != ["columns"] or "header" in words else _NAMES.get(words[1] if len(words) > 1 else "")


def warn_of_header(form: str, path: str) -> None:
    """Warns if the first line of a file that is read as data contains names: a column of numbers starts with a text.

    Args:
        form (str): a schema as JSON, or the text of a format.
        path (str): a file.
    """
    separator = _separator(form)
    if separator is None:
        return
    columns = _columns({"separator": separator, "header": False}, path)
    heads = [values[0] for values in columns.values() if values]
    numbers = [values for values in columns.values()
               if len(values) > _LEAST and sum(map(_is_number, values[1:])) >= 0.95 * (len(values) - 1)]
    if numbers and not any(map(_is_number, heads)):
        warn("%s: the first line seems to contain the names of the columns (%s), but the format has no header, so that "
             "it is read as a row: pass header=True to Schema, or add the word header to the first line of the format"
             % (path, _some(heads)))


def _texts(schema: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], Any]]:
    """(feature of text, its column) for each column, also of the parts of crosses."""
    for feature in schema["features"]:
        for part in feature.get("cross", [feature]):
            if part["type"] == "text":
                for column in part["columns"]:
                    yield part, column


def _unknown_words(part: Mapping[str, Any], values: Sequence[str]) -> str | None:
    for step in part.get("steps", []):
        if step[0] == "vocabulary":
            words = set(step[1])
            items = [item for value in values for item in (value.split(part["split"]) if "split" in part else [value])]
            if not words.intersection(items):
                return ("none of the first %d texts is in the vocabulary, so that all of them get one id: got %s, and "
                        "the vocabulary has %s" % (len(items), _some(items), _some(step[1])))
    return None


def _other_separator(part: Mapping[str, Any], values: Sequence[str]) -> str | None:
    split = part.get("split")
    if split is None or any(split in value for value in values):
        return None
    for other in _SEPARATORS:
        if other != split and sum(other in value for value in values) > 0.3 * len(values):
            return ("none of the first %d lists contains the separator %r, so that each has one item, and many contain "
                    "%r: got %s" % (len(values), split, other, _some(values)))
    return None


def _float_ids(part: Mapping[str, Any], values: Sequence[str]) -> str | None:
    if not all(map(_FLOAT_ID.match, values)):
        return None
    return ("its texts are integers that were written as floats, and 7.0 is another text than 7: write integers "
            "(pandas stores integers with missing values as floats: read them with dtype=str), got %s" % _some(values))


def _spaces(part: Mapping[str, Any], values: Sequence[str]) -> str | None:
    if part.get("split") == " " or not all(value != value.strip(" ") for value in values):
        return None
    return "all texts start or end with a space, which is a part of the text: remove the spaces, got %s" % _some(values)


def _some(values):
    return ", ".join(repr(value[:40]) for value in list(dict.fromkeys(values))[:3])


_RULES: tuple[Callable[[Mapping[str, Any], Sequence[str]], str | None], ...] = (
    _spaces, _float_ids, _other_separator, _unknown_words)


def warn_of_odd_texts(text: str, path: str) -> None:
    """Warns if the values of a column of text are hardly those that a schema means.

    Args:
        text (str): a schema as JSON.
        path (str): a file.
    """
    schema = json.loads(text)
    if "lines" in schema:
        return
    columns = _columns(schema, path)
    for part, column in _texts(schema):
        values = columns.get(column, [])
        found = (rule(part, values) for rule in _RULES) if len(values) >= _LEAST else ()
        why = next((one for one in found if one), None)
        if why is not None:
            warn("%s: column %s: %s" % (path, column, why))
