"""Losses: of every element alone, over classes, of distances, of order."""
import numpy as np
from op_case import Seq, apart, case, integers, real, skip

LABEL = np.array([[2], [0], [3], [1], [2]])


def probabilities(*shape, axis=-1):
    x = real(*shape, lo=0.1, hi=1.0)
    return x / x.sum(axis, keepdims=True)


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def pick(x, label, axis=-1):
    """x at the label of each sample; labels below 0 give x at 0."""
    label = label if label.ndim == x.ndim else label[..., None]
    return np.take_along_axis(x, np.maximum(label, 0), axis)


def ignoring(loss, label, ignored):
    return np.where(label.reshape(loss.shape) == ignored, 0, loss).astype(loss.dtype)


P, SOFT = probabilities(5, 4), probabilities(5, 4)


def hard(i, a):
    loss = ignoring(-np.log(pick(i["X"], i["Label"])), i["Label"], a.get("ignore_index", -100))
    return {"Y": loss.reshape(i["Label"].shape)}


for op in ("cross_entropy", "cross_entropy2"):
    case(op, {"X": P, "Label": LABEL}, {}, hard, large={"X": probabilities(900, 10), "Label": integers(900, 1, hi=10)})
    case(op, {"X": P, "Label": LABEL}, {"ignore_index": 2}, hard, name="ignore")
    case(op, {"X": probabilities(2, 3, 4), "Label": integers(2, 3, 1, hi=4)}, {}, hard, name="more_axes")
    case(op, {"X": P, "Label": LABEL[:, 0]}, {}, hard, name="flat_labels")
case("cross_entropy", {"X": P, "Label": SOFT}, {"soft_label": True},
     lambda i, a: -(i["Label"] * np.log(i["X"])).sum(-1, keepdims=True), name="soft", grad=("X",))
case("cross_entropy", {"X": Seq(P, [[2, 3]]), "Label": LABEL}, {},
     lambda i, a: Seq(hard({"X": i["X"].array, "Label": i["Label"]}, a)["Y"], i["X"].lengths), name="sequences")


def with_logits(i, a):
    axis = a.get("axis", -1)
    p = softmax(i["Logits"], axis)
    if a.get("soft_label"):
        return {"Softmax": p, "Loss": -(i["Label"] * np.log(p)).sum(axis, keepdims=True)}
    loss = -np.log(pick(p, i["Label"], axis))
    return {"Softmax": p, "Loss": ignoring(loss, i["Label"], a.get("ignore_index", -100))}


def ce(logits, label, attrs, name="", **options):
    case("softmax_with_cross_entropy", {"Logits": logits, "Label": label}, attrs, with_logits, grad=("Logits",),
         grad_outs=("Loss",), name=name, rtol=5e-6, **options)


ce(real(5, 4, lo=-2, hi=2), LABEL, {}, large={"Logits": real(700, 40), "Label": integers(700, 1, hi=40)})
ce(real(5, 4, lo=-20, hi=20), LABEL, {"ignore_index": 2}, "ignore")
ce(real(5, 4), SOFT, {"soft_label": True}, "soft")
ce(real(3, 4, 5), integers(3, 1, 5, hi=4), {"axis": 1}, "axis")
ce(real(2, 3, 90), probabilities(2, 3, 90, axis=1), {"axis": 1, "soft_label": True}, "soft_axis")


def sigmoid_ce(i, a):
    x, y = i["X"], i["Label"]
    loss = np.maximum(x, 0) - x * y + np.log1p(np.exp(-np.abs(x)))
    counts = np.trunc(y) != a.get("ignore_index", -100)
    return np.where(counts, loss, 0) / (max(counts.sum(), 1) if a.get("normalize") else 1)


case("sigmoid_cross_entropy_with_logits", {"X": apart(5, 3), "Label": real(5, 3, lo=0, hi=1)}, {}, sigmoid_ce, grad=("X",),
     large={"X": real(301, 33), "Label": real(301, 33, lo=0, hi=1)})
case("sigmoid_cross_entropy_with_logits", {"X": apart(5, 3), "Label": integers(5, 3, lo=-1, hi=2).astype("float64")},
     {"ignore_index": -1, "normalize": True}, sigmoid_ce, grad=("X",), name="ignore")
BINARY = np.array([[0.0], [1.0], [1.0], [0.0], [0.3]])
case("log_loss", {"Predicted": real(5, 1, lo=0.1, hi=0.9), "Labels": BINARY}, {"epsilon": 2.0 ** -10}, grad=("Predicted",),
     ref=lambda i, a: -i["Labels"] * np.log(i["Predicted"] + a["epsilon"])
     - (1 - i["Labels"]) * np.log(1 - i["Predicted"] + a["epsilon"]))
case("hinge_loss", {"Logits": apart(5, 1, step=0.4), "Labels": np.round(BINARY)}, {}, grad=("Logits",),
     ref=lambda i, a: np.maximum(0, 1 - i["Logits"] * (2 * i["Labels"] - 1)))


def teacher_student(i, a):
    x, y = i["X"], i["Label"]
    s = np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))
    return np.select([y < -1, y < 0, y < 1], [s, s - x, s + s - x * y], s - x + s - x * (y - 1))


case("teacher_student_sigmoid_loss", {"X": real(6, 1, lo=-2, hi=2), "Label": np.array([[-2], [-1], [0.3], [0.8], [1.2], [1.9]])},
     {}, teacher_student, grad=("X",))


def huber(i, a):
    r = i["Y"] - i["X"]
    return {"Residual": r, "Out": np.where(np.abs(r) <= a["delta"], r * r / 2, a["delta"] * (np.abs(r) - a["delta"] / 2))}


case("huber_loss", {"X": apart(6, 1), "Y": real(6, 1)}, {"delta": 0.25}, huber, grad_outs=("Out",))


def smooth_l1(i, a):
    d = (i["X"] - i["Y"]) * i.get("InsideWeight", 1)
    s = a.get("sigma", 1.0) ** 2
    each = np.where(np.abs(d) < 1 / s, s * d * d / 2, np.abs(d) - 0.5 / s) * i.get("OutsideWeight", 1)
    return {"Diff": d, "Out": each.reshape(len(d), -1).sum(1, keepdims=True)}


case("smooth_l1_loss", {"X": apart(4, 3), "Y": real(4, 3)}, {}, smooth_l1, grad_outs=("Out",))
case("smooth_l1_loss", {"X": apart(4, 3), "Y": real(4, 3), "InsideWeight": real(4, 3, lo=0.2),
                        "OutsideWeight": real(4, 3, lo=0.2)}, {"sigma": 2.0}, smooth_l1, grad=("X", "Y"), grad_outs=("Out",),
     name="weights")


def kldiv(i, a):
    y = i["Target"]
    each = np.where(y > 0, y * (np.log(np.where(y > 0, y, 1)) - i["X"]), 0)
    how = a["reduction"]
    if how == "none":
        return each
    return np.array([each.sum() / {"sum": 1, "mean": each.size, "batchmean": len(y)}[how]])


TARGET = np.where(real(4, 5) > 0.3, 0.0, real(4, 5, lo=0.1, hi=1))
for reduction in ("none", "sum", "mean", "batchmean"):
    case("kldiv_loss", {"X": real(4, 5, lo=-3, hi=-0.1), "Target": TARGET}, {"reduction": reduction}, kldiv, grad=("X",),
         name=reduction)
case("rank_loss", {"Label": BINARY, "Left": real(5, 1), "Right": real(5, 1)}, {}, grad=("Left", "Right"),
     ref=lambda i, a: np.log1p(np.exp(i["Left"] - i["Right"])) - i["Label"] * (i["Left"] - i["Right"]))
case("rank_loss", {"Label": BINARY[:, 0], "Left": real(5, 1), "Right": real(5)}, {}, grad=("Left", "Right"), name="axes",
     ref=lambda i, a: np.log1p(np.exp(i["Left"][:, 0] - i["Right"])) - i["Label"] * (i["Left"][:, 0] - i["Right"]))
case("margin_rank_loss", {"X1": apart(5, 1), "X2": real(5, 1, hi=-0.9), "Label": 2 * np.round(BINARY) - 1}, {"margin": 0.25},
     lambda i, a: {"Out": np.maximum(0, a["margin"] - i["Label"] * (i["X1"] - i["X2"]))}, grad=("X1", "X2"), grad_outs=("Out",))


def bpr(i, a):
    x = i["X"]
    each = np.log1p(np.exp(x - pick(x, i["Label"])))
    return (each.sum(-1, keepdims=True) - np.log(2)) / (x.shape[-1] - 1)


case("bpr_loss", {"X": real(5, 4), "Label": LABEL}, {}, bpr)
skip("cross_entropy_grad2", "the gradient of cross_entropy2, whose cases test it")

# ---- labels, constants


def smooth(i, a):
    prior = i.get("PriorDist", np.asarray(1 / i["X"].shape[-1], i["X"].dtype))
    e = np.asarray(a["epsilon"], i["X"].dtype)
    return (1 - e) * i["X"] + e * prior


case("label_smooth", {"X": real(3, 4, lo=0)}, {"epsilon": 0.125}, ref=smooth)
case("label_smooth", {"X": real(3, 4, lo=0), "PriorDist": np.array([[0.5, 0.25, 0.125, 0.125]])}, {"epsilon": 0.125}, ref=smooth,
     grad=["X"])
case("sigmoid_cross_entropy_with_logits", {"X": apart(5, 3), "Label": real(5, 3, lo=0, hi=2)}, {"ignore_index": 1}, sigmoid_ce,
     grad=("X",), name="ignore_soft")
