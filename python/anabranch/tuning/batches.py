"""Batches of different sizes, made from those that a script has fed."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .. import fluid
from ..fluid.errors import Unsupported
from ..fluid.framework import Program


def whole(feed: Any) -> dict[str, Any]:
    """One batch from the feed of a script: a list with one dict per replica becomes one dict."""
    if isinstance(feed, Mapping):
        return dict(feed)
    if not feed:
        raise Unsupported("anabranch tune: the step must have a feed: batches that a program reads itself cannot be "
                          "replayed; use an iterable DataLoader in the script")
    return joined(list(feed), list(feed[0]))


def by_rows(program: Program, feed: Mapping[str, Any]) -> list[str]:
    """Names of the fed variables whose first extent is unknown in the program: their first axis is the batch."""
    block = program.desc.block(0)
    found = []
    for name in feed:
        var = block._find_var(name)
        if var is not None and len(var.shape) > 0 and var.shape[0] < 0:
            found.append(name)
    return found


def rows_of(feed: Mapping[str, Any], names: Sequence[str]) -> int:
    """int: number of rows of a batch: sequences of the outermost level, or the first extent; 1 without any variable."""
    for name in names:
        value = feed[name]
        lengths = _lengths(value)
        return len(lengths[0]) if lengths else int(np.asarray(value).shape[0])
    return 1


def joined(feeds: Sequence[Mapping[str, Any]], names: Sequence[str]) -> dict[str, Any]:
    """Joins several batches into one.

    Args:
        feeds (list of dict): at least one.
        names (list of str): variables to join. All other variables have the values of the first batch.

    >>> joined([{"x": np.ones((2, 1))}, {"x": np.zeros((1, 1))}], ["x"])["x"].tolist()
    [[1.0], [1.0], [0.0]]
    """
    made = dict(feeds[0])
    for name in names if len(feeds) > 1 else ():
        values = [feed[name] for feed in feeds]
        rows = np.concatenate([np.asarray(value) for value in values])
        levels = [_lengths(value) for value in values]
        if levels[0]:
            lengths = [sum((one[level] for one in levels), []) for level in range(len(levels[0]))]
            made[name] = fluid.create_lod_tensor(rows, lengths, fluid.CPUPlace())
        else:
            made[name] = rows
    return made


def halves(feed: Mapping[str, Any], names: Sequence[str]) -> list[dict[str, Any]] | None:
    """Cuts a batch into two; None where a value has sequences, or there is only one row."""
    rows = rows_of(feed, names)
    if rows < 2 or any(_lengths(feed[name]) for name in names):
        return None
    cut = rows // 2
    return [dict(feed, **{name: np.asarray(feed[name])[part] for name in names})
            for part in (slice(0, cut), slice(cut, 2 * cut))]


def _lengths(value: Any) -> list[list[int]]:
    return value.recursive_sequence_lengths() if isinstance(value, fluid.LoDTensor) else []
