"""Counts: accuracy, the area under the ROC curve, the overlap of classes."""
import numpy as np
from op_case import case, integers, real

LABEL = np.array([[2], [0], [3], [1]])
INDICES = np.array([[2, 1], [1, 0], [1, 2], [0, 3]])


def accuracy(i, a):
    """A row is right when its label is among the places of its largest predictions."""
    indices, label = i["Indices"], i["Label"]
    assert label.shape == (len(indices), 1) and indices.ndim == 2
    right = np.any(indices == label, axis=1)
    return {"Accuracy": np.array([right.mean() if right.size else 0], "float32"), "Correct": np.array([right.sum()], "int32"),
            "Total": np.array([len(right)], "int32")}


case("accuracy", {"Out": real(4, 2), "Indices": INDICES, "Label": LABEL}, {}, accuracy)
case("accuracy", {"Out": real(9, 1), "Indices": integers(9, 1, hi=3), "Label": integers(9, 1, hi=3)}, {}, accuracy,
     name="top1")
case("accuracy", {"Out": real(700, 3), "Indices": integers(700, 3, hi=12), "Label": integers(700, 1, hi=12)}, {}, accuracy,
     name="top3", hostile=False)  # as the first one
case("accuracy", {"Out": real(3, 2), "Indices": np.array([[0, 1]] * 3), "Label": np.array([[5]] * 3)}, {}, accuracy,
     name="none", hostile=False)  # as the first one


def area(pos, neg, curve="ROC"):
    """Trapezoids, thresholds falling."""
    p, n = np.cumsum(pos[::-1]), np.cumsum(neg[::-1])
    if curve == "PR":
        p, n = p[p + n > 0], n[p + n > 0]
        precision, recall = p / (p + n), p / max(p[-1], 1)
        return np.trapezoid(np.append(precision[0], precision), np.append(0, recall))
    return np.trapezoid(np.append(0, p), np.append(0, n)) / max(p[-1] * n[-1], 1)


def auc(i, a):
    buckets, steps = a["num_thresholds"] + 1, a["slide_steps"]
    at = (i["Predict"][:, -1].astype("float64") * a["num_thresholds"]).astype(int)
    stats = {}
    for slot, chosen in (("StatPos", i["Label"][:, 0] > 0), ("StatNeg", i["Label"][:, 0] == 0)):
        now = np.bincount(at[chosen], minlength=buckets)
        old = i[slot].ravel()
        if steps == 0:
            stats[slot] = old + now
            continue
        ring, counter = old[:-1].reshape(steps + 1, buckets).copy(), old[-1]
        ring[-1] += now - ring[counter % steps]
        ring[counter % steps] = now
        stats[slot] = np.append(ring.ravel(), counter + 1)
    seen = [s if steps == 0 else s[-1 - buckets:-1] for s in (stats["StatPos"], stats["StatNeg"])]
    return {"AUC": np.array([area(*seen, a.get("curve", "ROC"))]), "StatPosOut": stats["StatPos"].reshape(i["StatPos"].shape),
            "StatNegOut": stats["StatNeg"].reshape(i["StatNeg"].shape)}


def ring(steps, buckets, count):
    blocks = integers(steps, buckets, hi=4)
    return np.concatenate([blocks.ravel(), blocks.sum(0), [count]])


PREDICT, CLICK = real(9, 2, lo=0.0, hi=1.0), integers(9, 1, hi=2)
case("auc", {"Predict": PREDICT, "Label": CLICK, "StatPos": integers(1, 8, hi=3), "StatNeg": integers(1, 8, hi=3)},
     {"num_thresholds": 7, "slide_steps": 0}, auc, hostile=False)  # other bounds of Predict than the reference's
case("auc", {"Predict": PREDICT, "Label": CLICK, "StatPos": ring(3, 8, 4), "StatNeg": ring(3, 8, 4)},
     {"num_thresholds": 7, "slide_steps": 3}, auc, name="sliding", hostile=False)  # as above
case("auc", {"Predict": PREDICT, "Label": CLICK, "StatPos": integers(1, 8, hi=3), "StatNeg": integers(1, 8, hi=3)},
     {"num_thresholds": 7, "slide_steps": 0, "curve": "PR"}, auc, name="precision", hostile=False)  # as above


def mean_iou(i, a):
    p, y, n = i["Predictions"].ravel(), i["Labels"].ravel(), a["num_classes"]
    wrong = np.bincount(p[p != y], minlength=n) + np.bincount(y[(p != y) & (y >= 0) & (y < n)], minlength=n)
    correct = np.bincount(p[p == y], minlength=n)
    wrong, correct = (c + sum(i.get(s, [])) for c, s in ((wrong, "InWrongs"), (correct, "InCorrects")))
    some = wrong + correct != 0
    mean = (correct[some] / (wrong + correct)[some]).mean() + sum(float(m[0]) for m in i.get("InMeanIou", []))
    return {"OutMeanIou": np.array([mean], "float32"), "OutWrong": wrong.astype("int32"),
            "OutCorrect": correct.astype("int32")}


CLASSES = {"Predictions": integers(3, 4, hi=4, dtype="int32"), "Labels": integers(3, 4, hi=4, dtype="int32")}
case("mean_iou", CLASSES, {"num_classes": 4}, mean_iou, dtypes=("float32",))
case("mean_iou", dict(CLASSES, Labels=np.array([[0, 255, 1, 2], [-1, 3, 255, 4], [1, 0, 2, 3]], "int32")), {"num_classes": 4},
     mean_iou, dtypes=("float32",), name="ignored")
COUNTS = {"InWrongs": [integers(5, dtype="int32")], "InCorrects": [integers(5, dtype="int32"), integers(5, dtype="int32")],
          "InMeanIou": [np.array([0.25], "float32")]}
case("mean_iou", dict(CLASSES, **COUNTS), {"num_classes": 5}, mean_iou, dtypes=("float32",), name="counts")
