"""The AUC of each group of rows, from the predictions of one process or of all workers of a cluster.

Workers divide the groups into parts by their hashes and gather one part after the other, so that little memory is
needed. The number of parts depends on the number of all rows only: a cluster gives the bits of one process.
"""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from . import _cluster, _core

_ROWS_OF_A_PART = 2 ** 20


class Records(NamedTuple):
    """The groups (None: all rows are one) and predictions of rows, as ``_core.RankingCounts.records`` returns them."""

    groups: np.ndarray | None
    codes: np.ndarray


def weighted_area(records: Records, role: Any = None) -> float:
    """float: the mean of the areas of the groups, weighted by their rows. Groups of one label count for nothing.

    Args:
        records (Records): rows of this process. The first of the 32 bits of a code is the label; the others are those
            of the prediction as a float32.
        role (RoleMakerBase, optional): role of this process, if the rows of all workers count.

    Examples:
        >>> codes = np.array([1, 2 + 2 ** 31, 3, 1 + 2 ** 31, 2, 5], "int64")
        >>> weighted_area(Records(np.array([7, 7, 7, 8, 8, 9]), codes))     # areas 1/2 of three rows, 0 of two
        0.3
    """
    rows = len(records.codes)
    workers, mine = (1, 0) if role is None else (role.worker_num(), role.worker_index())
    if workers > 1:
        rows = int(_cluster.all_reduce(role, np.array([rows]), "sum")[0])
    parts = max(1, -(-rows // _ROWS_OF_A_PART)) if records.groups is not None else 1
    part_of = _parts_of(records.groups, parts) if parts > 1 else None
    sums = np.zeros((parts, 2))     # of areas times rows, and of rows
    for part in range(parts):
        here = records
        if part_of is not None and records.groups is not None:
            here = Records(records.groups[part_of == part], records.codes[part_of == part])
        if workers == 1:
            sums[part] = _core.group_areas(*here)
            continue
        everywhere = _cluster.gather_arrays(role, _packed(here))
        if part % workers == mine:
            sums[part] = _core.group_areas(*_joined([_unpacked(one) for one in everywhere]))
    if workers > 1:
        sums = _cluster.all_reduce(role, sums, "sum")
    weighted, weight = sums.sum(axis=0)
    return float(weighted / weight) if weight else float("nan")


def _parts_of(groups, parts):
    """The part of each group: its hash modulo the number of parts."""
    mixed = groups.astype("uint64") * np.uint64(0x9E3779B97F4A7C15)
    return (mixed >> np.uint64(33)) % np.uint64(parts)


def _packed(records):
    """The records as one array of int64: each group once, and two codes in one number."""
    if records.groups is None:
        return np.concatenate([[-1, len(records.codes)], _pairs(records.codes)])
    order = np.argsort(records.groups, kind="stable")
    groups = records.groups[order]
    starts = np.concatenate([[0], np.flatnonzero(groups[1:] != groups[:-1]) + 1])[:len(groups)]
    sizes = np.diff(np.append(starts, len(groups)))
    return np.concatenate([[len(starts)], groups[starts], sizes, _pairs(records.codes[order])])


def _pairs(codes):
    padded = np.zeros(len(codes) + len(codes) % 2, "uint32")
    padded[:len(codes)] = codes
    return padded.view("int64")


def _unpacked(array):
    count = int(array[0])
    if count < 0:
        return Records(None, _codes(array[2:], array[1]))
    groups, sizes = array[1:1 + count], array[1 + count:1 + 2 * count]
    return Records(np.repeat(groups, sizes), _codes(array[1 + 2 * count:], sizes.sum()))


def _codes(pairs, count):
    return np.ascontiguousarray(pairs).view("uint32")[:int(count)].astype("int64")


def _joined(all_records):
    codes = np.concatenate([one.codes for one in all_records])
    if all_records[0].groups is None:
        return Records(None, codes)
    return Records(np.concatenate([one.groups for one in all_records]), codes)
