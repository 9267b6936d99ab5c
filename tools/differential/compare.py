"""Compares what two engines made of a case: agree(expected, got) gives None, or what differs first."""

import numpy as np

from anabranch import _core
from engine import ARRAY, ROWS, TENSOR, packed, unpacked

#: Of the larger of |expected| and its root mean square. The original keeps attributes and constants as float32, so that
#: its float64 results may be off by that much.
TOLERANCE = {"float32": 1e-5, "float64": 1e-6, "float16": 2e-3}

#: Sums that cancel leave the rounding of what they were made of.
SMALL = 1e-4


def compared(case):
    """Outputs whose values count: not those that only the gradient reads."""
    inner = {s["name"] for s in _core.op_info(case["op"])["outputs"] if s["intermediate"] or s["named_only"]}
    outs = [n for slot, names in case["outs"].items() if slot not in inner for n in names]
    return outs + list(case.get("read", ()))


def numbers(expected, got):
    if expected[0] != got[0]:
        return "dtype %s, not %s" % (got[0], expected[0])
    if tuple(expected[1]) != tuple(got[1]):
        return "shape %s, not %s" % (got[1], expected[1])
    a, b = unpacked(expected), unpacked(got)
    if a.dtype.kind != "f":
        return None if np.array_equal(a, b) else _first(a, b, a != b)
    wide, other = a.astype("float64"), b.astype("float64")
    finite = np.isfinite(wide)
    with np.errstate(all="ignore"):
        rms = np.sqrt(np.mean(np.square(wide[finite]))) if finite.any() else 0.0
        off = np.abs(wide - other) > TOLERANCE[expected[0]] * np.maximum(np.maximum(np.abs(wide), rms), SMALL)
        off = np.where(finite, off | ~np.isfinite(other), ~((wide == other) | (np.isnan(wide) & np.isnan(other))))
    return _first(a, b, off) if off.any() else None


def _first(a, b, off):
    at = tuple(int(i) for i in np.argwhere(off)[0])
    return "%r, not %r, at %s (%d of %d)" % (b[at].item(), a[at].item(), list(at), off.sum(), off.size)


def merged(rows):
    """Sparse rows in order, each id once: rows of one id count together."""
    array, ids = unpacked(rows[1]), np.array(rows[2], "int64")
    if not array.ndim or len(array) != len(ids):
        return rows
    order = np.unique(ids)
    total = np.zeros((len(order),) + array.shape[1:], array.dtype)
    np.add.at(total, np.searchsorted(order, ids), array)
    return ROWS, packed(total), order.tolist(), rows[3]


def value(expected, got):
    """``expected``, ``got``: records of a variable, see OneRun.value."""
    if expected is None:
        return None  # a value that the original leaves unwritten cannot be read there
    if got is None:
        return "is not written" if expected[0] == ARRAY or np.prod(expected[1][1]) else None
    if expected[0] != got[0]:
        return "is a %s, not a %s" % (got[0], expected[0])
    if expected[0] == ARRAY:
        return _arrays(expected[1:], got[1:])
    if expected[0] == ROWS:
        expected, got = merged(expected), merged(got)
        if expected[2:] != got[2:]:
            return "rows %s of %s, not %s of %s" % (got[2], got[3], expected[2], expected[3])
    differs = numbers(expected[1], got[1])
    if differs:
        return differs
    if expected[0] == TENSOR and expected[2] != got[2]:
        return "sequences %s, not %s" % (got[2], expected[2])
    return None


def _arrays(expected, got):
    if len(expected) != len(got):
        return "%d tensors, not %d" % (len(got), len(expected))
    for a, b in zip(expected, got):
        differs = numbers(a[0], b[0]) or (None if a[1] == b[1] else "sequences %s, not %s" % (b[1], a[1]))
        if differs:
            return differs
    return None


def shape_only(record):
    """A value with its numbers taken away, for operators that draw them."""
    if record is None or record[0] == ARRAY:
        return record
    dtype, shape, _ = record[1]
    zeros = np.zeros(shape, dtype)
    return (record[0], (dtype, shape, zeros.tobytes())) + tuple(record[2:])


def outputs(expected, got, names, random=False):
    """The first of ``names`` that differs, in two dicts of values."""
    for name in names:
        a, b = expected.get(name), got.get(name)
        differs = value(shape_only(a), shape_only(b)) if random else value(a, b)
        if differs:
            return "%s: %s" % (name, differs)
    return None
