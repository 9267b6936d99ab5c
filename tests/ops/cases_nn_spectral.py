"""Spectral norms."""
import numpy as np
from op_case import big, case, real


def as_matrix(w, dim):
    moved = np.moveaxis(w, dim, 0)
    return moved.reshape(len(moved), -1)


def spectral_norm(i, a):
    w, u, v = as_matrix(i["Weight"], a["dim"]), i["U"], i["V"]
    for _ in range(a["power_iters"]):
        v = w.T @ u / (np.linalg.norm(w.T @ u) + w.dtype.type(a["eps"]))
        u = w @ v / (np.linalg.norm(w @ v) + w.dtype.type(a["eps"]))
    return i["Weight"] / (u @ w @ v)


def positive(*shape):
    return real(*shape, lo=0.2, hi=1.0)


WEIGHT = positive(3, 4, 2)
for iterations, dim in ((0, 0), (0, 1), (1, 0), (2, 1)):
    rows = WEIGHT.shape[dim]
    case("spectral_norm", {"Weight": WEIGHT, "U": positive(rows), "V": positive(24 // rows)},
         {"dim": dim, "power_iters": iterations, "eps": 2.0**-20}, spectral_norm, rtol=2e-5,
         grad=() if iterations else ("Weight",),  # iterated vectors count as constants in the gradient
         large={"Weight": np.abs(big(64, 700)) + 0.1, "U": positive((64, 700)[dim]), "V": positive((700, 64)[dim])}
         if not iterations else None, large_rtol=1e-4, name="%d times on %d" % (iterations, dim))


def spectral_norm_grad(i, a):
    w, u, v = as_matrix(i["Weight"], a["dim"]), i["U"], i["V"]
    for _ in range(a["power_iters"]):
        v = w.T @ u / np.linalg.norm(w.T @ u)
        u = w @ v / np.linalg.norm(w @ v)
    sigma = u @ w @ v
    g = as_matrix(i["Out@GRAD"], a["dim"])
    dw = (g - (g * w).sum() / sigma * np.outer(u, v)) / sigma
    moved = np.moveaxis(i["Weight"], a["dim"], 0)
    return {"Weight@GRAD": np.moveaxis(dw.reshape(moved.shape), 0, a["dim"])}


case("spectral_norm_grad", {"Weight": WEIGHT, "U": positive(4), "V": positive(6), "Out@GRAD": real(3, 4, 2)},
     {"dim": 1, "power_iters": 2, "eps": 0.0}, spectral_norm_grad, grad=(), rtol=5e-5)
