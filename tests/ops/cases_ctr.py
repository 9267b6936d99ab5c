"""Operators of click-through and recall models."""
import numpy as np
from op_case import Seq, apart, case, integers, real

LENGTHS = [[3, 1, 5]]


def cosine(i, a):
    x, y = (v.reshape(len(v), -1) for v in (i["X"], i["Y"]))
    x_norm, y_norm = (np.sqrt((v * v).sum(1, keepdims=True)) for v in (x, y))
    return {"Out": (x * y).sum(1, keepdims=True) / x_norm / y_norm, "XNorm": x_norm, "YNorm": y_norm}


case("cos_sim", {"X": real(5, 4), "Y": real(5, 4)}, {}, cosine, large={"X": real(900, 70), "Y": real(900, 70)}, rtol=5e-6)
case("cos_sim", {"X": real(5, 4), "Y": real(1, 4)}, {}, cosine, name="one", rtol=5e-6)
case("cos_sim", {"X": real(3, 2, 2), "Y": real(3, 2, 2)}, {}, cosine, name="axes", rtol=5e-6)
case("cos_sim", {"X": np.zeros((2, 3)), "Y": real(2, 3)}, {}, lambda i, a: {"Out": np.zeros((2, 1))}, name="zero", grad=(),
     hostile=False)  # the reference is zero whatever the inputs are


def other_width(i, a):
    n = a["new_dim"]
    x = i["X"]
    return Seq(x.array.reshape(-1, n), [[k * x.array.shape[1] // n for k in x.lengths[0]]])


case("sequence_reshape", {"X": Seq(apart(8, 3), [[2, 6]])}, {"new_dim": 6}, other_width)
case("sequence_reshape", {"X": Seq(apart(9, 3), LENGTHS)}, {"new_dim": 1}, other_width, name="narrow")


def pieces(s):
    ends = np.cumsum(s.lengths[-1])
    return [s.array[e - n:e] for e, n in zip(ends, s.lengths[-1])]


def windows(i, a):
    rows = []
    for p in pieces(i["X"]):
        padded = np.append(p[:, 0], [a["pad_value"]] * a["win_size"])
        rows += [padded[t:t + a["win_size"]] for t in range(len(p))]
    return Seq(np.stack(rows).astype(i["X"].array.dtype), i["X"].lengths)


IDS = Seq(integers(9, 1, hi=6), LENGTHS)
case("sequence_enumerate", {"X": IDS}, {"win_size": 3, "pad_value": 9}, windows, dtypes=("float32",))
case("sequence_enumerate", {"X": Seq(integers(5, 1, dtype="int32"), [[3, 0, 2]])}, {"win_size": 4, "pad_value": -1}, windows,
     name="gaps", dtypes=("float32",))


def erased(i, a):
    parts = [[v for v in p[:, 0] if v not in a["tokens"]] for p in pieces(i["X"])]
    array = np.array([v for p in parts for v in p], i["X"].array.dtype).reshape(-1, 1)
    return Seq(array, i["X"].lengths[:-1] + [[len(p) for p in parts]])


TOKENS = np.array([[2], [2], [1], [3], [4]])
case("sequence_erase", {"X": Seq(TOKENS, [[3, 2]])}, {"tokens": [2, 3]}, erased, dtypes=("float32",))
case("sequence_erase", {"X": Seq(TOKENS, [[1, 1], [2, 3]])}, {"tokens": [2]}, erased, name="levels", dtypes=("float32",))


def scattered(i, a):
    out = i["X"].copy()
    at = 0
    for row, p in enumerate(pieces(i["Ids"])):
        for place in p[:, 0]:
            out[row, place] += np.ravel(i["Updates"].array if isinstance(i["Updates"], Seq) else i["Updates"])[at]
            at += 1
    return out


PLACES = Seq(np.array([[0], [1], [2], [5], [4], [3], [2], [1], [3]]), LENGTHS)
case("sequence_scatter", {"X": real(3, 6), "Ids": PLACES, "Updates": Seq(real(9, 1), LENGTHS)}, {}, scattered,
     hostile=False)  # the reference counts places from the end, too
