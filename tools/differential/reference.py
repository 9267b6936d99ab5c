"""The NumPy reference of tests/ops for a case that the original dies of: agrees(case, record)."""

import numpy as np
from cases import CASES, Rows, Seq
from compare import numbers

from engine import ROWS, packed


def agrees(case, record):
    """Whether every output that the reference gives is what was computed; None where it does not know the case."""
    known = next((c for c in CASES if c.name == case.get("case") and c.ref), None)
    if known is None or any(slot not in case["ins"] for slot in known.inputs):
        return None
    inputs = {slot: [_value(case["vars"][n]) for n in case["ins"][slot]] for slot in known.inputs}
    inputs = {slot: v if isinstance(known.inputs[slot], list) else v[0] for slot, v in inputs.items()}
    try:
        with np.errstate(all="ignore"):
            expected = known.ref(inputs, case["attrs"])
    except Exception:  # the reference does not know this neighbour of its case
        return None
    expected = expected if isinstance(expected, dict) else {next(iter(case["outs"])): expected}
    found = [
        _same(value, record["outs"].get(name))
        for slot, values in expected.items()
        for name, value in zip(case["outs"].get(slot, []), values if isinstance(values, (list, tuple)) else [values])
    ]
    return None if None in found else all(found)


def _same(value, got):
    array = np.asarray(value.array if isinstance(value, Seq) else value)
    if isinstance(value, Rows) or array.dtype == object:  # of sequences where it takes arrays
        return None
    return got is not None and numbers(packed(array.astype(got[1][0])), got[1]) is None


def _value(v):
    if v["kind"] == ROWS:
        return Rows(v["rows"], v["height"], v["value"])
    return Seq(v["value"], v["lod"]) if v.get("lod") else v["value"]
