"""Small steps from a case to its neighbours: each takes (random numbers, case) and says what it did, None: nothing.

A step keeps together what belongs together - equal extents, lengths of sequences and rows, dtypes of inputs and
outputs - so that most neighbours of a case that is accepted are accepted.
"""

import math

from vary_attributes import attribute
from vary_shapes import extent, last_axis, narrow, rank, unknown
from vary_values import as_rows, dtype, more_or_fewer, numbers, optional, sequences, special

#: Each step, and how often it is taken.
STEPS = [extent] * 6 + [numbers] * 2 + [special] * 2 + [dtype] * 3 + [sequences] * 2 + [last_axis] * 2 + [rank] * 2
STEPS += [narrow] * 2 + [optional] * 2 + [more_or_fewer] * 2 + [unknown, as_rows] + [attribute] * 7


#: Elements of a result with an axis for each input: with more, neither side ends in the time that a case has.
MESH = 1 << 20


def vary(r, case):
    """The case after some steps, each noted in ``changes``."""
    _take_steps(r, case)
    if case["op"] == "meshgrid":
        _shorten(case, [case["vars"][name] for name in case["ins"]["X"]])
    return case


def _shorten(case, vectors):
    """Halves the longest vector until their mesh is small enough."""
    while math.prod(v["value"].size for v in vectors) > MESH:
        longest = max(vectors, key=lambda v: v["value"].size)
        longest["value"] = longest["value"].ravel()[: longest["value"].size // 2]
        case["changes"].append("a vector of %d" % longest["value"].size)


def _take_steps(r, case):
    count = r.choice([1, 1, 1, 1, 2, 2, 2, 3])
    for _ in range(12):
        if len(case["changes"]) >= count:
            break
        said = r.choice(STEPS)(r, case)
        if said:
            case["changes"].append(said)
