"""Conditions of rules: each takes (case, record of Fluid 1.8.5, record of ours)."""

import numpy as np
from compare import outputs

from engine import ARRAY, ROWS, TENSOR, packed, unpacked


def value(case, slot, at=0):
    """The numbers of an input; None where it is not given."""
    names = case["ins"].get(slot, [])
    return case["vars"][names[at]]["value"] if at < len(names) else None


def inputs(case):
    return [case["vars"][n] for names in case["ins"].values() for n in names if case["vars"][n]["value"] is not None]


def empty(case, theirs, ours):
    """An input, or a result, without elements."""
    written = [v for record in (theirs, ours) for v in record["outs"].values()]
    results = [v for v in written if v is not None and v[0] != ARRAY]
    return any(v["value"].size == 0 for v in inputs(case)) or any(0 in v[1][1] for v in results)


def unknown(case, theirs, ours):
    return any(v.get("unknown") for v in case["vars"].values())


def rows(case, theirs, ours):
    return any(v["kind"] == ROWS for v in inputs(case))


def wide_rows(case, theirs, ours):
    return any(v["kind"] == ROWS and v["value"].ndim != 2 for v in inputs(case))


def not_a_number(slot):
    def holds(case, theirs, ours):
        v = value(case, slot)
        return v is not None and v.dtype.kind == "f" and bool(np.isnan(v).any())

    return holds


def has(test):
    """``test`` of the attributes."""
    return lambda case, theirs, ours: bool(test(case["attrs"]))


def both(*conditions):
    return lambda *a: all(c(*a) for c in conditions)


def either(*conditions):
    return lambda *a: any(c(*a) for c in conditions)


def without(slot):
    return lambda case, theirs, ours: not case["ins"].get(slot)


def given(slot):
    return lambda case, theirs, ours: bool(case["ins"].get(slot))


def below(slot, least):
    """A number of an input is below ``least``."""
    return lambda case, theirs, ours: value(case, slot) is not None and bool((value(case, slot) < least).any())


def unordered(case, theirs, ours):
    """Sparse rows whose ids do not rise."""
    return any(v["kind"] == ROWS and v["rows"] != sorted(v["rows"]) for v in inputs(case))


def x_is_narrower(case, theirs, ours):
    """X has fewer axes than Y, or an extent that Y has more of, or Y does not fit at the axis."""
    x, y = value(case, "X"), value(case, "Y")
    if x is None or y is None:
        return False
    if x.ndim < y.ndim:
        return True
    axis = case["attrs"].get("axis", -1)
    at = x.ndim - y.ndim if axis == -1 else axis
    here = x.shape[at : at + y.ndim]
    return len(here) < y.ndim or any(m != n and n != 1 for m, n in zip(here, y.shape))


def y_ends_beyond_x(case, theirs, ours):
    """The axes of Y, from the axis on, are more than X has."""
    x, y, axis = value(case, "X"), value(case, "Y"), case["attrs"].get("axis", -1)
    return axis > 0 and x is not None and y is not None and axis + y.ndim > x.ndim


def _stripped(record, strip):
    return dict(record, outs={n: strip(v) for n, v in record["outs"].items()})


def _without_sequences(v):
    return (TENSOR, v[1], []) if v is not None and v[0] == TENSOR else v


def _flat(v):
    if v is None or v[0] != TENSOR:
        return v
    return TENSOR, packed(unpacked(v[1]).ravel()), []


def only(strip):
    """The outputs are equal except for the parts that ``strip`` takes away."""

    def equal(case, theirs, ours):
        a, b = _stripped(theirs, strip)["outs"], _stripped(ours, strip)["outs"]
        return bool(a) and outputs(a, b, list(a)) is None

    return equal


only_sequences = only(_without_sequences)
only_shape = only(_flat)


def ends_early(case, theirs, ours):
    """Sequences of the original that do not end at the last row."""
    values = list(theirs["outs"].values()) + list((theirs["grads"] or {}).values())
    lods = [(v[2][-1][-1], (list(v[1][1]) or [0])[0]) for v in values if v is not None and v[0] == TENSOR and v[2]]
    return any(end != count for end, count in lods)


def ties(slot, places, axis=None):
    """Both pick equal numbers of an input."""

    def equal(case, theirs, ours):
        x, at = value(case, slot), axis(case) if axis else -1
        name = case["outs"][places][0]
        a, b = (unpacked(r["outs"][name][1]).astype("int64") for r in (theirs, ours))
        return a.shape == b.shape and np.array_equal(np.take_along_axis(x, a, at), np.take_along_axis(x, b, at))

    return equal
