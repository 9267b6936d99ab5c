"""Tables read by id."""
import numpy as np
from op_case import Rows, Seq, case, integers, real

W = real(6, 4)
IDS = np.array([[3], [0], [3], [5], [0]])


def take(i, a):
    ids = i["Ids"].array if isinstance(i["Ids"], Seq) else i["Ids"]
    if a.get("v1"):
        ids = ids[..., 0]
    out = i["W"][ids]
    out[ids == a.get("padding_idx", -1)] = 0
    return out


def first(i, a):
    return take(i, dict(a, v1=True))


LARGE = {"W": real(503, 64), "Ids": integers(3000, 1, hi=503)}
case("lookup_table", {"W": W, "Ids": IDS}, {}, first, large=LARGE)
case("lookup_table", {"W": W, "Ids": IDS}, {"padding_idx": 3}, first, name="padding")
case("lookup_table", {"W": W, "Ids": integers(2, 3, 1, hi=6)}, {}, first, name="more_axes")
case("lookup_table", {"W": W, "Ids": Seq(IDS, [[2, 3]])}, {}, lambda i, a: Seq(first(i, a), i["Ids"].lengths), name="sequences")
case("lookup_table_v2", {"W": W, "Ids": IDS[:, 0]}, {}, take, large=dict(LARGE, Ids=integers(3000, hi=503)))
case("lookup_table_v2", {"W": W, "Ids": integers(2, 3, hi=6)}, {"padding_idx": 5}, take, name="padding")


def rows(i, a):
    ids = i["Ids"].ravel()
    kept = ids != a.get("padding_idx", -1)
    return {"W@GRAD": Rows(list(ids[kept]), len(i["W"]), i["Out@GRAD"].reshape(len(ids), -1)[kept])}


GRAD = {"W": W, "Ids": IDS, "Out@GRAD": real(5, 4)}
SPARSE = {"is_sparse": True, "padding_idx": -1}
case("lookup_table_grad", GRAD, SPARSE, rows)
case("lookup_table_grad", GRAD, dict(SPARSE, padding_idx=0), rows, name="padding")
case("lookup_table_v2_grad", dict(GRAD, Ids=IDS[:, 0]), SPARSE, rows)

# ---- what the pass fuse_embeddings makes


def gathered(i, a):
    parts = []
    for from_, width in zip(a["source"], a["width"]):
        if from_ < 0:
            parts.append(i["X"][-1 - from_])
            continue
        w, ids = i["W"][a["table"][from_]], i["Ids"][from_]
        if not isinstance(ids, Seq):
            out = w[ids.ravel()].copy()
            out[ids.ravel() == a["padding_idx"][from_]] = 0
            parts.append(out.reshape(-1, width))
            continue
        rows, at = [], 0
        for n in ids.lengths[-1]:
            total = w[ids.array.ravel()[at:at + n]].sum(0) if n else np.full(width, a["pad_value"][from_])
            rows.append(total / {1: 1, 2: n or 1, 3: np.sqrt(n or 1)}[a["pool"][from_]])
            at += n
        parts.append(np.stack(rows))
    return np.concatenate(parts, axis=1)


SIDE = {"W": [W, real(7, 2)], "Ids": [IDS, integers(5, 3, hi=7)], "X": [real(5, 3)]}
case("fused_embedding_concat", SIDE, {"table": [0, 1], "padding_idx": [3, -1], "pool": [0, 0], "pad_value": [0.0, 0.0],
                                      "source": [1, -1, 0], "width": [6, 3, 4]}, gathered)
POOLED = {"W": [W], "Ids": [Seq(IDS, [[2, 0, 3]]), Seq(integers(6, 1, hi=6), [[1, 5, 0]])]}
for pool in (1, 2, 3):
    case("fused_embedding_concat", POOLED,
         {"table": [0, 0], "padding_idx": [-1, -1], "pool": [pool] * 2, "pad_value": [0.5, 0.0], "source": [0, 1],
          "width": [4, 4]}, gathered, name="pool%d" % pool)


def gradients(i, a):
    """[(id, gradient)] in the order of look-ups."""
    found = []
    for k, (ids, grad) in enumerate(zip(i["Ids"], i["Grad"])):
        width, at, per_row = 4, a["column"][k], a["per_row"][k]
        flat = (ids.array if isinstance(ids, Seq) else ids).ravel()
        lengths = ids.lengths[-1] if isinstance(ids, Seq) else [per_row] * (len(flat) // per_row)
        row = 0
        for g, n in zip(grad.reshape(len(lengths), -1), lengths):
            for q in range(n):
                begin = at + (q * width if not a["pool"][k] else 0)
                over = {0: 1, 1: 1, 2: n, 3: np.sqrt(n)}[a["pool"][k]]
                if flat[row] != a["padding_idx"][k]:
                    found.append((flat[row], g[begin:begin + width] / over))
                row += 1
    return found


def sparse_rows(i, a):
    found = gradients(i, a)
    return {"W@GRAD": Rows([r for r, _ in found], len(i["W"]), np.stack([g for _, g in found]))}


WHOLE = real(3, 17)
SOURCES = {"Ids": [integers(3, 2, hi=6), integers(3, hi=6), Seq(integers(6, 1, hi=6), [[2, 0, 4]])], "Grad": [WHOLE] * 3}
PLACES = {"padding_idx": [-1, 2, -1], "column": [1, 9, 13], "per_row": [2, 1, 1], "pool": [0, 0, 1]}
case("fused_embedding_grad", dict(SOURCES, W=W), PLACES, sparse_rows)
case("fused_embedding_grad", dict(SOURCES, W=W), dict(PLACES, pool=[0, 0, 2]), sparse_rows, name="average")
case("fused_embedding_grad", dict(SOURCES, W=W), dict(PLACES, pool=[0, 0, 3]), sparse_rows, name="sqrt")


BETA1, BETA2 = 0.875, 0.96875


def summed(i, a):
    total = {}
    for r, g in gradients(i, a):
        total[r] = total.get(r, 0) + g
    return total


def updated(i, a):
    rate, p, state = i["LearningRate"][0], i["Param"].copy(), [s.copy() for s in i.get("State", [])]
    powers = [i["Power"][k] * (BETA1, BETA2)[k] for k in range(len(i.get("Power", [])))]
    for r, g in summed(i, a).items():
        if a["rule"] == "sgd":
            p[r] -= rate * g
        elif a["rule"] == "adagrad":
            state[0][r] += g * g
            p[r] -= rate * g / (np.sqrt(state[0][r]) + a["epsilon"])
        else:
            state[0][r] = BETA1 * state[0][r] + (1 - BETA1) * g
            state[1][r] = BETA2 * state[1][r] + (1 - BETA2) * g * g
            step = rate * np.sqrt(1 - powers[1]) / (1 - powers[0])
            p[r] -= step * state[0][r] / (np.sqrt(state[1][r]) + a["epsilon"])
    return {"ParamOut": p, "StateOut": state, "PowerOut": powers}


RATE, MOMENTS = {"Param": W, "LearningRate": np.array([0.1])}, [np.abs(real(6, 4)), np.abs(real(6, 4)) + 0.1]
case("fused_embedding_update", dict(SOURCES, **RATE), dict(PLACES, rule="sgd"), updated, outs={"StateOut": 0, "PowerOut": 0})
case("fused_embedding_update", dict(SOURCES, State=MOMENTS[:1], **RATE), dict(PLACES, rule="adagrad", epsilon=2.0**-7), updated,
     outs={"StateOut": 1, "PowerOut": 0})
case("fused_embedding_update", dict(SOURCES, State=MOMENTS, Power=[np.array([0.9]), np.array([0.999])], **RATE),
     dict(PLACES, rule="adam", beta1=BETA1, beta2=BETA2, epsilon=2.0**-7), updated, outs={"StateOut": 2, "PowerOut": 2}, rtol=2e-5)

case("concat_grad_parts", {"X": [real(3, 2), real(3, 4)], "Out@GRAD": real(3, 9)}, {"column": [7, 1]},
     lambda i, a: {"X@GRAD": [i["Out@GRAD"][:, 7:9], i["Out@GRAD"][:, 1:5]]}, outs={"X@GRAD": 2})
