"""Operators of dense layers that ranking models use: products, choices, normalisations, counts."""
import numpy as np
from op_case import apart, case, integers, real


def addmm(i, a):
    return a.get("Alpha", 1.0) * i["X"] @ i["Y"] + a.get("Beta", 1.0) * i["Input"]


FACTORS = {"Alpha": 2.0, "Beta": 0.5}
case("addmm", {"Input": real(3, 2), "X": real(3, 4), "Y": real(4, 2)}, FACTORS, addmm, rtol=5e-6)
case("addmm", {"Input": real(1, 2), "X": real(3, 4), "Y": real(4, 2)}, {}, addmm, rtol=5e-6, name="row")
case("addmm", {"Input": real(3, 1), "X": real(3, 4), "Y": real(4, 2)}, FACTORS, addmm, rtol=5e-6, name="column")
case("kron", {"X": real(2, 3), "Y": real(4, 2)}, {}, lambda i, a: np.kron(i["X"], i["Y"]))
case("kron", {"X": real(2, 2, 3), "Y": real(2)}, {}, lambda i, a: np.kron(i["X"], i["Y"]), name="ranks")
case("log1p", {"X": real(3, 4, lo=-0.5, hi=3.0)}, {}, lambda i, a: np.log1p(i["X"]))
case("mish", {"X": real(3, 4, lo=-3.0, hi=3.0)}, {}, lambda i, a: i["X"] * np.tanh(np.log1p(np.exp(i["X"]))), rtol=5e-6)
case("diag", {"Diagonal": real(4)}, {}, lambda i, a: np.diag(i["Diagonal"]))
case("size", {"Input": real(3, 4)}, {}, lambda i, a: np.array([i["Input"].size]), grad=())
ROWS = np.array([[1], [0], [2], [1]], "int32")
case("multiplex", {"Ids": ROWS, "X": [real(4, 3), real(4, 3), real(4, 3)]}, {}, grad=("X",), hostile=False,
     ref=lambda i, a: np.stack([i["X"][k][r] for r, k in enumerate(i["Ids"][:, 0])]))  # NumPy counts from the end, too


def maxout(i, a):
    x, axis, groups = i["X"], a.get("axis", 1), a["groups"]
    shape = list(x.shape)
    shape[axis:axis + 1] = [shape[axis] // groups, groups]
    return x.reshape(shape).max(axis + 1)


case("maxout", {"X": apart(2, 6, 2, 1)}, {"groups": 2}, maxout)
case("maxout", {"X": apart(2, 2, 1, 6)}, {"groups": 3, "axis": 3}, maxout, name="last")


def lrn(i, a):
    x = i["X"]
    axis = 3 if a.get("data_format") == "NHWC" else 1
    moved = np.moveaxis(x, axis, 0)
    half = a["n"] // 2
    sums = np.stack([(moved[max(0, k - half):k + half + 1] ** 2).sum(0) for k in range(len(moved))])
    middle = np.moveaxis(a["k"] + a["alpha"] * sums, 0, axis)
    return {"Out": x * middle ** -a["beta"], "MidOut": middle}


NEAR = {"n": 3, "k": 1.5, "alpha": 0.125, "beta": 0.625}
case("lrn", {"X": real(2, 5, 2, 2)}, NEAR, lrn, rtol=5e-6, grad_outs=("Out",))
case("lrn", {"X": real(2, 2, 2, 5)}, dict(NEAR, data_format="NHWC"), lrn, rtol=5e-6, grad_outs=("Out",), name="last")


def groups_of(x, groups, last):
    """[N, groups, elements] of the input, and the way back."""
    moved = np.moveaxis(x, -1, 1) if last else x
    return moved.reshape(len(x), groups, -1), lambda y: np.moveaxis(y.reshape(moved.shape), 1, -1) if last else y.reshape(x.shape)


def group_norm(i, a):
    x, last = i["X"], a.get("data_layout") == "NHWC"
    parts, back = groups_of(x, a["groups"], last)
    mean, variance = parts.mean(2), parts.var(2)
    y = back((parts - mean[..., None]) / np.sqrt(variance[..., None] + a["epsilon"]))
    per_channel = [1] * x.ndim
    per_channel[-1 if last else 1] = -1
    if "Scale" in i:
        y = y * i["Scale"].reshape(per_channel)
    if "Bias" in i:
        y = y + i["Bias"].reshape(per_channel)
    return {"Y": y, "Mean": mean, "Variance": variance}


G = {"groups": 2, "epsilon": 2.0**-10}
SCALED = {"Scale": real(4, lo=0.5, hi=1.5), "Bias": real(4)}
case("group_norm", dict(X=real(2, 4, 3, 2), **SCALED), G, group_norm, rtol=1e-5, grad_outs=("Y",),
     large=dict(X=real(8, 4, 60, 60), **SCALED))
case("group_norm", {"X": real(2, 4, 3, 2)}, G, group_norm, rtol=1e-5, grad_outs=("Y",), name="plain")
case("group_norm", dict(X=real(2, 3, 2, 4), **SCALED), dict(G, data_layout="NHWC"), group_norm, rtol=1e-5, grad_outs=("Y",),
     name="last")


def instance_norm(i, a):
    got = group_norm(i, {"groups": i["X"].shape[1], "epsilon": a["epsilon"]})
    return {"Y": got["Y"], "SavedMean": got["Mean"].ravel(),
            "SavedVariance": 1 / np.sqrt(got["Variance"].ravel() + a["epsilon"])}


case("instance_norm", dict(X=real(2, 4, 3, 2), **SCALED), {"epsilon": 2.0**-10}, instance_norm, rtol=1e-5, grad_outs=("Y",))
case("instance_norm", {"X": real(2, 4, 5)}, {"epsilon": 2.0**-10}, instance_norm, rtol=1e-5, grad_outs=("Y",), name="plain")


def mean_iou(i, a):
    p, y, n = i["Predictions"].ravel(), i["Labels"].ravel(), a["num_classes"]
    wrong = np.bincount(p[p != y], minlength=n) + np.bincount(y[p != y], minlength=n)
    correct = np.bincount(p[p == y], minlength=n)
    wrong, correct = (c + sum(i.get(s, [])) for c, s in ((wrong, "InWrongs"), (correct, "InCorrects")))
    some = wrong + correct > 0
    mean = (correct[some] / (wrong + correct)[some]).mean() + sum(float(m[0]) for m in i.get("InMeanIou", []))
    return {"OutMeanIou": np.array([mean], "float32"), "OutWrong": wrong.astype("int32"),
            "OutCorrect": correct.astype("int32")}


CLASSES = {"Predictions": integers(3, 4, hi=4, dtype="int32"), "Labels": integers(3, 4, hi=4, dtype="int32")}
case("mean_iou", CLASSES, {"num_classes": 4}, mean_iou, dtypes=("float32",))
COUNTS = {"InWrongs": [integers(5, dtype="int32")], "InCorrects": [integers(5, dtype="int32"), integers(5, dtype="int32")],
          "InMeanIou": [np.array([0.25], "float32")]}
case("mean_iou", dict(CLASSES, **COUNTS), {"num_classes": 5}, mean_iou, dtypes=("float32",), name="counts")
