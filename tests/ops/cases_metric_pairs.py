"""Pairs in the right order; precision and recall."""
import numpy as np
from op_case import case, integers, real


def share(part, rest):
    return part / (part + rest) if part > 0 or rest > 0 else 1.0


def f1(p, r):
    return 2 * p * r / (p + r) if p > 0 or r > 0 else 0.0


def measures(s):
    macro = [np.mean([share(tp, fp) for tp, fp, _, _ in s]), np.mean([share(tp, fn) for tp, _, _, fn in s])]
    tp, fp, _, fn = s.sum(0)
    micro = [share(tp, fp), share(tp, fn)]
    return np.array([*macro, f1(*macro), *micro, f1(*micro)])


def precision_recall(i, a):
    n = a["class_number"]
    given, label = i["Indices"].ravel(), i["Labels"].ravel()
    assert given.min(initial=0) >= 0 and label.min(initial=0) >= 0 and max(given.max(initial=0), label.max(initial=0)) < n
    w = i.get("Weights", np.ones((len(given), 1))).ravel().astype("float64")
    own = np.zeros((n, 4))
    for k in range(n):
        own[k] = [w[(given == k) & (label == k)].sum(), w[(given == k) & (label != k)].sum(),
                  w[(given != k) & (label != k)].sum(), w[(given != k) & (label == k)].sum()]
    states = own + i.get("StatesInfo", 0)
    return {"BatchMetrics": measures(own), "AccumMetrics": measures(states),
            "AccumStatesInfo": states.astype(i["MaxProbs"].dtype)}


SAMPLES = {"MaxProbs": real(8, 1, lo=0), "Indices": np.array([[0], [1], [2], [1], [0], [3], [2], [1]], "int32"),
           "Labels": np.array([[0], [1], [1], [1], [2], [3], [2], [0]], "int32")}
case("precision_recall", SAMPLES, {"class_number": 4}, precision_recall)
case("precision_recall", SAMPLES, {"class_number": 5}, precision_recall, name="a class without samples")
case("precision_recall", dict(SAMPLES, Weights=real(8, 1, lo=0.1), StatesInfo=np.arange(16.0).reshape(4, 4)),
     {"class_number": 4}, precision_recall, name="weights and earlier batches")


def ranked(i, a):
    score, label, query = i["Score"][:, a.get("column", -1)], i["Label"].ravel(), i["QueryID"].ravel()
    weight = i.get("Weight", np.ones((len(score), 1))).ravel()
    counts = np.zeros(3)
    for p in range(len(score)):
        for q in range(p):
            if query[p] != query[q] or label[p] == label[q]:
                continue
            w = (weight[p] + weight[q]) / 2
            counts[2] += w * (score[p] == score[q])
            counts[0 if (score[p] - score[q]) * (label[p] - label[q]) > 0 else 1] += w
    names = ("Positive", "Negative", "Neutral")
    return {n + "Pair": np.reshape(c + i.get("Accumulate%sPair" % n, [0.0])[0], 1).astype(score.dtype)
            for n, c in zip(names, counts)}


SCORE = real(7, 2, lo=0)
SCORE[3, 1] = SCORE[2, 1]
ANSWERS = {"Score": SCORE, "Label": integers(7, 1, hi=3).astype("float64"),
           "QueryID": np.array([[1], [1], [2], [2], [2], [1], [2]])}
ANSWERS["Label"][2:4] = [[0], [1]]
BEFORE = {"AccumulatePositivePair": np.array([10.0]), "AccumulateNegativePair": np.array([20.0]),
          "AccumulateNeutralPair": np.array([30.0])}
case("positive_negative_pair", ANSWERS, {}, ranked)
case("positive_negative_pair", dict(ANSWERS, Weight=real(7, 1, lo=0.5)), {"column": 0}, ranked, name="weights")
case("positive_negative_pair", dict(ANSWERS, **BEFORE), {"column": -2}, ranked, name="counts to begin with")
