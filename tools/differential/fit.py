"""Shared by fit_numbers.py and fit_shapes.py: inputs of a case, and changes of one of them."""

import numpy as np
from neighbours import given


def one(case, slot, at=0):
    """The variable of an input with a value, or None."""
    names = case["ins"].get(slot, [])
    v = case["vars"][names[at]] if at < len(names) else None
    return v if v is not None and v["value"] is not None else None


def those(case, *slots):
    """The variables of inputs that have values and elements."""
    found = [case["vars"][n] for slot in slots for n in case["ins"].get(slot, []) if n in given(case)]
    return [v for v in found if v["value"].size]


def at_least_of(case, name, least=1):
    case["attrs"][name] = max(least, case["attrs"][name])
    return case["attrs"][name]


def resize(v, *shape):
    v["value"] = np.resize(v["value"], shape) if v["value"].size else np.zeros(shape, v["value"].dtype)
