"""Losses over very many classes, and the loss that draws samples to their centers."""
import numpy as np
from op_case import Rows, case, integers, real


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def chance(i, a, k):
    classes = a["num_total_classes"]
    if a.get("sampler", 0) == 0:
        return np.full(np.shape(k), 1 / classes)
    if a["sampler"] == 1:
        return np.log((k + 2) / (k + 1)) / np.log(classes)
    return i["CustomDistProbs"][k]


def nce(i, a):
    label = i["Label"]
    chosen = np.concatenate([label, np.tile(a["custom_neg_classes"], (len(label), 1))], 1)
    scores = np.einsum("nd,nkd->nk", i["Input"], i["Weight"][chosen])
    if "Bias" in i:
        scores = scores + i["Bias"].ravel()[chosen]
    o, b = sigmoid(scores), chance(i, a, chosen) * a["num_neg_samples"]
    own = np.arange(chosen.shape[1]) < label.shape[1]
    cost = -np.log(np.where(own, o, b) / (o + b)).sum(1, keepdims=True)
    cost = cost * i["SampleWeight"] if "SampleWeight" in i else cost
    return {"Cost": cost.astype(i["Input"].dtype), "SampleLogits": o, "SampleLabels": chosen}


IN = {"Input": real(3, 4), "Label": np.array([[1], [3], [0]]), "Weight": real(5, 4)}
NOISE = {"num_total_classes": 5, "num_neg_samples": 3, "custom_neg_classes": [4, 0, 4]}
TRAINED = ("Input", "Weight", "Bias")
case("nce", dict(IN, Bias=real(5, 1), SampleWeight=real(3, 1, lo=0.5, hi=2.0)), NOISE, nce, rtol=1e-5, grad=TRAINED,
     grad_outs=("Cost",), hostile=False)  # NumPy counts from the end, too
case("nce", IN, dict(NOISE, sampler=1), nce, rtol=1e-5, grad=TRAINED, grad_outs=("Cost",), name="by_rank", hostile=False)
OF_CLASSES = {"CustomDistProbs": np.array([0.125, 0.25, 0.25, 0.25, 0.125], "float32"), "CustomDistAlias": np.full(5, -1, "int32"),
              "CustomDistAliasProbs": np.ones(5, "float32")}
case("nce", dict(IN, Label=np.array([[1, 2], [3, 0], [0, 4]]), Bias=real(5, 1), **OF_CLASSES), dict(NOISE, sampler=2), nce,
     rtol=1e-5, grad=TRAINED, grad_outs=("Cost",), name="custom", hostile=False)
CHOSEN = np.array([[1, 4, 4], [3, 4, 4]])
SPARSE = {"Input": real(2, 4), "Label": CHOSEN[:, :1], "Weight": real(5, 4), "Bias": real(5, 1),
          "SampleLogits": sigmoid(real(2, 3)), "SampleLabels": CHOSEN, "Cost@GRAD": real(2, 1)}


def nce_rows(i, a):
    o, b = i["SampleLogits"], a["num_neg_samples"] / a["num_total_classes"]
    slope = np.where(np.arange(3) < 1, -b, o) * (1 - o) / (o + b) * i["Cost@GRAD"]
    values = (slope[..., None] * i["Input"][:, None]).reshape(6, 4)
    return {"Weight@GRAD": Rows(i["SampleLabels"].ravel(), 5, values.astype(i["Input"].dtype))}


case("nce_grad", SPARSE, dict(NOISE, num_neg_samples=2, custom_neg_classes=[4, 4], is_sparse=True), nce_rows, grad=(),
     name="rows", hostile=False, rtol=5e-6)


def tree_loss(i, a):
    x, w, b = i["X"], i["W"], i.get("Bias")
    longest = i["PathTable"].shape[1] if "PathTable" in i else int(a["num_classes"] - 1).bit_length()
    out, scores = np.zeros((len(x), 1)), np.zeros((len(x), longest))
    for n in range(len(x)):
        if "PathTable" in i:
            path = [(t, c) for t, c in zip(i["PathTable"][n], i["PathCode"][n])]
            path = path[:[t < 0 for t, _ in path].index(True)] if any(t < 0 for t, _ in path) else path
        else:
            leaf = int(i["Label"][n, 0]) + a["num_classes"]
            path = [((leaf >> (k + 1)) - 1, leaf >> k & 1) for k in range(leaf.bit_length() - 1)]
        for k, (row, yes) in enumerate(path):
            s = x[n] @ w[row] + (b.ravel()[row] if b is not None else 0)
            scores[n, k] = s
            out[n] += np.log1p(np.exp(s)) - yes * s
        out[n] += (longest - len(path)) * np.log(2)  # as in Fluid
    return {"Out": out.astype(x.dtype), "PreOut": scores.astype(x.dtype)}


PATHS = {"PathTable": np.array([[0, 2, -1], [0, 1, 4], [0, -1, -1]]), "PathCode": np.array([[0, 1, -1], [1, 0, 1], [1, -1, -1]])}
case("hierarchical_sigmoid", {"X": real(5, 4), "W": real(5, 4), "Label": np.arange(5)[:, None], "Bias": real(5, 1)},
     {"num_classes": 6}, tree_loss, rtol=1e-5, grad=("X", "W", "Bias"), grad_outs=("Out",))
case("hierarchical_sigmoid", {"X": real(4, 4), "W": real(3, 4), "Label": np.arange(4)[:, None]}, {"num_classes": 4},
     tree_loss, rtol=1e-5, grad=("X", "W"), grad_outs=("Out",), name="even")
case("hierarchical_sigmoid", dict(X=real(3, 4), W=real(6, 4), Label=integers(3, 1, hi=6), Bias=real(6, 1), **PATHS),
     {"num_classes": 6}, tree_loss, rtol=1e-5, grad=("X", "W", "Bias"), grad_outs=("Out",), name="custom", hostile=False)


def sampled(i, a):
    chosen = i["CustomizedSamples"]
    own = i["Labels"].shape[1]
    scores = np.take_along_axis(i["Logits"], chosen, 1) - np.log(i["CustomizedProbabilities"])
    if a["remove_accidental_hits"]:
        hit = (chosen[:, own:, None] == chosen[:, None, :own]).any(2)
        scores[:, own:] = np.where(hit, np.take_along_axis(i["Logits"], chosen[:, own:], 1) - 1e20, scores[:, own:])
    return {"Samples": chosen, "SampledLogits": scores, "SampledLabels": np.tile(np.arange(own), (len(chosen), 1))}


GIVEN = {"Logits": real(2, 6), "Labels": np.array([[1], [4]]), "CustomizedSamples": np.array([[1, 0, 2], [4, 0, 2]]),
         "CustomizedProbabilities": real(2, 3, lo=0.1, hi=0.9)}
OWN = {"use_customized_samples": True, "num_samples": 2, "remove_accidental_hits": False}
case("sample_logits", GIVEN, OWN, sampled, grad=("Logits",), grad_outs=("SampledLogits",), rtol=5e-6, hostile=False)
case("sample_logits", dict(GIVEN, CustomizedSamples=np.array([[1, 0, 1], [4, 0, 2]])), dict(OWN, remove_accidental_hits=True),
     sampled, grad=(), rtol=1e-5, name="hits", hostile=False)  # both: NumPy counts from the end, too
case("sample_logits", {"Logits": real(2, 6), "Labels": np.array([[1], [4]])}, {"num_samples": 6, "seed": 3}, grad=(),
     grad_outs=("SampledLogits",), name="all", dtypes=("float32",))


def center_loss(i, a):
    x, centers, label = i["X"], i["Centers"].copy(), i["Label"].ravel()
    difference = x - centers[label]
    if a["need_update"]:
        for k in set(label.tolist()):
            mine = label == k
            centers[k] += i["CenterUpdateRate"][0] * difference[mine].sum(0) / (1 + mine.sum())
    return {"Loss": (difference ** 2).sum(1, keepdims=True) / 2, "SampleCenterDiff": difference, "CentersOut": centers}


DRAWN = {"X": real(6, 3), "Label": np.array([[0], [2], [2], [0], [2], [3]]), "Centers": real(4, 3),
         "CenterUpdateRate": np.array([0.1])}
case("center_loss", DRAWN, {"cluster_num": 4, "need_update": True}, center_loss, grad=("X",), grad_outs=("Loss",),
     rtol=5e-6, hostile=False)
case("center_loss", DRAWN, {"cluster_num": 4, "need_update": False}, center_loss, grad=("X",), grad_outs=("Loss",),
     name="fixed", rtol=5e-6, hostile=False)  # both: NumPy counts from the end, too


def skip_gram(i, a):
    context, drawn = i["Context"], i["Negatives"]
    n, width = context.shape
    drawn = np.repeat(drawn[:, None], width, 1) if a.get("shared") else drawn.reshape(n, width, -1)
    targets = np.concatenate([np.repeat(i["Centre"][:, None], width, 1), drawn], 2)                # [N, W, 1 + K]
    x = np.einsum("nwd,nwkd->nwk", i["Words"][context], i["Contexts"][targets])
    own = np.arange(x.shape[2]) < 1
    present = i.get("Present", np.ones((n, width), x.dtype))
    loss = (np.log1p(np.exp(np.where(own, -x, x))).sum(2) * present).sum(1, keepdims=True)
    return {"Loss": loss.astype(x.dtype), "Slopes": ((sigmoid(x) - own) * present[:, :, None]).astype(x.dtype)}


WINDOWS = {"Words": real(6, 5), "Contexts": real(7, 5), "Context": np.array([[0, 2, 2], [5, 1, 0]]),
           "Centre": np.array([[3], [6]])}
OWN, IN_COMMON = integers(2, 6, hi=7), np.array([[1, 3, 1, 0], [2, 2, 5, 6]])
for _name, _more, _attrs in (("own", {"Negatives": OWN}, {}), ("shared", {"Negatives": IN_COMMON}, {"shared": True}),
                             ("filled", {"Negatives": OWN, "Present": np.array([[1.0, 0, 1], [0, 1, 0]])}, {})):
    case("skip_gram", dict(WINDOWS, **_more), _attrs, skip_gram, rtol=1e-5, grad=("Words", "Contexts"),
         grad_outs=("Loss",), name=_name, hostile=False,  # NumPy counts from the end, too
         large=dict({k: v for k, v in WINDOWS.items() if k != "Centre"}, Context=integers(900, 3, hi=6),
                    Centre=integers(900, 1, hi=7), Negatives=integers(900, 4 if _attrs else 6, hi=7),
                    **({"Present": integers(900, 3, hi=2).astype("float64")} if "Present" in _more else {})))
