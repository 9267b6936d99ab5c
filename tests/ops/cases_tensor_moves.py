"""Elements moved along axes, grids, diagonals."""
import numpy as np
from op_case import Seq, big, case, integers, real

for axis in (0, 1, -1):
    case("unbind", {"X": real(3, 2, 3)}, {"axis": axis}, name=f"axis{axis}",
         ref=lambda i, a: {"Out": [np.take(i["X"], k, a["axis"]) for k in range(i["X"].shape[a["axis"]])]})
case("unbind", {"X": real(3)}, ref=lambda i, a: {"Out": list(i["X"].reshape(3, 1))}, name="vector")
case("unbind", {"X": integers(2, 3)}, ref=lambda i, a: {"Out": list(i["X"])}, name="integers")

for name, attrs in {"one": {"shifts": [1], "dims": [0]}, "two": {"shifts": [1, -6], "dims": [0, 2]},
                    "twice": {"shifts": [2, 3], "dims": [1, -2]}, "none": {"shifts": [], "dims": []}}.items():
    case("roll", {"X": real(2, 3, 4)}, attrs, name=name, ref=lambda i, a: np.roll(i["X"], a["shifts"], a["dims"]),
         large={"X": big(20, 30, 101)})
case("roll", {"X": integers(2, 5, dtype="int32")}, {"shifts": [2], "dims": [1]}, name="integers",
     ref=lambda i, a: np.roll(i["X"], a["shifts"], a["dims"]))
case("flip", {"X": real(2, 3, 4)}, {"dims": [0, 2]}, lambda i, a: np.flip(i["X"], a["dims"]), large={"X": big(20, 30, 101)})
case("flip", {"X": Seq(real(3, 2), [[2, 1]])}, {"dims": [-1]}, lambda i, a: Seq(np.flip(getattr(i["X"], "array", i["X"]), -1), [[2, 1]]))
case("flip", {"X": integers(5, hi=2).astype(bool)}, {"dims": [0, -1]}, lambda i, a: np.flip(i["X"], tuple({d % i["X"].ndim for d in a["dims"]})), name="bool")


def grid(i, a):
    return {"Out": list(np.meshgrid(*i["X"], indexing="ij"))}


case("meshgrid", {"X": [real(2), real(3), real(4)]}, {}, grid, grad_outs=("Out",))
case("meshgrid", {"X": [real(3)]}, {}, grid, name="one")
case("meshgrid", {"X": [integers(2), integers(3)]}, {}, grid, name="integers")
case("meshgrid", {"X": [real(2)] * 6}, {}, grid, name="six")

# ---- diagonals

for lower in (True, False):
    for k in (0, 2, -1, 9, -9):
        case("tril_triu", {"X": real(2, 3, 4)}, {"diagonal": k, "lower": lower}, name=f"{'lower' if lower else 'upper'}{k}",
             ref=lambda i, a: (np.tril if a["lower"] else np.triu)(i["X"], a["diagonal"]), large={"X": big()})
case("tril_triu", {"X": integers(3, 2)}, {"lower": True}, lambda i, a: np.tril(i["X"]), name="integers")


def trace(i, a):
    rank = i["Input"].ndim
    rows, cols = sorted((a.get("dim1", -2) % rank, a.get("dim2", -1) % rank))
    offset = int(np.clip(a.get("offset", 0), -10**6, 10**6))  # NumPy dies of -2^31
    return np.atleast_1d(np.trace(i["Input"], offset, rows, cols))


for attrs in ({}, {"offset": 1}, {"offset": -2}, {"offset": 7}, {"dim1": 0, "dim2": 2, "offset": 1}, {"dim1": 2, "dim2": 0, "offset": 1}):
    case("trace", {"Input": real(2, 3, 4)}, attrs, trace)
case("trace", {"Input": real(3, 4)}, {}, trace, name="matrix", large={"Input": big(200, 150, 3)}, large_rtol=1e-5)
case("trace", {"Input": integers(3, 3, 2)}, {"dim1": 0, "dim2": 1}, trace, name="integers")


def embedded(i, a):
    x, offset = i["Input"], a.get("offset", 0)
    n = x.shape[-1]
    out = np.zeros(x.shape[:-1] + (n + abs(offset),) * 2, x.dtype)
    for k in range(n):
        out[..., k + max(0, -offset), k + max(0, offset)] = x[..., k]
    return np.moveaxis(out, (-2, -1), (a.get("dim1", -2), a.get("dim2", -1)))


for attrs in ({}, {"offset": 2}, {"offset": -1}, {"dim1": 0, "dim2": 2, "offset": 1}, {"dim1": 2, "dim2": 0, "offset": 1}):
    case("diag_embed", {"Input": real(2, 3)}, attrs, embedded)
case("diag_embed", {"Input": integers(3)}, {}, embedded, name="vector")
