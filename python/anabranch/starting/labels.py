"""The kinds of labels: two classes, several classes, or a number."""
from __future__ import annotations

import re
from typing import NamedTuple

from ..fluid.errors import InvalidValue
from .features import call, shown, wrapped_list
from .statistics import Column, Statistics, column_texts

#: Number of classes that a label may have.
MOST_CLASSES = 1000


class Label(NamedTuple):
    """How a column becomes a label."""

    column: Column
    code: str           # line of Python that adds it to the schema
    says: str           # what counts as 1, or that it is a number
    two_classes: bool
    classes: int = 0    # more than two, of which the label is one


def label_of(stats: Statistics, name: str, positive: str | None = None, at_least: float | None = None,
             as_classes: bool = False) -> Label:
    """Finds out what the label is.

    Args:
        stats (Statistics): of the files.
        name (str): column of the label.
        positive (str, optional): text that counts as 1; all others count as 0.
        at_least (float, optional): numbers from here on count as 1.
        as_classes (bool): more than two numbers are classes, too. Default False.

    Returns:
        Label: two values are two classes, more texts are classes, more numbers are a number to predict.

    Raises:
        ValueError: there is no such column; all labels are equal; there are too many classes; or ``positive`` or
            ``at_least`` does not divide the labels.
    """
    column = stats.column(name)
    if not column.given:
        raise InvalidValue("--label %s: the column is empty" % name)
    if column.distinct == 1:
        raise InvalidValue("--label %s: all labels are equal (%s), so there is nothing to learn"
                           % (name, column.heavy[0][0] if column.heavy else "a long text"))
    if at_least is not None:
        return _above(column, name, at_least)
    if positive is not None:
        return _one_text(column, name, positive)
    if _are_two(column):
        return _two(column)
    if as_classes or not column.is_numeric:
        return _classes(stats, column, name)
    levels = round(column.distinct)
    hint = " (--classes predicts its %d values as classes)" % levels if (
        column.integers == column.given and column.distinct_is_exact and levels <= MOST_CLASSES) else ""
    return Label(column, call(column, "number"),
                 "a number from %s to %s%s" % (shown(column.low), shown(column.high), hint), False)


def _classes(stats, column, name):
    """The texts of a column, in the order of numbers or of texts."""
    texts = _texts(stats, column) if not column.distinct_is_exact or column.distinct > len(column.heavy) else [
        text for text, _ in column.heavy]
    if len(texts) > MOST_CLASSES:
        raise InvalidValue("--label %s: the column must have at most %d different texts, got %s (%s, ...): --positive "
                           "TEXT names the one that counts as 1"
                           % (name, MOST_CLASSES, _amount(column), ", ".join(texts[:8])))
    odd = next((text for text in texts if not text.isprintable()), None)
    if odd is not None:
        raise InvalidValue("--label %s: classes must be printable UTF-8, got %s" % (name, ascii(odd[:60])))
    if all(re.fullmatch(r"-?\d+", text) for text in texts):
        texts.sort(key=int)
    else:
        texts.sort()
    named = "" if isinstance(column.key, str) else ", name=%r" % ("column_%s" % column.name)
    code = wrapped_list("schema.label(%r%s, classes=[" % (column.key, named), texts, "])")
    shown_texts = ", ".join(texts[:4]) + (", ..." if len(texts) > 4 else "")
    return Label(column, code, "one of %d classes: %s" % (len(texts), shown_texts), False, len(texts))


def _texts(stats, column):
    """The different texts of a column that has more than the statistics keep; a few more than allowed at most."""
    found: set[str] = set()
    for path in stats.files:
        found.update(text for text in column_texts(path, stats.form, column.number, found, MOST_CLASSES) if text)
    return list(found)


def _amount(column):
    return "%s%d" % ("" if column.distinct_is_exact else "about ", round(column.distinct))


def _above(column, name, at_least):
    if not column.is_numeric:
        raise InvalidValue("--at-least %g: the column %s must have numbers, got %s" % (
            at_least, name, column.heavy[0][0] if column.heavy else "a long text"))
    if not column.low < at_least <= column.high:
        raise InvalidValue("--at-least %g: it must be above the smallest label, %s, and at most the largest one, %s"
                           % (at_least, shown(column.low), shown(column.high)))
    return Label(column, call(column, "number") + ".bucketize([%s])" % repr(at_least),
                 "1 from %s on" % shown(at_least), True)


def _one_text(column, name, positive):
    texts = [text for text, _ in column.heavy]
    if positive not in texts:
        raise InvalidValue("--positive %s: no label of %s has this text; there are %s" % (
            positive, name, ", ".join(texts[:8])))
    return Label(column, call(column, "text") + ".required().vocabulary([%r])" % positive, "1 if it is %s" % positive,
                 True)


def _are_two(column):
    """Whether there are two values, or two numbers and a few malformed fields."""
    if column.distinct == 2:
        return len(column.heavy) == 2
    return column.is_numeric and _are_numbers(column)


def _are_numbers(column):
    """Whether the two heaviest texts are numbers, and there are no others."""
    return column.finite == sum(count for _, count in column.heavy[:2])


def _two(column):
    """Two values, in the order of numbers or of texts: the second one counts as 1."""
    low, high = sorted(text for text, _ in column.heavy[:2])
    if _are_numbers(column):
        if {low, high} == {"0", "1"}:
            return Label(column, _as_label(column), "1 if it is 1", True)
        return Label(column, call(column, "number") + ".bucketize([%.9g])" % column.high,
                     "1 if it is %s" % shown(column.high), True)
    return Label(column, call(column, "text") + ".vocabulary(%r, others=False)" % [low, high],
                 "1 if it is %s" % high, True)


def _as_label(column):
    named = "" if isinstance(column.key, str) else ", name=%r" % ("column_%s" % column.name)
    return "schema.label(%r%s)" % (column.key, named)
