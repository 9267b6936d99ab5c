"""Distances, norms and products of vectors."""
import numpy as np
from op_case import Seq, apart, big, case, integers, real


def cross(i, a):
    axis = a.get("dim", 9)
    axis = i["X"].shape.index(3) if axis == 9 else axis
    return np.cross(i["X"], i["Y"], axisa=axis, axisb=axis, axisc=axis)


case("cross", {"X": real(4, 3), "Y": real(4, 3)}, {}, cross)
case("cross", {"X": real(2, 3, 4), "Y": real(2, 3, 4)}, {"dim": -2}, cross, name="middle")
case("cross", {"X": integers(3, 2, dtype="int32"), "Y": integers(3, 2, dtype="int32")}, {"dim": 0}, cross, name="integers")


def dist(i, a):
    size, p = np.abs(i["X"] - i["Y"]).astype("float64").ravel(), a.get("p", 2.0)
    return np.array([np.linalg.norm(size, p)], i["X"].dtype)


FAR = {"X": apart(3, 4), "Y": apart(3, 4, step=0.29) + 0.011}
for p in (0.0, 1.0, 2.0, 3.5, -1.5, float("inf"), float("-inf")):
    case("dist", FAR, {"p": p}, dist, name=f"p{p}", rtol=4e-6, hostile=False)  # NumPy has norms of nothing
case("dist", {"X": real(3, 1), "Y": real(2, 1, 4)}, {}, dist, name="broadcast", hostile=False)
case("dist", {"X": real(4), "Y": real(3, 4)}, {"p": 3.0}, dist, name="lower", hostile=False, rtol=4e-6,
     large={"X": big(103), "Y": big(1001, 103)}, large_rtol=1e-5)


def p_norm(i, a):
    x, p = np.abs(i["X"]).astype("float64"), a.get("porder", 2.0)
    out = (x ** p).sum(a.get("axis", -1), keepdims=a.get("keepdim", False)) ** (1 / p)
    return np.atleast_1d(out).astype(i["X"].dtype)


for attrs in ({}, {"porder": 1.0}, {"porder": 3.5, "axis": 0}, {"porder": 0.5, "axis": 1, "keepdim": True}):
    steep = attrs.get("porder", 2.0) < 1  # near 0 the gradient has no digits in float32
    case("p_norm", {"X": apart(3, 4)}, attrs, p_norm, rtol=5e-6, large=None if steep else {"X": big()})
case("p_norm", {"X": apart(5)}, {"axis": 0}, p_norm, name="vector")
case("p_norm", {"X": np.zeros((2, 3))}, {"porder": 3.0}, p_norm, name="zeros", grad=())


def close(i, a):
    x, y = i["Input"], i["Other"]
    with np.errstate(invalid="ignore"):
        near = np.abs(x - y) <= a.get("atol", 1e-8) + a.get("rtol", 1e-5) * np.abs(y)
    return np.array([np.all(near | (a.get("equal_nan", False) & np.isnan(x) & np.isnan(y)))])


case("allclose", {"Input": real(3, 4), "Other": real(3, 4)}, {}, close)
case("allclose", {"Input": real(3, 4), "Other": real(3, 4)}, {"atol": 3.0}, close, large={"Input": big(), "Other": big()})
case("allclose", {"Input": np.array([1.0, np.nan]), "Other": np.array([1.0, np.nan])}, {"equal_nan": True}, close, name="nan")
case("allclose", {"Input": np.array([np.inf]), "Other": np.array([np.inf])}, {}, close, name="infinite")
case("minus", {"X": real(3, 4), "Y": real(3, 4)}, {}, lambda i, a: i["X"] - i["Y"], large={"X": big(), "Y": big()})
case("minus", {"X": Seq(real(3, 2), [[2, 1]]), "Y": real(3, 2)}, {}, lambda i, a: Seq(i["X"].array - i["Y"], [[2, 1]]), name="sequences")
