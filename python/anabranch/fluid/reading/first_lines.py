"""Warnings about values that a schema reads in a way that is hardly meant, by the first lines of a file."""
from __future__ import annotations

import csv
import gzip
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..errors import EnforceNotMet
from ..user_warnings import advise, warn

_BYTES = 1 << 16    # of a file that are looked at
_LEAST = 20         # values of a column that say something
_SEPARATORS = "|,; "
_NAMES = {"tab": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " "}     # of separators in a format
_FLOAT_ID = re.compile(r"-?\d+\.0$")
_DECIMAL = re.compile(r"-?(\d+)[.,]\d*[1-9]\d*$")
_MISSING = {"na", "n/a", "nan", "null", "none", "nil", "?", "-", "\\n"}
_FAR = 20       # standard deviations from the mean, where the numbers of normalize are hardly those of the column


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
        advise("%s: the first line seems to contain the names of the columns (%s), but the format has no header, so "
               "that it is read as a row: pass header=True to Schema, or add the word header to the first line of the "
               "format" % (path, _some(heads)))


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


def _decimals(part: Mapping[str, Any], values: Sequence[str]) -> str | None:
    found = [match for match in map(_DECIMAL.match, values) if match]
    if len(found) < 0.9 * len(values) or len({match.group(1) for match in found}) <= 10:
        return None     # such as versions
    return ("its texts are numbers with decimals, and each different one gets its own id: read the column with "
            "Schema.number%s, got %s" % (", after decimal commas have become points" if all(
                "," in match.group() for match in found) else "", _some(values)))


def _words_for_missing(part: Mapping[str, Any], values: Sequence[str]) -> str | None:
    found = [value for value in values if value.lower() in _MISSING]
    asks = part.get("required") or any(step[0] in ("missing", "required") for step in part.get("steps", []))
    if not asks or not found:
        return None
    return ("%d of the first %d texts are %s, which count as texts: a missing value is an empty field"
            % (len(found), len(values), _some(found)))


def _few_buckets(part: Mapping[str, Any], values: Sequence[str]) -> str | None:
    size = next((step[1] for step in part.get("steps", []) if step[0] == "hash"), None)
    kinds = len(set(values))
    if size is None or "split" in part or kinds < 4 * size:
        return None
    return ("the first %d texts have %d different values, which share %d ids: pass hash more buckets, about four for "
            "each value" % (len(values), kinds, size))


def _some(values):
    return ", ".join(repr(value[:40]) for value in list(dict.fromkeys(values))[:3])


_RULES: tuple[Callable[[Mapping[str, Any], Sequence[str]], str | None], ...] = (
    _spaces, _float_ids, _other_separator, _unknown_words, _decimals, _words_for_missing, _few_buckets)


def warn_of_odd_values(text: str, path: str) -> None:
    """Warns if the values of a column are hardly those that a schema means.

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
        _warn_of_other_bytes(path, column, values)
    for feature in schema["features"]:
        if feature.get("type") == "number" and "split" not in feature:
            for column in feature["columns"]:
                _warn_of_steps(path, feature, column, columns.get(column, []))


def _warn_of_other_bytes(path, column, values):
    odd = next((value for value in values if any("\ud800" <= letter <= "\udfff" for letter in value)), None)
    if odd is not None:
        warn("%s: column %s: the text %s is not UTF-8, in which requests of a server and texts of Python are: they "
             "would get other ids. Convert the file: iconv -f LATIN1 -t UTF-8" % (path, column, ascii(odd[:40])))


def _warn_of_steps(path: str, feature: Mapping[str, Any], column: Any, texts: Sequence[str]) -> None:
    """Warns if the steps make equal what differs, or normalize by the mean of other numbers."""
    from ...schema import Schema  # imports this package
    values = [text for text in texts if _is_number(text)]
    if len(set(values)) < _LEAST:
        return
    alone = Schema.from_json(json.dumps({"version": 1, "separator": ",", "header": True, "ragged": False, "features": [
        {**feature, "name": "x", "columns": ["x"], "steps": [
            step for step in feature.get("steps", []) if step[0] != "range"]}]}))
    try:
        made = alone.transform("x", values)
    except EnforceNotMet:   # the pass says what is wrong
        return
    steps = ", ".join(step[0] for step in feature.get("steps", []))
    if made.min() == made.max():
        warn("%s: column %s: the steps %s of the feature %s make all of the first %d values equal, such as %s: check "
             "their bounds and the unit of the column" % (path, column, steps, feature["name"], len(values),
                                                          _some(values)))
    elif feature["steps"] and feature["steps"][-1][0] == "normalize" and abs(float(made.mean())) > _FAR:
        warn("%s: column %s: after the steps %s of the feature %s, the mean of the first %d values is %.3g, far from "
             "0: check the mean and the scale of normalize, and the unit of the column"
             % (path, column, steps, feature["name"], len(values), float(made.mean())))
