"""Losses of scores and of logarithms of probabilities."""
import numpy as np
from op_case import case, integers, real


def nll(i, a):
    x, label, weight = i["X"], i["Label"], i.get("Weight")
    classes = x.shape[1]
    ignored = a.get("ignore_index", -100)
    flat = np.moveaxis(x, 1, -1).reshape(-1, classes)
    labels = label.reshape(-1)
    counts = labels != ignored
    at = np.where(counts, labels, 0)
    w = np.where(counts, 1.0 if weight is None else weight[at], 0.0).astype(x.dtype)
    loss = -w * flat[np.arange(len(flat)), at]
    none = np.zeros(1, x.dtype)
    if a.get("reduction", "mean") == "none":
        return {"Out": loss.reshape(label.shape[:1] + x.shape[2:]), "Total_weight": none}
    out = loss.sum(keepdims=True)
    if a.get("reduction", "mean") == "mean" and w.sum():
        out = out / w.sum()
    return {"Out": out.astype(x.dtype), "Total_weight": w.sum(keepdims=True).astype(x.dtype)}


for how in ("none", "sum", "mean"):
    for x, label in (((5, 3), (5,)), ((2, 3, 2, 3), (2, 2, 3))):
        tag = f"{how}{len(x)}"
        case("nll_loss", {"X": real(*x), "Label": integers(*label, hi=3)}, {"reduction": how}, nll, name=tag, hostile=False,
             rtol=4e-6)  # a label out of range is refused
        case("nll_loss", {"X": real(*x), "Label": integers(*label, hi=3), "Weight": real(3, lo=0.2)}, grad=("X",), rtol=4e-6,
             attrs={"reduction": how, "ignore_index": 1}, ref=nll, name=tag + "weights", hostile=False)
case("nll_loss", {"X": real(4, 3), "Label": np.full((4, 1), 7)}, {"ignore_index": 7}, nll, name="none_counts", hostile=False)


def cross_entropy(i, a):
    with np.errstate(divide="ignore"):
        low = [np.maximum(np.log(v), -100) for v in (i["X"], 1 - i["X"])]
    return -i["Label"] * low[0] - (1 - i["Label"]) * low[1]


case("bce_loss", {"X": real(3, 4, lo=0.05, hi=0.95), "Label": real(3, 4, lo=0.0)}, {}, cross_entropy, grad=("X",), hostile=False,
     rtol=5e-6)  # other numbers than probabilities are refused
case("bce_loss", {"X": np.array([[0.0, 1.0, 0.0, 1.0]]), "Label": np.array([[0.0, 1.0, 1.0, 0.0]])}, {}, cross_entropy, grad=(),
     name="ends", hostile=False)


def huber(i, a):
    m = i["X"] * (2 * i["Y"] - 1)
    return {"Out": np.where(m < -1, -4 * m, np.where(m < 1, (1 - m) ** 2, 0)), "IntermediateVal": m}


SCORES = np.array([[-2.3], [-0.4], [0.7], [1.6], [-1.5], [0.2]])
case("modified_huber_loss", {"X": SCORES, "Y": np.array([[1.0], [1], [1], [1], [0], [0]])}, {}, huber, grad=("X",), rtol=4e-6)


def squared(i, a):
    diff = (i["X"] - i["Y"]).reshape(len(i["X"]), -1)
    return {"sub_result": diff, "Out": (diff ** 2).sum(1, keepdims=True)}


case("squared_l2_distance", {"X": real(3, 4), "Y": real(3, 4)}, {}, squared, grad_outs=("Out",), rtol=5e-6, hostile=False)
case("squared_l2_distance", {"X": real(3, 2, 2), "Y": real(1, 2, 2)}, {}, squared, grad_outs=("Out",), name="one", rtol=5e-6,
     hostile=False)  # NumPy repeats more than one row


def focal(i, a):
    gamma, alpha = a.get("gamma", 2.0), a.get("alpha", 0.25)
    x, label = i["X"], i["Label"]
    p = 1 / (1 + np.exp(-x))
    own = label == np.arange(1, x.shape[1] + 1)
    loss = np.where(own, -alpha * (1 - p) ** gamma * np.log(p), -(1 - alpha) * p ** gamma * np.log(1 - p))
    return np.where(label == -1, 0, loss / max(1, int(i["FgNum"].reshape(-1)[0]))).astype(x.dtype)


KINDS = np.array([[1], [0], [3], [-1], [2]], "int32")
for gamma, alpha, count in ((2.0, 0.25, 3), (0.0, 0.5, 0), (1.5, 0.75, 2)):
    case("sigmoid_focal_loss", {"X": real(5, 3, lo=-3, hi=3), "Label": KINDS, "FgNum": np.array([count], "int32")},
         {"gamma": gamma, "alpha": alpha}, focal, rtol=3e-6, hostile=False)  # other labels count as no class
