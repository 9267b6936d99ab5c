"""Small steps of shapes: each takes (random numbers, case) and says what it did, None: nothing. See vary.py."""

import numpy as np
from neighbours import fit_rows, given, resized, some

from anabranch import _core

EXTENTS = (0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9, 16, 17)
LARGEST = 20000
#: Slots that parameters and numbers take, whose extents programs know.
PARAMETERS = {
    "Alpha",
    "Anchors",
    "Beta1Pow",
    "Beta2Pow",
    "Bias",
    "CenterUpdateRate",
    "Filter",
    "Grad",
    "LearningRate",
    "Mean",
    "Moment",
    "Moment1",
    "Moment2",
    "Param",
    "ProjWeight",
    "Scale",
    "Transition",
    "Variance",
    "Velocity",
    "W",
    "Weight",
    "WeightH",
    "WeightX",
    "BatchSize",
    "BatchSum",
    "BatchSquareSum",
    "Offset",
    "LSTMWeight",
    "LSTMBias",
    "AttentionWeight",
}


def extent(r, case):
    """An extent, and the same one elsewhere, or not."""
    return _extent(r, case, r.choice(["everywhere"] * 6 + ["axis"] * 2 + ["here"]))


def extent_everywhere(r, case):
    """An extent above 1 wherever it occurs. One of 1 is mostly that of a column, or of a tensor of one number, and says
    nothing about the others. Boxes keep their four numbers, and images their height, width and scale.
    """
    return _extent(r, case, "everywhere", lambda a, axis: a.shape[axis] > 1 and not _of_boxes(case, a, axis))


def _of_boxes(case, a, axis):
    return a.shape[axis] in (3, 4) and axis == a.ndim - 1 and _core.op_info(case["op"])["family"] == "detection"


def _extent(r, case, where, test=None):
    name = some(r, case)
    if name is None or not case["vars"][name]["value"].ndim:
        return None
    a = case["vars"][name]["value"]
    axis = r.randrange(a.ndim)
    if test and not test(a, axis):
        return None
    old, new = a.shape[axis], r.choice(EXTENTS)
    for other in given(case) if where != "here" else [name]:
        v = case["vars"][other]
        for k in range(v["value"].ndim):
            if v["value"].shape[k] != old or where != "everywhere" and k != axis or test and not test(v["value"], k):
                continue
            if v["value"].size // max(old, 1) * new > LARGEST:
                return None
            v["value"] = resized(r, v["value"], k, new)
            if k == 0:
                fit_rows(r, v, new)
    changed = []
    if where == "everywhere" and r.random() < 0.6:
        for key, at in case["attrs"].items():
            if isinstance(at, list) and old in at and all(isinstance(n, int) for n in at) and old > 1:
                case["attrs"][key] = [new if n == old else n for n in at]
                changed.append(key)
    return "extent %d is %d (%s of %s axis %d) %s" % (old, new, where, name, axis, " ".join(changed))


def last_axis(r, case):
    """An input with one axis of extent 1 more, or without it."""
    name = some(r, case)
    if name is None:
        return None
    v = case["vars"][name]
    a = v["value"]
    if a.ndim > 1 and a.shape[-1] == 1 and r.random() < 0.8:
        v["value"] = a[..., 0]
    else:
        v["value"] = a[..., None]
    return "%s has shape %s" % (name, list(v["value"].shape))


def rank(r, case):
    """One more axis, or one axis fewer, in every input of this rank, or in one."""
    return _rank(r, case, r.random() < 0.75)


def rank_everywhere(r, case):
    return _rank(r, case, True)


def _rank(r, case, everywhere):
    name = some(r, case)
    if name is None:
        return None
    nd, at = case["vars"][name]["value"].ndim, r.choice([0, -1, None])
    at = r.randint(0, nd) if at is None else at
    n, where = r.choice([1, 1, 2, 3]), given(case) if everywhere else [name]
    fewer = nd > 1 and r.random() < 0.4
    for other in where:
        v = case["vars"][other]
        if v["value"].ndim != nd or v["value"].size * n > LARGEST:
            continue
        if fewer:
            v["value"] = np.take(v["value"], 0, min(at, nd - 1)) if v["value"].shape[min(at, nd - 1)] else v["value"]
        else:
            v["value"] = np.repeat(np.expand_dims(v["value"], at), n, at)
        fit_rows(r, v, len(v["value"]) if v["value"].ndim else 0)
    return "rank %d has an axis %s at %d (%s)" % (nd, "fewer" if fewer else "more", at, " ".join(where))


def narrow(r, case):
    """Extents of one input are 1, or its first or last axes are left out: what broadcasting allows."""
    return _narrow(r, case, some(r, case))


def narrow_second(r, case):
    """Narrows Y, where an operator has X and Y of one kind."""
    names = case["ins"].get("Y", []) if len(case["ins"]) == 2 and "X" in case["ins"] else []
    return _narrow(r, case, names[0] if len(names) == 1 and names[0] in given(case) else None)


def _narrow(r, case, name):
    if name is None or case["vars"][name]["value"].ndim < 1:
        return None
    v = case["vars"][name]
    a, axis = v["value"], r.randrange(v["value"].ndim)
    how = r.choice(["one", "first", "last"])
    if not a.size or how != "one" and a.ndim < 2:
        return None
    ways = {"one": lambda: np.take(a, [0], axis), "first": lambda: a[0], "last": lambda: a[..., 0]}
    v["value"] = np.ascontiguousarray(ways[how]())
    fit_rows(r, v, len(v["value"]))
    if "axis" in case["attrs"] and isinstance(case["attrs"]["axis"], int) and r.random() < 0.5:
        case["attrs"]["axis"] = r.choice([-1, 0, 1])
    return "%s: %s %d" % (name, how, axis)


def unknown(r, case):
    """The first extent of data - of all inputs that have as many rows as the first one - is not known while the program
    is built; parameters are known.
    """
    names = [n for slot, names in case["ins"].items() if slot not in PARAMETERS for n in names if n in given(case)]
    rows = [len(case["vars"][n]["value"]) for n in names if case["vars"][n]["value"].ndim]
    if not rows:
        return None
    for n in names:
        if case["vars"][n]["value"].ndim and len(case["vars"][n]["value"]) == rows[0]:
            case["vars"][n]["unknown"] = True
    return "unknown rows"
