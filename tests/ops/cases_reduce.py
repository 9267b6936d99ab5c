"""Sums, means, extremes and products along axes."""
import numpy as np
from op_case import apart, big, case, integers, real

case("mean", {"X": real(3, 4)}, ref=lambda i, a: np.mean(i["X"], keepdims=False).reshape(1), large_rtol=2e-5, large={"X": big()})

# ---- reductions


def folded(fn):
    def reference(i, a):
        dim = None if a.get("reduce_all") or not a.get("dim", [0]) else tuple(a.get("dim", [0]))
        out = fn(i["X"], axis=dim, keepdims=a.get("keep_dim", False))
        return np.asarray(out).reshape(np.shape(out) or (1,)).astype(i["X"].dtype)

    return reference


for kind, fn in {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min, "prod": np.prod}.items():
    for attrs in ({"reduce_all": True}, {"dim": [1]}, {"dim": [-1], "keep_dim": True}, {"dim": [0, 2]}, {"dim": [0]},
                  {"dim": [0, 1, 2], "keep_dim": True}):
        case(f"reduce_{kind}", {"X": apart(2, 3, 4, step=0.11)}, attrs, ref=folded(fn), rtol=3e-6)
    if kind != "prod":
        for attrs in ({"dim": [0]}, {"dim": [1]}, {"reduce_all": True}):
            case(f"reduce_{kind}", {"X": real(700, 333)}, attrs, ref=folded(fn), rtol=2e-5, grad=(), large_rtol=2e-5, large={"X": real(700, 333)},
                 hostile=False)
    if kind != "mean":
        case(f"reduce_{kind}", {"X": integers(3, 4, lo=1, hi=5)}, {"dim": [1]}, ref=folded(fn), name="integers", hostile=False)
for kind, fn in {"all": np.all, "any": np.any}.items():
    case(f"reduce_{kind}", {"X": integers(3, 4, hi=2).astype(bool)}, {"dim": [1]}, ref=folded(fn))
    case(f"reduce_{kind}", {"X": integers(3, 4, hi=2).astype(bool)}, {"reduce_all": True, "keep_dim": True}, ref=folded(fn))


def length(x, axis, keepdims):
    return np.sqrt(np.sum(x * x, axis=axis, keepdims=keepdims))


for attrs in ({}, {"reduce_all": True}, {"dim": [1]}, {"dim": [-1], "keep_dim": True}, {"dim": [0, 2]}):
    case("frobenius_norm", {"X": apart(2, 3, 4, step=0.11)}, attrs, ref=folded(length), rtol=3e-6,
         large={"X": real(70, 33, 40)}, large_rtol=2e-5)
case("l1_norm", {"X": apart(3, 4)}, ref=lambda i, a: np.abs(i["X"]).sum().reshape(1), large={"X": big()},
     large_rtol=2e-5)
