"""The recorded sample: how cases and what the original made of them are packed, and how a run is compared with that."""

import glob
import json
import lzma
import os

import numpy as np
from compare import SMALL, TOLERANCE, merged

from engine import ARRAY, ROWS, TENSOR, packed, unpacked

#: A file for each family of operators.
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "data", "differential")
#: Results with more numbers are described by this many sums.
SUMS = 4


def read(families=None):
    """Operator -> [[case, what the original made of it], ...] of these families, None: of all."""
    record = {}
    for path in sorted(glob.glob(os.path.join(FOLDER, "*.json.xz"))):
        if families is None or os.path.basename(path).split(".")[0] in families:
            with lzma.open(path, "rt") as f:
                record.update(json.load(f))
    return record


def write(family, record):
    """Writes the file of a family, whole or not at all."""
    os.makedirs(FOLDER, exist_ok=True)
    path = os.path.join(FOLDER, family + ".json.xz")
    lines = ["%s: %s" % (json.dumps(op), json.dumps(record[op], separators=(",", ":"))) for op in sorted(record)]
    with lzma.open(path + ".new", "wt", preset=9) as f:
        f.write("{\n%s\n}\n" % ",\n".join(lines))
    os.replace(path + ".new", path)


def short(data):
    """A sent case as JSON: numbers in sixty-fourths."""
    kept = ("op", "ins", "outs", "attrs", "grad", "wanted", "before", "after", "blocks", "read")
    made = {k: data[k] for k in kept if k in data}
    made["vars"] = {}
    for name, v in data["vars"].items():
        v = dict(v)
        if v["value"] is not None:
            array = unpacked(v["value"])
            numbers = np.round(array.astype("float64") * (64 if array.dtype.kind == "f" else 1)).astype("int64")
            v["value"] = [v["value"][0], list(v["value"][1]), numbers.ravel().tolist()]
        made["vars"][name] = v
    return made


def long(case):
    """The sent case of a short one."""
    made = dict(case, vars={})
    for name, v in case["vars"].items():
        v = dict(v)
        if v["value"] is not None:
            dtype, shape, numbers = v["value"]
            array = np.array(numbers, "float64" if dtype.startswith("float") else "int64").reshape(shape)
            v["value"] = packed((array / 64 if dtype.startswith("float") else array).astype(dtype))
        made["vars"][name] = v
    return made


def _signs(n):
    return np.random.RandomState(n % 2**31).choice([-1.0, 1.0], (SUMS, n))


def _rms(numbers):
    """Of numbers whose squares may be too large."""
    largest = np.max(np.abs(numbers), initial=0.0)
    return largest * np.sqrt(np.mean((numbers / largest) ** 2)) if largest else 0.0


def described(value):
    """A value of a record: its kind, dtype, shape, sequences or rows, and numbers, or sums of them."""
    if value is None:
        return None
    if value[0] == ARRAY:
        return [ARRAY, [described((TENSOR, array, lod)) for array, lod in value[1:]]]
    if value[0] == ROWS:
        value = merged(value)
    array = unpacked(value[1])
    numbers = array.astype("float64").ravel()
    finite = np.isfinite(numbers)
    kept = np.where(finite, numbers, 0)
    sums = kept if kept.size <= SUMS else _signs(kept.size) @ kept
    more = list(value[2:]) if value[0] == ROWS else [[list(level) for level in value[2]]]
    return [
        value[0],
        value[1][0],
        list(value[1][1]),
        more,
        [float("%.9g" % s) for s in sums],
        float("%.4g" % _rms(kept)),
        int(np.sum(~finite)),
    ]


def expected(record, names):
    """The result of the original for a case: where it stopped, or outputs and gradients."""
    if record["stage"] in ("build", "run"):
        return "refused"
    grads = record["grads"] or {}
    return {
        "stage": record["stage"],
        "outs": {n: described(record["outs"].get(n)) for n in names},
        "grads": {n: described(grads[n]) for n in sorted(grads)},
    }


def unlike(recorded, got, random):
    """None, or what differs between two descriptions."""
    if recorded is None:
        return None
    if got is None:
        return None if recorded[0] != ARRAY and not np.prod(recorded[2]) else "is not written"
    if recorded[0] == ARRAY:
        pairs = zip(recorded[1], got[1]) if got[0] == ARRAY and len(recorded[1]) == len(got[1]) else [([0], [1])]
        return next((d for d in (unlike(a, b, random) if len(a) > 1 else "another array" for a, b in pairs) if d), None)
    if recorded[:4] != got[:4]:
        return "%s, not %s" % (got[:4], recorded[:4])
    if random:
        return None
    n = max(1, int(np.prod(recorded[2])))
    share = TOLERANCE.get(recorded[1], 0) * max(recorded[5], SMALL) * (1 if n <= SUMS else 3 * np.sqrt(n))
    off = [abs(a - b) > max(share, TOLERANCE.get(recorded[1], 0) * abs(a)) for a, b in zip(recorded[4], got[4])]
    return "numbers %s, not %s" % (got[4], recorded[4]) if any(off) or recorded[6] != got[6] else None
