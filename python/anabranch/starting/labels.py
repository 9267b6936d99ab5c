"""The kinds of labels: two classes, or a number."""
from __future__ import annotations

from typing import NamedTuple

from ..fluid.errors import InvalidValue
from .features import call, shown
from .statistics import Column, Statistics


class Label(NamedTuple):
    """How a column becomes a label."""

    column: Column
    code: str           # line of Python that adds it to the schema
    says: str           # what counts as 1, or that it is a number
    two_classes: bool


def label_of(stats: Statistics, name: str, positive: str | None = None, at_least: float | None = None) -> Label:
    """Finds out what the label is.

    Args:
        stats (Statistics): of the files.
        name (str): column of the label.
        positive (str, optional): text that counts as 1; all others count as 0.
        at_least (float, optional): numbers from here on count as 1.

    Returns:
        Label: two values are two classes, more numbers are a number to predict.

    Raises:
        ValueError: there is no such column; all labels are equal; there are more than two texts; or ``positive`` or
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
    if not column.is_numeric:
        seen = ", ".join(text for text, _ in column.heavy[:8])
        raise InvalidValue("--label %s: the column must have two different texts or numbers, got %s (%s): --positive "
                           "TEXT names the one that counts as 1" % (name, _amount(column), seen))
    return Label(column, call(column, "number"), "a number from %s to %s" % (shown(column.low), shown(column.high)),
                 False)


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
