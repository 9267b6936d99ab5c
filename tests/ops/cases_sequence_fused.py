"""Operators that 1.8.5 puts into models saved for inference: each is compared with the parts that it is made of."""
import cases_sequence
import cases_sequence_recurrent as recurrent
import numpy as np
from op_case import Seq, case, integers, real

LENGTHS = [[2, 0, 4, 1, 2]]
ROWS, SEQUENCES = 9, 5
FLAT = {"large_rtol": 1e-4, "rtol": 2e-5}


def with_input(i, x):
    return {"Input": Seq(x, i.get("X", i.get("Ids")).lengths), "Weight": i["WeightH"],
            **{k: v for k, v in i.items() if k in ("H0", "C0")}}


def gru(i, a):
    x = i["X"].array @ i["WeightX"] + i.get("Bias", 0)
    return recurrent.gru(with_input(i, x), a)


X, D = Seq(real(ROWS, 3), LENGTHS), 2
case("fusion_gru", {"X": X, "WeightX": real(3, 3 * D), "WeightH": real(D, 3 * D), "Bias": real(1, 3 * D)}, {}, gru, **FLAT)
case("fusion_gru", {"X": X, "WeightX": real(3, 3 * D), "WeightH": real(D, 3 * D), "H0": real(SEQUENCES, D)},
     {"is_reverse": True, "origin_mode": True, "activation": "relu"}, gru, name="backwards", **FLAT)


def lstm(i, a):
    d = len(i["WeightH"])
    ids = i.get("Ids")
    x = i["Embeddings"][ids.array[:, 0]] if ids else i["X"].array @ i["WeightX"]
    assert ids is None or ids.array.min() >= 0
    assert i["Bias"].size == (7 if a.get("use_peepholes", True) else 4) * d
    bias = i["Bias"].ravel().copy()
    if ids is not None:
        bias[:4 * d] = 0  # the table has it
    got = recurrent.lstm(dict(with_input(i, x), Bias=bias[None]), a)
    return {"Hidden": got["Hidden"], "Cell": got["Cell"]}


FIRST = {"H0": real(SEQUENCES, D), "C0": real(SEQUENCES, D)}
PLAIN = {"use_peepholes": False}
BACKWARDS = {"is_reverse": True, "candidate_activation": "relu"}
for op, x in (("fusion_lstm", {"X": X, "WeightX": real(3, 4 * D)}),
              ("fused_embedding_fc_lstm", {"Ids": Seq(integers(ROWS, 1, hi=5), LENGTHS), "Embeddings": real(5, 4 * D)})):
    case(op, {**x, "WeightH": real(D, 4 * D), "Bias": real(1, 4 * D)}, PLAIN, lstm, **FLAT)
    case(op, {**x, "WeightH": real(D, 4 * D), "Bias": real(1, 7 * D), **FIRST}, BACKWARDS, lstm, name="backwards", **FLAT)


def convolved(i, a):
    assert a["contextStride"] == 1 and a["contextLength"] > 0
    out = cases_sequence.context({"X": i["X"], "Filter": i["Filter"]}, a)
    return Seq(np.maximum(out.array + i["Bias"].ravel(), 0).astype(i["Bias"].dtype), out.lengths)


case("fusion_seqconv_eltadd_relu", {"X": X, "Filter": real(9, 4), "Bias": real(1, 4)}, cases_sequence.CONV, convolved, rtol=1e-5)
case("fusion_seqconv_eltadd_relu", {"X": X, "Filter": real(6, 2), "Bias": real(2)},
     dict(cases_sequence.CONV, contextLength=2, contextStart=0), convolved, name="ahead", rtol=1e-5)


def pooled(i, a):
    by = {"SUM": lambda n: 1, "AVERAGE": lambda n: n, "SQRT": np.sqrt}[a["pooltype"]]
    assert a.get("axis", 1) == 1
    parts = []
    for x in i["X"]:
        rows = np.stack([p.sum(0) / (by(len(p)) if len(p) else 1) for p in cases_sequence.split(x)])
        if "CVM" in i:
            shows, clicks = np.log(rows[:, 0] + 1), np.log(rows[:, 1] + 1)
            rows = np.concatenate([np.stack([shows, clicks - shows], 1), rows[:, 2:]], axis=1)
        parts.append(rows)
    out = np.concatenate(parts, axis=1).astype(i["X"][0].array.dtype)
    return Seq(out, [[1] * len(out)])


PARTS = [Seq(real(5, 3, lo=0.1), [[2, 0, 3]]), Seq(real(4, 3, lo=0.1), [[1, 2, 1]])]
for kind in ("SUM", "AVERAGE", "SQRT"):
    case("fusion_seqpool_concat", {"X": PARTS}, {"pooltype": kind}, pooled, name=kind.lower())
    case("fusion_seqpool_cvm_concat", {"X": PARTS, "CVM": real(3, 2)}, {"pooltype": kind}, pooled, name=kind.lower(), rtol=5e-6)


def expanded(i, a):
    x, *others = i["X"]
    lengths = x.lengths[-1]
    assert all(len(o.array if isinstance(o, Seq) else o) == len(lengths) for o in others)
    wide = [np.repeat(o.array if isinstance(o, Seq) else o, lengths, 0) for o in others]
    out = np.concatenate([x.array, *wide], axis=1) @ i["FCWeight"] + i.get("FCBias", np.zeros(1)).ravel()
    return Seq(recurrent.ACT[a.get("fc_activation", "identity")](out).astype(x.array.dtype), x.lengths)


ONES = [[1] * SEQUENCES]
case("fusion_seqexpand_concat_fc", {"X": [X, Seq(real(SEQUENCES, 2), ONES), Seq(real(SEQUENCES, 1), ONES)],
                                    "FCWeight": real(6, 4), "FCBias": real(1, 4)}, {"fc_activation": "relu"}, expanded, rtol=1e-5)
case("fusion_seqexpand_concat_fc", {"X": [X, real(SEQUENCES, 2)], "FCWeight": real(5, 3)}, {}, expanded, name="plain", rtol=1e-5)


def reader(i, a):
    rows, d = i["X"].array, i["LSTMWeight"].shape[1] // 4
    m, attention = rows.shape[1], i["AttentionWeight"].ravel()
    act = recurrent.ACT
    hidden, cell = np.zeros((len(rows), d)), np.zeros((len(rows), d))
    for s, places in recurrent.walk(i["X"].lengths, False):
        x = rows[places]
        h, c = i["H0"][s] if "H0" in i else np.zeros(d), i["C0"][s]
        for row in places:
            p = np.maximum(x @ attention[:m] + i.get("AttentionBias", np.zeros(1)).ravel() + c @ attention[m:], 0)
            if "AttentionScalar" in i:
                p = np.maximum(p * i["AttentionScalar"].ravel() + i.get("AttentionScalarBias", np.zeros(1)).ravel(), 0)
            p = np.exp(p - p.max())
            g = np.concatenate([h, p / p.sum() @ x]) @ i["LSTMWeight"] + i["LSTMBias"].ravel()
            f, k, o = (act[a["gate_activation"]](g[n * d:n * d + d]) for n in range(3))
            c = f * c + k * act[a["candidate_activation"]](g[3 * d:])
            h = o * act[a["cell_activation"]](c)
            hidden[row], cell[row] = h, c
    return {"Hidden": Seq(hidden, i["X"].lengths), "Cell": Seq(cell, i["X"].lengths)}


ACTS = {"gate_activation": "sigmoid", "cell_activation": "tanh", "candidate_activation": "tanh"}
BASE = {"X": X, "C0": real(SEQUENCES, D), "AttentionWeight": real(3 + D, 1), "LSTMWeight": real(D + 3, 4 * D),
        "LSTMBias": real(1, 4 * D)}
case("attention_lstm", {**BASE, "H0": real(SEQUENCES, D), "AttentionBias": real(1, 1), "AttentionScalar": real(1, 1),
                        "AttentionScalarBias": real(1, 1, lo=0.3)}, ACTS, reader, rtol=1e-5,
     large={**BASE, "X": Seq(real(90, 3), [[30, 0, 20, 1, 39]])})
case("attention_lstm", BASE, ACTS, reader, name="plain", rtol=1e-5)
