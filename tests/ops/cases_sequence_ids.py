"""Sequences of ids, and sequences of rows of another width."""
import numpy as np
from op_case import Seq, apart, case, integers, real

LENGTHS = [[3, 1, 5]]


def other_width(i, a):
    n = a["new_dim"]
    x = i["X"]
    return Seq(x.array.reshape(-1, n), [[k * x.array.shape[1] // n for k in x.lengths[0]]])


case("sequence_reshape", {"X": Seq(apart(8, 3), [[2, 6]])}, {"new_dim": 6}, other_width)
case("sequence_reshape", {"X": Seq(apart(9, 3), LENGTHS)}, {"new_dim": 1}, other_width, name="narrow")


def split(s):
    ends = np.cumsum(s.lengths[-1])
    return [s.array[e - n:e] for e, n in zip(ends, s.lengths[-1])]


def windows(i, a):
    rows = []
    for p in split(i["X"]):
        padded = np.append(p[:, 0], [a["pad_value"]] * a["win_size"])
        rows += [padded[t:t + a["win_size"]] for t in range(len(p))]
    return Seq(np.stack(rows).astype(i["X"].array.dtype), i["X"].lengths)


IDS = Seq(integers(9, 1, hi=6), LENGTHS)
case("sequence_enumerate", {"X": IDS}, {"win_size": 3, "pad_value": 9}, windows, dtypes=("float32",))
case("sequence_enumerate", {"X": Seq(integers(5, 1, dtype="int32"), [[3, 0, 2]])}, {"win_size": 4, "pad_value": -1}, windows,
     name="gaps", dtypes=("float32",))


def erased(i, a):
    parts = [[v for v in p[:, 0] if v not in a["tokens"]] for p in split(i["X"])]
    array = np.array([v for p in parts for v in p], i["X"].array.dtype).reshape(-1, 1)
    return Seq(array, i["X"].lengths[:-1] + [[len(p) for p in parts]])


TOKENS = np.array([[2], [2], [1], [3], [4]])
case("sequence_erase", {"X": Seq(TOKENS, [[3, 2]])}, {"tokens": [2, 3]}, erased, dtypes=("float32",))
case("sequence_erase", {"X": Seq(TOKENS, [[1, 1], [2, 3]])}, {"tokens": [2]}, erased, name="levels", dtypes=("float32",))


def scattered(i, a):
    out = i["X"].copy()
    at = 0
    for row, p in enumerate(split(i["Ids"])):
        for place in p[:, 0]:
            out[row, place] += np.ravel(i["Updates"].array if isinstance(i["Updates"], Seq) else i["Updates"])[at]
            at += 1
    return out


PLACES = Seq(np.array([[0], [1], [2], [5], [4], [3], [2], [1], [3]]), LENGTHS)
case("sequence_scatter", {"X": real(3, 6), "Ids": PLACES, "Updates": Seq(real(9, 1), LENGTHS)}, {}, scattered,
     hostile=False)  # the reference counts places from the end, too
