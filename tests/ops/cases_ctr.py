"""Operators of click-through and recall models."""
import numpy as np
from op_case import Seq, apart, case, integers, real

LENGTHS = [[3, 1, 5]]


def cosine(i, a):
    x, y = (v.reshape(len(v), -1) for v in (i["X"], i["Y"]))
    x_norm, y_norm = (np.sqrt((v * v).sum(1, keepdims=True)) for v in (x, y))
    return {"Out": (x * y).sum(1, keepdims=True) / x_norm / y_norm, "XNorm": x_norm, "YNorm": y_norm}


case("cos_sim", {"X": real(5, 4), "Y": real(5, 4)}, {}, cosine, large={"X": real(900, 70), "Y": real(900, 70)}, rtol=5e-6)
case("cos_sim", {"X": real(5, 4), "Y": real(1, 4)}, {}, cosine, name="one", rtol=5e-6)
case("cos_sim", {"X": real(3, 2, 2), "Y": real(3, 2, 2)}, {}, cosine, name="axes", rtol=5e-6)
case("cos_sim", {"X": np.zeros((2, 3)), "Y": real(2, 3)}, {}, lambda i, a: {"Out": np.zeros((2, 1))}, name="zero", grad=(),
     hostile=False)  # the reference is zero whatever the inputs are


def other_width(i, a):
    n = a["new_dim"]
    x = i["X"]
    return Seq(x.array.reshape(-1, n), [[k * x.array.shape[1] // n for k in x.lengths[0]]])


case("sequence_reshape", {"X": Seq(apart(8, 3), [[2, 6]])}, {"new_dim": 6}, other_width)
case("sequence_reshape", {"X": Seq(apart(9, 3), LENGTHS)}, {"new_dim": 1}, other_width, name="narrow")


def pieces(s):
    ends = np.cumsum(s.lengths[-1])
    return [s.array[e - n:e] for e, n in zip(ends, s.lengths[-1])]


def windows(i, a):
    rows = []
    for p in pieces(i["X"]):
        padded = np.append(p[:, 0], [a["pad_value"]] * a["win_size"])
        rows += [padded[t:t + a["win_size"]] for t in range(len(p))]
    return Seq(np.stack(rows).astype(i["X"].array.dtype), i["X"].lengths)


IDS = Seq(integers(9, 1, hi=6), LENGTHS)
case("sequence_enumerate", {"X": IDS}, {"win_size": 3, "pad_value": 9}, windows, dtypes=("float32",))
case("sequence_enumerate", {"X": Seq(integers(5, 1, dtype="int32"), [[3, 0, 2]])}, {"win_size": 4, "pad_value": -1}, windows,
     name="gaps", dtypes=("float32",))


def erased(i, a):
    parts = [[v for v in p[:, 0] if v not in a["tokens"]] for p in pieces(i["X"])]
    array = np.array([v for p in parts for v in p], i["X"].array.dtype).reshape(-1, 1)
    return Seq(array, i["X"].lengths[:-1] + [[len(p) for p in parts]])


TOKENS = np.array([[2], [2], [1], [3], [4]])
case("sequence_erase", {"X": Seq(TOKENS, [[3, 2]])}, {"tokens": [2, 3]}, erased, dtypes=("float32",))
case("sequence_erase", {"X": Seq(TOKENS, [[1, 1], [2, 3]])}, {"tokens": [2]}, erased, name="levels", dtypes=("float32",))


def scattered(i, a):
    out = i["X"].copy()
    at = 0
    for row, p in enumerate(pieces(i["Ids"])):
        for place in p[:, 0]:
            out[row, place] += np.ravel(i["Updates"].array if isinstance(i["Updates"], Seq) else i["Updates"])[at]
            at += 1
    return out


PLACES = Seq(np.array([[0], [1], [2], [5], [4], [3], [2], [1], [3]]), LENGTHS)
case("sequence_scatter", {"X": real(3, 6), "Ids": PLACES, "Updates": Seq(real(9, 1), LENGTHS)}, {}, scattered,
     hostile=False)  # the reference counts places from the end, too


def log_counts(i, a):
    x = i["X"]
    if not a["use_cvm"]:
        return x[:, 2:]
    return np.concatenate([np.log(x[:, :1] + 1), np.log(x[:, 1:2] + 1) - np.log(x[:, :1] + 1), x[:, 2:]], 1)


for use_cvm in (True, False):
    name = "kept" if use_cvm else "left_off"
    case("cvm", {"X": real(4, 5, lo=0.0, hi=3.0), "CVM": real(4, 2)}, {"use_cvm": use_cvm}, log_counts, name=name, grad=())
    # what it gives back for the counts is no derivative
    case("cvm_grad", {"X": real(4, 5), "CVM": real(4, 2), "Y@GRAD": real(4, 5 if use_cvm else 3)}, {"use_cvm": use_cvm},
         lambda i, a: np.concatenate([i["CVM"], i["Y@GRAD"][:, 2 if a["use_cvm"] else 0:]], 1), name=name, grad=(),
         hostile=False)  # the reference takes any width of the gradient
HASHES = {0: (395291579, 882295055), 1: (449061269, 644089609), 123456789012: (543749408, 202815584)}
case("hash", {"X": np.array([[0], [1], [123456789012]])}, {"num_hash": 2, "mod_by": 10**9}, dtypes=("float32",),
     hostile=False, ref=lambda i, a: np.array([HASHES[k] for k in i["X"][:, 0]])[..., None])  # hashes of these keys
case("hash", {"X": np.array([[0, 1]])}, {"num_hash": 3, "mod_by": 10**9}, name="pair", dtypes=("float32",), hostile=False,
     ref=lambda i, a: np.array([[[587585787], [19853649], [448799435]]]))  # the hashes of this very input


def pooled(i, a):
    rows = [sum((i["W"][k] for k in p[:, 0] if k != a["padding_idx"]), np.zeros(i["W"].shape[1])) for p in pieces(i["Ids"])]
    return np.stack(rows).astype(i["W"].dtype)


POOL = {"combiner": "sum", "padding_idx": 2}
case("fused_embedding_seq_pool", {"W": real(6, 3), "Ids": IDS}, dict(POOL, padding_idx=-1), pooled, hostile=False)
case("fused_embedding_seq_pool", {"W": real(6, 3), "Ids": Seq(np.array([[2], [1], [1], [5]]), [[2, 0, 2]])}, POOL, pooled,
     name="padding", hostile=False)  # both: NumPy counts from the end, too


def tagged(i, a):
    parts = pieces(i["Ins"]) if a["is_lod"] else [r[None] for r in i["Ins"]]
    wanted = set(i["Filter_tag"])
    kept = [p for p, t in zip(parts, pieces(i["Ins_tag"])) if wanted & set(t[:, 0])]
    out = np.concatenate(kept)
    return {"Out": Seq(out, [[len(p) for p in kept]]), "LossWeight": Seq(np.ones((len(kept), 1), "float32"), [[1] * len(kept)])}


TAGS = Seq(np.array([[1], [2], [3], [1]]), [[1, 2, 1]])
WANTED = np.array([7, 1])
case("filter_by_instag", {"Ins": Seq(real(9, 2), LENGTHS), "Ins_tag": TAGS, "Filter_tag": WANTED}, {"is_lod": True}, tagged,
     grad=())
case("filter_by_instag", {"Ins": real(3, 2), "Ins_tag": TAGS, "Filter_tag": WANTED}, {"is_lod": False}, tagged, grad=(),
     name="rows")
case("filter_by_instag", {"Ins": real(3, 2), "Ins_tag": TAGS, "Filter_tag": np.array([9])},
     {"is_lod": False, "out_val_if_empty": 3}, grad=(), name="none", hostile=False,  # its tag is nowhere
     ref=lambda i, a: {"Out": Seq(np.full((1, 2), 3.0), [[1]]), "LossWeight": Seq(np.zeros((1, 1), "float32"), [[1]])})
# the gradient is of an output that carries sequences; the weights of these tests carry none
case("filter_by_instag_grad", {"Ins": real(4, 2), "LossWeight": np.ones((2, 1), "float32"),
                               "IndexMap": np.array([[0, 0, 1], [1, 2, 2]]), "Out@GRAD": real(3, 2)}, {}, grad=(),
     ref=lambda i, a: np.stack([i["Out@GRAD"][0], 0 * i["Out@GRAD"][0], i["Out@GRAD"][1], i["Out@GRAD"][2]]),
     hostile=False)  # the reference knows this map only


def data_norm(i, a):
    mean, scale = i["BatchSum"] / i["BatchSize"], np.sqrt(i["BatchSize"] / i["BatchSquareSum"])
    y = (i["X"] - mean) * scale
    if a.get("slot_dim", -1) > 0:
        shown = np.abs(i["X"][:, ::a["slot_dim"]]) > 1e-7
        y = y * np.repeat(shown, a["slot_dim"], 1)
    if a.get("enable_scale_and_shift"):
        y = y * i["scale_w"] + i["bias"]
    return {"Y": y, "Means": mean, "Scales": scale}


STATISTICS = {"BatchSize": real(4, lo=5.0, hi=9.0), "BatchSum": real(4), "BatchSquareSum": real(4, lo=5.0, hi=9.0)}
SHOWN = np.array([[0.0, 1.0, 2.0, 3.0], [1.0, 0.0, 0.0, 5.0], [2.0, 4.0, 0.0, 1.0]])
case("data_norm", dict(X=real(3, 4), **STATISTICS), {"epsilon": 2.0**-10}, data_norm, grad=("X",), grad_outs=("Y",))
case("data_norm", dict(X=real(3, 4), scale_w=real(4), bias=real(4), **STATISTICS), {"enable_scale_and_shift": True},
     data_norm, grad=("X", "scale_w", "bias"), grad_outs=("Y",), name="shifted")
case("data_norm", dict(X=SHOWN, **STATISTICS), {"slot_dim": 2}, data_norm, grad=(), name="slots")


def added(i, a):
    """What a batch adds to the statistics."""
    x, slots, epsilon = i["X"], a.get("slot_dim", -1), a["epsilon"]
    shown = np.repeat(np.abs(x[:, ::slots]) > 1e-7, slots, 1) if slots > 0 else np.ones(x.shape, bool)
    n = shown.sum(0)
    total, square = (x * shown).sum(0), ((x - i["Means"]) ** 2 * shown).sum(0)
    if slots > 0:
        total, square, n, square_n = total / n, square / n, n * 0 + 1, n
        square = square + square_n * epsilon
    else:
        square = square + n * epsilon
    return {"X@GRAD": i["Y@GRAD"] * i["Scales"], "BatchSize@GRAD": n.astype(x.dtype), "BatchSum@GRAD": total,
            "BatchSquareSum@GRAD": square}


BACK = {"Means": real(4), "Scales": real(4, lo=0.5, hi=1.0), "Y@GRAD": real(3, 4)}
case("data_norm_grad", dict(X=real(3, 4), **BACK), {"epsilon": 2.0**-10}, added, grad=())
case("data_norm_grad", dict(X=SHOWN, **BACK), {"epsilon": 2.0**-10, "slot_dim": 2}, added, grad=(), name="slots")
