"""Small steps from a case to its neighbours: each takes (random numbers, case) and says what it did, None: nothing.

A step keeps together what belongs together - equal extents, lengths of sequences and rows, dtypes of inputs and outputs -
so that most neighbours of a case that is accepted are accepted.
"""
import numpy as np
from engine import ROWS, TENSOR
from vary_attributes import attribute

from anabranch import _core

EXTENTS = (0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9, 16, 17)
DTYPES = ("float32", "float64", "float32", "float64", "int32", "int64", "int32", "int64", "bool", "uint8", "int8", "int16",
          "float16")
LARGEST = 20000
#: Slots that parameters and numbers take, whose extents programs know.
PARAMETERS = {
    "Alpha", "Anchors", "Beta1Pow", "Beta2Pow", "Bias", "CenterUpdateRate", "Filter", "Grad", "LearningRate", "Mean", "Moment",
    "Moment1", "Moment2", "Param", "ProjWeight", "Scale", "Transition", "Variance", "Velocity", "W", "Weight", "WeightH",
    "WeightX", "BatchSize", "BatchSum", "BatchSquareSum", "Offset", "LSTMWeight", "LSTMBias", "AttentionWeight",
}


def given(case):
    """Names of inputs that have values."""
    names = [n for slot in case["ins"].values() for n in slot]
    return sorted({n for n in names if case["vars"].get(n, {}).get("value") is not None})


def _some(r, case):
    names = given(case)
    return r.choice(names) if names else None


def resized(r, a, axis, n):
    """``a`` with ``n`` places on an axis: its own numbers again, in another order."""
    old = a.shape[axis]
    if old == 0:
        return np.zeros(a.shape[:axis] + (n,) + a.shape[axis + 1:], a.dtype)
    taken = np.take(a, [k % old for k in range(n)], axis)
    return _fresh(r, taken) if n > old else taken


def _fresh(r, a):
    """Other numbers of the same kind: whole ones stay whole ones of the range, others stay in the range."""
    draw = np.random.RandomState(r.randrange(2**31))
    if not a.size or not np.all(np.isfinite(a.astype("float64"))):
        return a
    if a.dtype.kind != "f" or np.all(a == np.round(a)):
        return draw.choice(a.ravel(), a.shape).astype(a.dtype)
    return draw.uniform(a.min(), a.max(), a.shape).astype(a.dtype)


def _fit_rows(r, v, n):
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


def extent(r, case):
    """An extent, and the same one everywhere else."""
    name = _some(r, case)
    if name is None or not case["vars"][name]["value"].ndim:
        return None
    a = case["vars"][name]["value"]
    axis = r.randrange(a.ndim)
    old, new = a.shape[axis], r.choice(EXTENTS)
    where = r.choice(["everywhere"] * 6 + ["axis"] * 2 + ["here"])
    for other in given(case) if where != "here" else [name]:
        v = case["vars"][other]
        for k in range(v["value"].ndim):
            if v["value"].shape[k] != old or where != "everywhere" and k != axis:
                continue
            if v["value"].size // max(old, 1) * new > LARGEST:
                return None
            v["value"] = resized(r, v["value"], k, new)
            if k == 0:
                _fit_rows(r, v, new)
    changed = []
    if where == "everywhere" and r.random() < 0.6:
        for key, at in case["attrs"].items():
            if isinstance(at, list) and old in at and all(isinstance(n, int) for n in at) and old > 1:
                case["attrs"][key] = [new if n == old else n for n in at]
                changed.append(key)
    return "extent %d is %d (%s of %s axis %d) %s" % (old, new, where, name, axis, " ".join(changed))


def numbers(r, case):
    name = _some(r, case)
    if name is None:
        return None
    v = case["vars"][name]
    v["value"] = _fresh(r, v["value"])
    return "%s has other numbers" % name


def special(r, case):
    """Zeros, ties, large numbers, another sign, one number that is not finite."""
    name = _some(r, case)
    if name is None or not case["vars"][name]["value"].size:
        return None
    v = case["vars"][name]
    a, how = v["value"], r.choice(["zero", "ties", "large", "minus", "plus one"])
    if a.dtype.kind == "b":
        return None
    v["value"] = {"zero": lambda: a * 0, "ties": lambda: np.round(a), "large": lambda: a * 10,
                  "minus": lambda: a * -1 if a.dtype.kind == "f" else a[::-1], "plus one": lambda: a + 1}[how]().astype(a.dtype)
    return "%s: %s" % (name, how)


def dtype(r, case):
    """The dtype of one input, or of all inputs that have it and of the outputs."""
    name = _some(r, case)
    if name is None:
        return None
    old, new = str(case["vars"][name]["value"].dtype), r.choice(DTYPES)
    if old == new:
        return None
    everywhere = r.random() < 0.75
    for other, v in case["vars"].items():
        if v["dtype"] == old and (everywhere or other == name):
            v["dtype"] = new
            if v["value"] is not None:
                with np.errstate(all="ignore"):
                    v["value"] = v["value"].astype(new)
    if new.startswith("float") and everywhere and not old.startswith("float") and case["wanted"]:
        case["wanted"] = sorted(set(case["wanted"]) | {n for n in given(case) if case["vars"][n]["dtype"] == new})
    case["wanted"] = [n for n in case["wanted"] if case["vars"][n]["dtype"].startswith("float")]
    return "%s as %s%s" % (old, new, "" if everywhere else " in " + name)


def sequences(r, case):
    """An input gets sequences, others, nested ones, or loses them."""
    name = _some(r, case)
    if name is None or case["vars"][name]["kind"] != TENSOR or not case["vars"][name]["value"].ndim:
        return None
    v = case["vars"][name]
    had, n = len(v.get("lod") or []), len(v["value"])
    levels = had if had and r.random() < 0.6 else r.choice([0, 1, 1, 2, 3])
    lod, count = [], n
    for _ in range(levels):
        parts = len(v["lod"][-1]) if had and r.random() < 0.5 and not lod else r.randint(1, 4)
        lod.insert(0, cut(r, count, parts))
        count = parts
    for other in given(case) if r.random() < 0.5 else [name]:
        w = case["vars"][other]
        if w["kind"] == TENSOR and w["value"].ndim and len(w["value"]) == n and (other == name or w.get("lod")):
            w["lod"] = lod
    return "%s has sequences %s" % (name, lod)


def last_axis(r, case):
    """An input with one axis of extent 1 more, or without it."""
    name = _some(r, case)
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
    """One more axis, or one axis fewer, in every input of this rank."""
    name = _some(r, case)
    if name is None:
        return None
    nd, at = case["vars"][name]["value"].ndim, r.choice([0, -1, None])
    at = r.randint(0, nd) if at is None else at
    n, where = r.choice([1, 1, 2, 3]), given(case) if r.random() < 0.75 else [name]
    fewer = nd > 1 and r.random() < 0.4
    for other in where:
        v = case["vars"][other]
        if v["value"].ndim != nd or v["value"].size * n > LARGEST:
            continue
        if fewer:
            v["value"] = np.take(v["value"], 0, min(at, nd - 1)) if v["value"].shape[min(at, nd - 1)] else v["value"]
        else:
            v["value"] = np.repeat(np.expand_dims(v["value"], at), n, at)
        _fit_rows(r, v, len(v["value"]) if v["value"].ndim else 0)
    return "rank %d has an axis %s at %d (%s)" % (nd, "fewer" if fewer else "more", at, " ".join(where))


def narrow(r, case):
    """Extents of one input are 1, or its first or last axes are left out: what broadcasting allows."""
    name = _some(r, case)
    if name is None or case["vars"][name]["value"].ndim < 1:
        return None
    v = case["vars"][name]
    a, axis = v["value"], r.randrange(v["value"].ndim)
    how = r.choice(["one", "first", "last"])
    if not a.size or how != "one" and a.ndim < 2:
        return None
    v["value"] = np.ascontiguousarray({"one": lambda: np.take(a, [0], axis), "first": lambda: a[0], "last": lambda: a[..., 0]}[how]())
    _fit_rows(r, v, len(v["value"]))
    if "axis" in case["attrs"] and isinstance(case["attrs"]["axis"], int) and r.random() < 0.5:
        case["attrs"]["axis"] = r.choice([-1, 0, 1])
    return "%s: %s %d" % (name, how, axis)


def optional(r, case):
    """Without an optional input, or with what is in another input in its place."""
    slots = [s["name"] for s in _core.op_info(case["op"])["inputs"] if s["optional"] and case["ins"].get(s["name"])]
    if not slots:
        return None
    slot = r.choice(slots)
    for n in case["ins"].pop(slot):
        case["wanted"] = [w for w in case["wanted"] if w != n]
    return "without " + slot


def more_or_fewer(r, case):
    """One tensor more, or one fewer, in a list."""
    lists = [s["name"] for s in _core.op_info(case["op"])["inputs"] if s["list"] and case["ins"].get(s["name"])]
    if not lists:
        return None
    slot = r.choice(lists)
    names = case["ins"][slot]
    if len(names) > 1 and r.random() < 0.5:
        gone = names[-1]
        case["ins"][slot] = names[:-1]
        case["wanted"] = [w for w in case["wanted"] if w != gone]
        return "%s without %s" % (slot, gone)
    v = dict(case["vars"][names[-1]])
    if v["value"] is None:
        return None
    v["value"], name = _fresh(r, v["value"]), names[-1] + "x"
    case["vars"][name] = v
    case["ins"][slot] = names + [name]
    if names[-1] in case["wanted"]:
        case["wanted"] = case["wanted"] + [name]
    return "%s with %s" % (slot, name)


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


def as_rows(r, case):
    """Sparse rows in the place of a tensor, where the slot takes both."""
    slots = [s["name"] for s in _core.op_info(case["op"])["inputs"] if "rows" in s["holds"] and case["ins"].get(s["name"])]
    if not slots:
        return None
    v = case["vars"][r.choice(case["ins"][r.choice(slots)])]
    if v["value"] is None or not v["value"].ndim:
        return None
    if v["kind"] == ROWS:
        _fit_rows(r, v, len(v["rows"]))
        return "other rows"
    height, n = len(v["value"]), r.choice([0, 1, 2, 3, len(v["value"])])
    v.update(kind=ROWS, height=height, value=resized(r, v["value"], 0, n))
    v.pop("lod", None)
    _fit_rows(r, v, n)
    case["wanted"] = []
    return "rows %s of %d" % (v["rows"], height)


STEPS = ([extent] * 6 + [numbers] * 2 + [special] * 2 + [dtype] * 3 + [sequences] * 2 + [last_axis] * 2 + [rank] * 2 + [narrow] * 2
         + [optional] * 2 + [more_or_fewer, more_or_fewer, unknown, as_rows] + [attribute] * 7)


def vary(r, case):
    """The case after some steps, each noted in ``changes``."""
    wanted = r.choice([1, 1, 1, 1, 2, 2, 2, 3])
    for _ in range(12):
        if len(case["changes"]) >= wanted:
            break
        said = r.choice(STEPS)(r, case)
        if said:
            case["changes"].append(said)
    return case
