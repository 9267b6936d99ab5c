"""How the columns of two sets of files differ: by the population stability index (PSI)."""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..fluid.errors import InvalidValue
from .features import shown
from .statistics import Column, Statistics

#: PSI from which a column has drifted somewhat, and strongly.
SOME, STRONG = 0.1, 0.25
_LEAST = 1e-4       # of a share, whose logarithm is taken
_TEXTS = 100


class Drift(NamedTuple):
    """The drift of a column from the first set to the second."""

    name: str
    psi: float
    grade: str          # "", "some" or "strong"
    what: str


def psi(before: Any, after: Any) -> float:
    """The population stability index of two distributions: the sum of (b - a) ln(b / a) over all parts.

    Args:
        before (array): counts of each part.
        after (array): counts of the same parts.

    Returns:
        float: 0 for equal shares.

    >>> psi([1, 1], [10, 10]), round(psi([1, 1], [3, 1]), 3)
    (0.0, 0.275)
    """
    shares = [np.maximum(np.asarray(counts, "float64") / max(np.sum(counts), 1), _LEAST) for counts in (before, after)]
    return float(((shares[1] - shares[0]) * np.log(shares[1] / shares[0])).sum())


def drift(before: Statistics, after: Statistics) -> list[Drift]:
    """Compares two sets of files.

    Args:
        before (Statistics): of the first set, whose deciles and heaviest values are the parts.
        after (Statistics): of the second one.

    Returns:
        list of Drift: one for each column, the strongest first.

    Raises:
        ValueError: a column of the first set is missing in the second.
    """
    others = {column.key: column for column in after.columns}
    found = []
    for column in before.columns:
        if column.key not in others:
            raise InvalidValue("%s: there is no column %s, got %s" % (
                after.files[0], column.key, ", ".join(str(key) for key in others)))
        found.append(_of(column, others[column.key]))
    return sorted(found, key=lambda one: -one.psi)


def _of(one: Column, other: Column) -> Drift:
    parts = _numbers(one, other) if one.is_numeric and other.is_numeric else _texts(one, other)
    index = psi(*parts)
    grade = "strong" if index >= STRONG else "some" if index >= SOME else ""
    return Drift(str(one.key), index, grade, _what(one, other))


def _numbers(one, other):
    edges = np.unique(np.percentile(one.sample, np.arange(10, 100, 10)))
    counts = []
    for column in (one, other):
        places = np.bincount(np.searchsorted(edges, column.sample, "right"), minlength=len(edges) + 1)
        given = places * (column.finite / max(len(column.sample), 1))
        counts.append(np.append(given, column.values - column.finite))
    return counts


def _texts(one, other):
    texts = [text for text, _ in one.heavy[:_TEXTS]]
    texts += [text for text, _ in other.heavy[:_TEXTS] if text not in set(texts)]
    counts = []
    for column in (one, other):
        of = dict(column.heavy)
        known = [of.get(text, 0) for text in texts]
        counts.append(known + [column.empty, max(column.given - sum(known), 0)])
    return counts


def _share(count, column):
    return 100 * count / max(column.values, 1)


def _what(one, other):
    """The change that explains most: of missing values, of the mean, or of the share of a value."""
    gap = abs(_share(other.missing, other) - _share(one.missing, one))
    missing = "missing %.3g %% -> %.3g %%" % (_share(one.missing, one), _share(other.missing, other))
    if one.is_numeric and other.is_numeric:
        moved = abs(other.mean - one.mean) / one.deviation if one.deviation else float(other.mean != one.mean)
        mean = "mean %s -> %s" % (shown(one.mean), shown(other.mean))
        return missing if gap > 100 * moved else mean
    of = [dict(column.heavy) for column in (one, other)]
    shares = {text: (_share(of[0].get(text, 0), one), _share(of[1].get(text, 0), other)) for text in {**of[0], **of[1]}}
    text = max(sorted(shares), key=lambda name: abs(shares[name][1] - shares[name][0]), default=None)
    if text is None or gap > abs(shares[text][1] - shares[text][0]):
        return missing
    label = text if text.isprintable() and len(text) <= 24 else repr(text)[:24]
    return "%s %.3g %% -> %.3g %%" % (label, *shares[text])
