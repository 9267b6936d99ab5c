"""Small steps of numbers, dtypes, sequences and slots: each takes (random numbers, case), see vary.py."""

import numpy as np
from neighbours import cut, fit_rows, fresh, given, resized, some

from anabranch import _core
from engine import ROWS, TENSOR

DTYPES = (
    "float32",
    "float64",
    "float32",
    "float64",
    "int32",
    "int64",
    "int32",
    "int64",
    "bool",
    "uint8",
    "int8",
    "int16",
    "float16",
)


def numbers(r, case):
    name = some(r, case)
    if name is None:
        return None
    v = case["vars"][name]
    v["value"] = fresh(r, v["value"])
    return "%s has other numbers" % name


def special(r, case):
    """Zeros, ties, large numbers, another sign, one number that is not finite."""
    name = some(r, case)
    if name is None or not case["vars"][name]["value"].size:
        return None
    v = case["vars"][name]
    a, how = v["value"], r.choice(["zero", "ties", "large", "minus", "plus one"])
    if a.dtype.kind == "b":
        return None
    changed = {
        "zero": lambda: a * 0,
        "ties": lambda: np.round(a),
        "large": lambda: a * 10,
        "minus": lambda: a * -1 if a.dtype.kind == "f" else a[::-1],
        "plus one": lambda: a + 1,
    }
    with np.errstate(all="ignore"):
        v["value"] = changed[how]().astype(a.dtype)
    return "%s: %s" % (name, how)


def dtype(r, case):
    """The dtype of one input, or of all inputs that have it and of the outputs."""
    return _dtype(r, case, r.random() < 0.75)


def dtype_everywhere(r, case):
    return _dtype(r, case, True)


def _dtype(r, case, everywhere):
    name = some(r, case)
    if name is None:
        return None
    old, new = str(case["vars"][name]["value"].dtype), r.choice(DTYPES)
    if old == new:
        return None
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
    name = some(r, case)
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


def optional(r, case):
    """Without an optional input, or with the value of another input instead."""
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
    v["value"], name = fresh(r, v["value"]), names[-1] + "x"
    case["vars"][name] = v
    case["ins"][slot] = names + [name]
    if names[-1] in case["wanted"]:
        case["wanted"] = case["wanted"] + [name]
    return "%s with %s" % (slot, name)


def as_rows(r, case):
    """Sparse rows instead of a tensor, where the slot takes both."""
    inputs = _core.op_info(case["op"])["inputs"]
    slots = [s["name"] for s in inputs if "rows" in s["holds"] and case["ins"].get(s["name"])]
    if not slots:
        return None
    v = case["vars"][r.choice(case["ins"][r.choice(slots)])]
    if v["value"] is None or not v["value"].ndim:
        return None
    if v["kind"] == ROWS:
        fit_rows(r, v, len(v["rows"]))
        return "other rows"
    height, n = len(v["value"]), r.choice([0, 1, 2, 3, len(v["value"])])
    v.update(kind=ROWS, height=height, value=resized(r, v["value"], 0, n))
    v.pop("lod", None)
    fit_rows(r, v, n)
    case["wanted"] = []
    return "rows %s of %d" % (v["rows"], height)
