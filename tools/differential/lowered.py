"""Cases and records with float32 instead of float64, for operators that the original has in float32 only."""

import numpy as np

from engine import ARRAY, packed, unpacked

#: Types in the numbering of framework.proto.
FLOAT32, FLOAT64 = 5, 6
NOISE = 1e-6


def lowered_case(data):
    """A sent case; None where nothing is float64."""
    if not any(v["dtype"] == "float64" for v in data["vars"].values()):
        return None
    made = dict(data, vars={}, attrs=dict(data["attrs"]))
    for name, v in data["vars"].items():
        v = dict(v)
        if v["dtype"] == "float64":
            v["dtype"] = "float32"
            if v["value"] is not None:
                v["value"] = _lowered(v["value"])
        made["vars"][name] = v
    for name, value in data["attrs"].items():
        if "dtype" in name and value == FLOAT64:
            made["attrs"][name] = FLOAT32
    return made


def lowered_record(record):
    parts = {part: record[part] and {n: _value(v) for n, v in record[part].items()} for part in ("outs", "grads")}
    return dict(record, **parts)


def _lowered(array):
    return packed(unpacked(array).astype("float32")) if array[0] == "float64" else array


def _rounded(array):
    """Without what rounding leaves of numbers that cancel."""
    numbers = unpacked(array)
    return packed(np.where(np.abs(numbers) < NOISE, 0, numbers).astype(array[0])) if array[0] == "float32" else array


def _value(value):
    if value is None:
        return None
    if value[0] == ARRAY:
        return (ARRAY,) + tuple((_lowered(array), lod) for array, lod in value[1:])
    return (value[0], _rounded(_lowered(value[1]))) + tuple(value[2:])
