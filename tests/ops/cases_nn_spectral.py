"""Spectral norms, masks of what is largest, fully connected layers of saved models."""
import numpy as np
from op_case import apart, big, case, real


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


def similarity_focus(i, a):
    x = i["X"]
    out = np.zeros_like(x)
    for n in range(len(x)):
        for index in a["indexes"]:
            part = np.take(x[n], index, a["axis"] - 1)
            mask, left = np.zeros(part.shape, x.dtype), [set(range(s)) for s in part.shape]
            for place in np.argsort(-part.reshape(-1), kind="stable"):
                r, c = divmod(int(place), part.shape[1])
                if r in left[0] and c in left[1]:
                    left[0].remove(r)
                    left[1].remove(c)
                    mask[r, c] = 1
            out[n] = np.maximum(out[n], np.expand_dims(mask, a["axis"] - 1))
    return out


for axis, indexes in ((1, [0]), (1, [0, 2]), (2, [1]), (3, [3, 1])):
    case("similarity_focus", {"X": apart(2, 3, 2, 4)}, {"axis": axis, "indexes": indexes}, similarity_focus,
         name="axis %d of %d" % (axis, len(indexes)))


def fc(i, a):
    axes, w = a["in_num_col_dims"], i["W"]
    if a.get("padding_weights"):
        w = w[:-4, :-4]
    x = i["Input"]
    out = x.reshape(int(np.prod(x.shape[:axes])), -1) @ w if x.size else np.zeros([int(np.prod(x.shape[:axes])),
                                                                                   w.shape[1]], x.dtype)
    out = (out + i["Bias"].reshape(-1) if "Bias" in i else out).reshape(*x.shape[:axes], -1)
    return np.maximum(out, 0) if a.get("activation_type") else out


case("fc", {"Input": real(2, 3, 2), "W": real(6, 4), "Bias": real(4)}, {"in_num_col_dims": 1, "activation_type": "relu"},
     fc, rtol=1e-5, large={"Input": big(301, 65), "W": big(65, 33), "Bias": big(33)}, large_rtol=1e-4)
case("fc", {"Input": real(2, 3, 2), "W": real(2, 4), "Bias": real(1, 4)}, {"in_num_col_dims": 2}, fc, rtol=1e-5,
     name="rows")
case("fc", {"Input": real(2, 6), "W": real(10, 8)}, {"in_num_col_dims": 1, "padding_weights": True}, fc, rtol=1e-5,
     name="padded")
