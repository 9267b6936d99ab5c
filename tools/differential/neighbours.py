"""Shared by steps from a case to its neighbour: inputs with values, other numbers, lengths of sequences that fit."""

import numpy as np

from engine import ROWS


def given(case):
    """Names of inputs that have values."""
    slots = [case["ins"]] + [op[1] for op in case.get("before", ())]
    names = [n for ins in slots for slot in ins.values() for n in slot]
    return sorted({n for n in names if case["vars"].get(n, {}).get("value") is not None})


def some(r, case):
    names = given(case)
    return r.choice(names) if names else None


def resized(r, a, axis, n):
    """``a`` with ``n`` places on an axis: its own numbers again, in a different order."""
    old = a.shape[axis]
    if old == 0:
        return np.zeros(a.shape[:axis] + (n,) + a.shape[axis + 1 :], a.dtype)
    taken = np.take(a, [k % old for k in range(n)], axis)
    return fresh(r, taken) if n > old else taken


def fresh(r, a):
    """Other numbers of the same kind: whole ones stay whole ones of the range, others stay in the range."""
    draw = np.random.RandomState(r.randrange(2**31))
    if not a.size or not np.all(np.isfinite(a.astype("float64"))):
        return a
    if a.dtype.kind != "f" or np.all(a == np.round(a)):
        return draw.choice(a.ravel(), a.shape).astype(a.dtype)
    return draw.uniform(a.min(), a.max(), a.shape).astype(a.dtype)


def fit_rows(r, v, n):
    """Sequences or row numbers for ``n`` rows."""
    if v["kind"] == ROWS:
        v["rows"] = [r.randrange(max(v["height"], 1)) for _ in range(n)]
    elif v.get("lod"):
        v["lod"] = v["lod"][:-1] + [cut(r, n, len(v["lod"][-1]))]


def cut(r, n, parts):
    """``parts`` lengths, some perhaps 0, that add up to n."""
    if not parts:
        return []
    ends = sorted(r.randint(0, n) for _ in range(parts - 1))
    return [b - a for a, b in zip([0] + ends, ends + [n])]


def filled(lengths):
    """Each length of 0 gets a row of the longest sequence, so that all rows stay; whether there was one."""
    changed = False
    while 0 in lengths and max(lengths) > 1:
        lengths[lengths.index(max(lengths))] -= 1
        lengths[lengths.index(0)] += 1
        changed = True
    return changed


def spread(a):
    """The numbers in the same order, but no two equal and none NaN, where their dtype has enough."""
    order = np.argsort(a, axis=None, kind="stable")
    if a.dtype.kind != "f":
        made = np.arange(a.size) - a.size // 2
    else:
        made = np.nan_to_num(a.ravel()[order].astype("float64"), nan=0.0, posinf=1e3, neginf=-1e3)
        made = np.sort(made) + np.arange(a.size) / 64
    spread_out = np.empty(a.size, a.dtype)
    spread_out[order] = made.astype(a.dtype)
    return spread_out.reshape(a.shape)


def ascending(boxes):
    """Boxes [n, 4] whose second corner lies at least 1 beyond the first one."""
    low, high = np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])
    return np.concatenate([low, np.maximum(high, low + 1)], 1).astype(boxes.dtype)
