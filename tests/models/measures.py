"""Records of arrays, and the deviations that they allow.

Small arrays are kept as they are, of larger ones the norm and three sums with random signs: the sum of a deviation of
norm d is about d. Values may differ by rtol + 3 * moved of the root mean square (small arrays) or of the norm, where
`moved` is how far Fluid 1.8.5 deviates from itself when its input is disturbed by 1e-6, the largest up to that step.
"""
import re

import numpy as np
from harness import RANDOM, SMALL, signs

DISTURBANCES = (1, 2, 3)
SUMS = 3
ATOL = 1e-7


def kept(key, row):
    """The record of an array: shape, kind, sequence lengths, values."""
    array, lod = row
    flat = array.astype("float64").reshape(-1)
    assert np.isfinite(flat).all(), "%s is not finite" % key
    values = flat
    if flat.size > SMALL:
        values = [np.linalg.norm(flat)] + [float((flat * signs(flat.shape, key, i)).sum()) for i in range(SUMS)]
    record = {"shape": list(array.shape), "kind": array.dtype.kind, "values": [float("%.9g" % v) for v in values]}
    if lod:
        record["lod"] = lod
    return record


def scale_of(record):
    """Deviations are relative to this: the root mean square of a small array, the norm of a large one."""
    values, elements = np.array(record["values"]), int(np.prod(record["shape"]))
    if elements > SMALL:
        return abs(values[0])
    return float(np.sqrt((values ** 2).mean())) if elements else 0.0


def deviation(record, got):
    """The largest difference of two records' values, relative to the scale of the first, or what does not fit."""
    for field in ("shape", "kind", "lod"):
        if record.get(field) != got.get(field):
            return "%s is %s instead of %s" % (field, got.get(field), record.get(field))
    if not record["values"]:
        return 0.0
    floor = ATOL * (1 if len(record["values"]) == int(np.prod(record["shape"])) else np.sqrt(np.prod(record["shape"])))
    worst = np.abs(np.array(record["values"]) - np.array(got["values"])).max()
    return float(worst / max(scale_of(record), floor, record.get("least", 0)))


def describe(trained):
    """Of each parameter: name, shape, mean and standard deviation after startup, and whether that is not random."""
    rows = []
    for name, op in trained.initial():
        value = trained.get(name).astype("float64")
        rows.append({"name": name, "shape": list(value.shape), "mean": float("%.7g" % value.mean()),
                     "std": float("%.7g" % value.std()), "fixed": op not in RANDOM})
    return rows


def different_parameters(recorded, ours):
    """Complaints about the names, shapes and distributions of initial values."""
    if [(p["name"], p["shape"], p["fixed"]) for p in recorded] != [(p["name"], p["shape"], p["fixed"]) for p in ours]:
        theirs, mine = ([(p["name"], p["shape"], p["fixed"]) for p in ps] for ps in (recorded, ours))
        return ["parameters differ: only in Fluid %s, only here %s, or in another order" % (
            [p for p in theirs if p not in mine], [p for p in mine if p not in theirs])]
    bad = []
    for a, b in zip(recorded, ours):
        elements, spread = int(np.prod(a["shape"])), max(a["std"], b["std"])
        chance = 1e-5 * max(spread, abs(a["mean"])) if a["fixed"] else 9 * spread / np.sqrt(elements)
        if not a["fixed"] and elements < 4:  # too few draws for a distribution
            continue
        if abs(a["std"] - b["std"]) > chance + 1e-7 or abs(a["mean"] - b["mean"]) > chance + 1e-7:
            bad.append("%s starts with mean %g, std %g instead of %g, %g" % (
                a["name"], b["mean"], b["std"], a["mean"], a["std"]))
    return bad


def recorded(trained):
    """The record of a net, with the deviation of this implementation from itself."""
    described = describe(trained)
    plain, start = trained.train(described)
    rows = {key: kept(key, row) for key, row in plain.items()}
    for name, value in start.items():  # a change is known up to the rounding of the parameter, 2e-7 of its norm
        rows["change of " + name]["least"] = float("%.2g" % (0.02 * np.linalg.norm(value)))
    for disturbance in DISTURBANCES:
        other, _ = trained.train(described, disturbance)
        for key, row in rows.items():
            far = deviation(row, kept(key, other[key]))
            row["moved"] = max(row.get("moved", 0), 9.0 if isinstance(far, str) else float("%.2g" % far))
    return {"parameters": described, "rows": rows}



def step_of(key):
    found = re.match(r"step (\d+)", key)
    return int(found.group(1)) if found else 1 << 30


def complaints(net, record, trained):
    """The differences from the record, in words."""
    bad = different_parameters(record["parameters"], describe(trained))
    if bad:
        return bad
    plain, _ = trained.train(record["parameters"])
    rows, so_far = record["rows"], {}
    for key in rows:
        if step_of(key) < 1 << 30:
            step = step_of(key)
            so_far[step] = max(so_far.get(step, 0), so_far.get(step - 1, 0), rows[key]["moved"])
    if set(rows) != set(plain):
        return ["results differ: %s" % sorted(set(rows) ^ set(plain))]
    for key, row in rows.items():
        allowed = net.rtol + 3 * max(row["moved"], so_far.get(step_of(key), 0))
        far = deviation(row, kept(key, plain[key]))
        if isinstance(far, str):
            bad.append("%s: %s" % (key, far))
        elif far > (0 if row["kind"] in "biu" and not row["moved"] else allowed):
            bad.append("%s deviates by %.2g of its size, %.2g are allowed" % (key, far, allowed))
    return bad
