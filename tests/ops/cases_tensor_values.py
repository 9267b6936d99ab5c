"""Values without repetitions, parts of matrices, given values, random integers."""
import numpy as np
from op_case import Seq, case, integers, real


def unique(i, a):
    x = i["X"]
    at = [np.flatnonzero(x == v) if v == v else np.array([k]) for k, v in enumerate(x)]
    firsts = [k for k, same in enumerate(at) if same[0] == k]
    index = np.array([firsts.index(same[0]) for same in at], {2: "int32", 3: "int64"}[a["dtype"]])
    return {"Out": x[firsts], "Index": index.reshape(x.shape)}


def counted(i, a):
    found = unique(i, a)
    return dict(found, Count=np.bincount(found["Index"], minlength=len(found["Out"])).astype(found["Index"].dtype))


for op, ref in {"unique": unique, "unique_with_counts": counted}.items():
    for dtype in (2, 3):
        case(op, {"X": integers(9, hi=4)}, {"dtype": dtype}, ref)
    case(op, {"X": integers(5, hi=3, dtype="int32")}, {"dtype": 2}, ref, name="int32")
    case(op, {"X": np.array([1.5, np.nan, 0.0, 1.5, np.nan, -0.0])}, {"dtype": 3}, ref, name="nan")


def columns(i, a):
    n = i["X"][0].shape[1]
    start = a.get("start_index", 0) % n
    end = n if a.get("length", -1) < 0 else start + a["length"]
    return [x[:, start:end] for x in i["X"]]


PAIR = {"X": [real(3, 4), real(3, 4)]}
for attrs in ({}, {"start_index": 1}, {"start_index": 2, "length": 1}, {"length": 4}):
    case("partial_concat", PAIR, attrs, lambda i, a: np.concatenate(columns(i, a), 1), hostile=False)
    case("partial_sum", PAIR, attrs, lambda i, a: sum(columns(i, a)), hostile=False)  # NumPy cuts ends that are too large
case("partial_concat", {"X": [real(3, 4)] * 3}, {"start_index": -2, "length": 1}, lambda i, a: np.concatenate(columns(i, a), 1),
     name="from_end")
case("partial_sum", {"X": [integers(2, 3), integers(2, 3)]}, {"start_index": 1}, lambda i, a: sum(columns(i, a)), name="integers",
     hostile=False)

for dtype, name in {5: "float32", 6: "float64", 2: "int32", 3: "int64"}.items():
    case("fill", {}, {"value": [1.5, 2.0, -3.5, 4.0], "shape": [2, 2], "dtype": dtype}, name=name,
         ref=lambda i, a, name=name: np.array(a["value"]).reshape(a["shape"]).astype(name))
case("fill_zeros_like2", {"X": real(3, 4)}, {"dtype": 3}, lambda i, a: np.zeros(i["X"].shape, "int64"))
case("fill_zeros_like2", {"X": Seq(real(3, 2), [[2, 1]])}, {"dtype": 5}, name="sequences", hostile=False,
     ref=lambda i, a: Seq(np.zeros((3, 2), "float32"), [[2, 1]]))  # the dtype asked for is another one

# ---- random integers have no reference, but where only one is possible; more is in test_random.py

case("randint", {}, {"shape": [3, 4], "low": 4, "high": 5, "dtype": 2}, lambda i, a: np.full((3, 4), 4, "int32"))
case("randint", {"ShapeTensor": np.array([2, 3], "int32")}, {"low": -1, "high": 0}, name="tensor", hostile=False,
     ref=lambda i, a: np.full((2, 3), -1))
case("randperm", {}, {"n": 1, "dtype": 2}, lambda i, a: np.zeros(1, "int32"))
case("randperm", {}, {"n": 17, "seed": 3}, name="many")


def only_place(i, a):
    assert a.keys() == {"seed"} and np.all(np.sort(i["X"])[:, -2:] == [0, 1])  # else chance decides
    return i["X"].argmax(1)


def third(i, a):
    assert np.all(i["X"] == 0.25) and i["X"].shape[1] == 4 and 0.5 < a["min"] < a["max"] < 0.75
    return np.full(len(i["X"]), 2)


case("sampling_id", {"X": np.eye(4)[[2, 0, 3]]}, {"seed": 3}, only_place)
case("sampling_id", {"X": np.full((2, 4), 0.25)}, {"min": 0.6, "max": 0.7}, third, name="range")
case("seed", {}, {"seed": 7}, lambda i, a: np.array([7], "int32"))
