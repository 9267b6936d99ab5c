"""Features for the columns of files: a kind for each column, and the steps of a schema that suit it."""
from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ..schema import Schema
from .statistics import Column, Form, Statistics

#: A column of text with at most this number of values gets a vocabulary.
WORDS = 50
#: A column of integers with at most this number of values is a category.
LEVELS = 12
#: A text with spaces is a category if it has at most this number of values for each field, otherwise a list of words.
OFTEN = 0.1
#: Parts of a date that become features.
DATE_PARTS = ("hour", "weekday", "month")
_TIME = re.compile(r"(^|[^a-z])(time|times|timestamp|ts|date|datetime|epoch|unix|created|updated|at)([^a-z]|$)|"
                   r"(?<=[a-z])(Time|Timestamp|Date|At)$")
_ID = re.compile(r"(^|[^a-z])(id|ids|key|code|zip|zipcode|postcode|uuid|guid)$|(?<=[a-z])(Id|ID|Key|Code)$")


class Proposal(NamedTuple):
    """The feature that a column becomes."""

    column: Column
    kind: str           # number, vocabulary, hash, list, words, date, ignored
    steps: str          # of the schema, as Python; of a date: its parts
    why: str            # of an ignored column


def proposals(stats: Statistics, kinds: Mapping[str, str] | None = None) -> list[Proposal]:
    """Proposes a feature for each column.

    Args:
        stats (Statistics): of the files.
        kinds (dict, optional): column -> 'number', 'category' or 'ignored', where the user knows better.

    Returns:
        list of Proposal: one for each column.
    """
    return [proposal(column, stats.form.separator, (kinds or {}).get(str(column.key))) for column in stats.columns]


def proposal(column: Column, separator: str, kind: str | None = None) -> Proposal:
    """Proposal: the feature for a column."""
    if kind == "ignored":
        return Proposal(column, "ignored", "", "as asked")
    if column.distinct <= 1 and not (column.distinct == 1 and column.empty):
        return Proposal(column, "ignored", "", "it is empty" if not column.given else "it has one value")
    parts = _date_parts(column) if kind in (None, "date") else []
    if parts or kind == "date":
        return Proposal(column, "date", " ".join(parts or DATE_PARTS), "")
    if kind == "number" or (kind is None and column.is_numeric and not _is_category(column)):
        return Proposal(column, "number", _number_steps(column), "")
    if column.pipes > 0.05 * column.given and separator != "|":
        return Proposal(column, "list", ".hash(%d)" % buckets(column.distinct), "")
    if kind is None and column.is_prose and column.distinct > OFTEN * column.given and separator != " ":
        return Proposal(column, "words", ".hash(%d)" % buckets(column.distinct_words), "")
    if kind is None and column.given > 100 and column.distinct > 0.9 * column.given:
        return Proposal(column, "ignored", "", "nearly every value occurs once")
    words = vocabulary(column)
    if words:
        return Proposal(column, "vocabulary", ".vocabulary(%r)" % words, "")
    return Proposal(column, "hash", ".hash(%d)" % buckets(column.distinct), "")


def _date_parts(column: Column) -> list[str]:
    """list of str: the parts of dates that vary, if the texts of a column are dates."""
    texts = [text for text, _ in column.heavy if text]
    if column.is_numeric and not _is_time(column):
        return []
    if len(texts) < 2 or not any(text[:2].isdigit() for text in texts):
        return []
    schema = Schema()
    for part in DATE_PARTS:
        schema.text("x", part).date(part)
    found = {part: schema.transform(part, texts).ravel() for part in DATE_PARTS}
    given = {part: ids[ids > 0] for part, ids in found.items()}
    if max(map(len, given.values())) < 0.95 * len(texts):
        return []
    return [part for part, ids in given.items() if len(ids) >= 0.95 * len(texts) and len(set(ids.tolist())) > 1]


def _is_time(column):
    """Whether numbers may be dates: digits of a date, or seconds since 1970 in a column whose name says so."""
    if column.integers != column.given:
        return False
    if 19000101 <= column.low and column.high <= 21001231:
        return True
    unit = 1 if column.high < 1e11 else 1000
    return bool(_TIME.search(column.name)) and 2e8 * unit <= column.low and column.high <= 5e9 * unit


def date_name(column: Column, part: str) -> str:
    """str: name of the feature of a part of a date."""
    return "%s_%s" % (name_of(column), part)


def _is_category(column):
    if column.integers != column.given:
        return False
    return bool(_ID.search(column.name)) or (column.distinct_is_exact and 2 < column.distinct <= LEVELS)


def vocabulary(column: Column) -> list[str]:
    """list of str: all values by frequency, if there are few; otherwise none."""
    if not column.distinct_is_exact or column.distinct > WORDS or len(column.heavy) != column.distinct:
        return []
    words = [text for text, _ in column.heavy]
    return words if all(text.isprintable() for text in words) else []   # such as bytes that are not UTF-8


def buckets(distinct: float) -> int:
    """int: number of ids for a hash, so that about a tenth of the values share theirs."""
    return min(max(2 ** int(np.ceil(np.log2(4 * distinct + 1))), 1024), 2 ** 22)


def is_heavy_tailed(column: Column) -> bool:
    """bool: its numbers are not negative, and the largest hundredth is far above the rest."""
    if column.low < 0 or not len(column.sample):
        return False
    middle, high = np.percentile(column.sample, [50, 99])
    return bool(high > 10 * max(middle, 1e-6 * high) and column.distinct > 2)


def _number_steps(column):
    steps = ""
    if column.missing:
        steps += ".missing(%s)" % shown(float(np.median(column.sample)))
    values = column.sample
    if column.infinite:
        steps += ".clip(%s, %s)" % (shown(column.low), shown(column.high))
    if is_heavy_tailed(column):
        steps += ".log()"
        values = np.log1p(values)
    scale = float(values.std())
    if scale > 0 and not (column.distinct == 2 and (column.low, column.high) == (0, 1)):
        steps += ".normalize(%s, %s)" % (shown(float(values.mean())), shown(scale))
    return steps


def bounds(column: Column, count: int = 16) -> list[float]:
    """list of float: bounds that cut the numbers into parts of similar size; none if there are few values."""
    if column.distinct <= 4:
        return []
    return sorted({float(shown(float(value)))
                   for value in np.percentile(column.sample, np.linspace(0, 100, count + 1)[1:-1])})


def shown(value: float) -> str:
    """str: a number with four digits.

    >>> shown(0.123456), shown(3.0), shown(1234567.0)
    ('0.1235', '3', '1235000')
    """
    text = "%.4g" % value
    return "%d" % float(text) if "e+" in text and abs(value) < 1e15 else text


def schema_code(form: Form, chosen: Iterable[Proposal]) -> str:
    """str: Python that makes the schema."""
    arguments = []
    if form.separator != ",":
        arguments.append("separator=%r" % form.separator)
    if not form.header:
        arguments.append("header=False")
    lines = ["schema = anabranch.Schema(%s)" % ", ".join(arguments)]
    for one in chosen:
        lines += feature_code(one)
    return "\n".join(lines) + "\n"


def name_of(column: Column) -> str:
    """str: name of the feature of a column."""
    return column.name if isinstance(column.key, str) else "column_%s" % column.name


def call(column: Column, method: str, extra: str = "", name: str | None = None) -> str:
    """str: the start of a feature, such as ``schema.number("price")``."""
    named = name if name is not None else None if isinstance(column.key, str) else name_of(column)
    return "schema.%s(%r%s%s)" % (method, column.key, "" if named is None else ", %r" % named, extra)


def feature_code(one: Proposal) -> list[str]:
    """list of str: lines of Python that add the feature of a column."""
    if one.kind == "ignored":
        return ["# %s: %s" % (one.column.key, one.why)]
    if one.kind == "number":
        return _wrapped(call(one.column, "number"), one.steps)
    if one.kind == "date":
        return [call(one.column, "text", name=date_name(one.column, part)) + ".date(%r)" % part
                for part in one.steps.split()]
    split = {"list": ', split="|"', "words": ', split=" "'}.get(one.kind, "")
    return _wrapped(call(one.column, "text", split), one.steps)


def wrapped_list(start: str, items: Sequence[str], end: str) -> str:
    """str: Python of a list of texts between ``start`` and ``end``, in lines of at most 79 columns where it can be."""
    line = start + ", ".join(map(repr, items)) + end
    if len(line) <= 79:
        return line
    lines, now = [start], "   "
    for item in items:
        if len(now) + len(repr(item)) + 2 > 78:
            lines.append(now)
            now = "   "
        now += " %r," % item
    return "\n".join([*lines, now[:-1] + end])


def _wrapped(start, steps):
    """Lines of at most 79 columns: a long vocabulary is cut at its commas."""
    line = start + steps
    if len(line) <= 79 or ".vocabulary([" not in line:
        return [line]
    head, _, words = line.partition(".vocabulary([")
    lines, now = [], "   "
    for word in re.findall(r"(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")", words):
        if len(now) + len(word) + 2 > 78:
            lines.append(now)
            now = "   "
        now += " %s," % word
    return [head + ".vocabulary(["] + lines + [now[:-1] + "])"]
