"""Small steps from a case to its neighbours: each takes (random numbers, case) and says what it did, None: nothing.

Careful steps keep together what belongs together - equal extents, lengths of sequences and rows, dtypes of inputs and
outputs - and partners.py makes inputs and attributes of single operators fit each other again, so that most neighbours
of a case that is accepted are accepted. Free steps also give one input another shape or dtype than its partners.
"""

import math

import numpy as np
from partners import PARTNERS
from vary_attributes import attribute, quiet_attribute
from vary_shapes import extent, extent_everywhere, last_axis, narrow, narrow_second, rank, rank_everywhere, unknown
from vary_values import as_rows, dtype, dtype_everywhere, more_or_fewer, numbers, optional, sequences, special

#: Each step, and how often it is taken, in careful cases and in free ones.
BOTH = [numbers] * 2 + [special] * 2 + [sequences] * 2 + [optional] * 2 + [more_or_fewer] * 2 + [unknown, as_rows]
CAREFUL = BOTH + [extent_everywhere] * 8 + [dtype_everywhere] * 2 + [rank_everywhere, narrow_second]
CAREFUL += [quiet_attribute] * 7
FREE = BOTH + [extent] * 6 + [dtype] * 3 + [last_axis] * 2 + [rank] * 2 + [narrow] * 2 + [attribute] * 7


#: Elements of a result with an axis for each input, with extents that an input gives, or of a transposed convolution:
#: with more, neither side ends in the time that a case has.
MESH = 1 << 20
#: Inputs whose numbers are extents.
EXTENTS = ("Shape", "ShapeTensor", "ShapeTensorList")


def vary(r, case, free=True):
    """The case after some steps, each noted in ``changes``."""
    _take_steps(r, case, FREE if free else CAREFUL)
    if not free and case["op"] in PARTNERS:
        for fit in PARTNERS[case["op"]]:
            fit(case)
    if case["op"] == "meshgrid":
        _shorten(case, [case["vars"][name] for name in case["ins"]["X"]])
    extents = [case["vars"][name] for slot in EXTENTS for name in case["ins"].get(slot, ())]
    _lower(case, [v for v in extents if v["value"] is not None and v["value"].dtype.kind == "i"])
    if case["op"].endswith("_transpose") and case["ins"].get("Filter"):
        take_smaller_steps(case)
    return case


def _lower(case, extents):
    """Halves the largest extent until there are few enough elements."""
    while math.prod(max(int(n), 1) for v in extents for n in v["value"].ravel()) > MESH:
        largest = max((v for v in extents if v["value"].size), key=lambda v: v["value"].max())
        largest["value"] = np.where(largest["value"] == largest["value"].max(), largest["value"] // 2, largest["value"])
        case["changes"].append("an extent of at most %d" % largest["value"].max())


def take_smaller_steps(case):
    """Halves the strides and dilations of a transposed convolution until its result is small enough."""
    attrs, x, w = case["attrs"], *(case["vars"][case["ins"][slot][0]]["value"] for slot in ("Input", "Filter"))
    images = x.shape[1:-1] if attrs["data_format"] in ("NHWC", "NDHWC") else x.shape[2:]
    while True:
        windows = zip(images, w.shape[2:], attrs["strides"], attrs["dilations"])
        extents = [abs((n - 1) * stride) + abs((k - 1) * dilation) + 1 for n, k, stride, dilation in windows]
        count = math.prod(extents) * math.prod(x.shape[:1] + w.shape[1:2]) * max(1, attrs["groups"])
        if count <= MESH or max(map(abs, attrs["strides"] + attrs["dilations"])) <= 1:
            return
        for name in ("strides", "dilations"):
            attrs[name] = [max(1, n // 2) for n in attrs[name]]
        case["changes"].append("smaller strides and dilations")


def _shorten(case, vectors):
    """Halves the longest vector until their mesh is small enough."""
    while math.prod(v["value"].size for v in vectors) > MESH:
        longest = max(vectors, key=lambda v: v["value"].size)
        longest["value"] = longest["value"].ravel()[: longest["value"].size // 2]
        case["changes"].append("a vector of %d" % longest["value"].size)


def _take_steps(r, case, steps):
    count = r.choice([1, 1, 1, 1, 2, 2, 2, 3])
    for _ in range(12):
        if len(case["changes"]) >= count:
            break
        said = r.choice(steps)(r, case)
        if said:
            case["changes"].append(said)
