"""Tables read by id, sparse rows, and operators of click-through models."""
import numpy as np
from op_case import ON_CPU, Rows, Seq, case, integers, real, skip

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
LEVELS = np.arange(-12, 12, dtype="int8").reshape(6, 4)
case("lookup_table", {"W": LEVELS, "Ids": IDS}, {"padding_idx": 5}, first, name="levels")
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
    """[(id, gradient)] in the order of lookups."""
    found = []
    for k, (ids, grad) in enumerate(zip(i["Ids"], i["Grad"])):
        width, at, per_row = 4, a["column"][k], a["per_row"][k]
        flat = (ids.array if isinstance(ids, Seq) else ids).ravel()
        lengths = ids.lengths[-1] if isinstance(ids, Seq) else [per_row] * (len(flat) // per_row)
        row, by = 0, a.get("factor", [-1] * len(i["Ids"]))[k]
        factors = np.ones(len(flat)) if by < 0 else i["Factor"][by].ravel()
        for g, n in zip(grad.reshape(len(lengths), -1), lengths):
            for q in range(n):
                begin = at + (q * width if not a["pool"][k] and by < 0 else 0)
                over = {0: 1, 1: 1, 2: n, 3: np.sqrt(n)}[a["pool"][k]]
                if flat[row] != a["padding_idx"][k]:
                    found.append((flat[row], g[begin:begin + width] * factors[row] / over))
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
TIMES = {"Ids": SOURCES["Ids"], "Grad": [real(3, 1, 4), WHOLE, WHOLE], "Factor": [real(3, 1, 2)]}
MULTIPLIED = dict(PLACES, column=[0, 9, 13], factor=[0, -1, -1], padding_idx=[1, 2, -1])
if ON_CPU is None:          # the pass makes factors on the CPU only
    case("fused_embedding_grad", dict(TIMES, W=W), MULTIPLIED, sparse_rows, name="factors")
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
if ON_CPU is None:
    case("fused_embedding_update", dict(TIMES, **RATE), dict(MULTIPLIED, rule="sgd"), updated,
         outs={"StateOut": 0, "PowerOut": 0}, name="factors")
case("fused_embedding_update", dict(SOURCES, State=MOMENTS[:1], **RATE), dict(PLACES, rule="adagrad", epsilon=2.0**-7), updated,
     outs={"StateOut": 1, "PowerOut": 0})
case("fused_embedding_update", dict(SOURCES, State=MOMENTS, Power=[np.array([0.9]), np.array([0.999])], **RATE),
     dict(PLACES, rule="adam", beta1=BETA1, beta2=BETA2, epsilon=2.0**-7), updated, outs={"StateOut": 2, "PowerOut": 2}, rtol=2e-5)
WINDOW = {"W": W, "Ids": integers(5, 3, hi=6)}
case("fused_embedding_dot", dict(WINDOW, X=real(5, 1, 4)), {"padding_idx": 2},
     lambda i, a: np.einsum("imd,ikd->imk", i["X"], take(i, a)), dtypes=("float32",))
case("fused_embedding_combine", dict(WINDOW, Factor=real(5, 1, 3)), {"padding_idx": 2},
     lambda i, a: np.einsum("imk,ikd->imd", i["Factor"], take(i, a)), dtypes=("float32",))
case("concat_grad_parts", {"X": [real(3, 2), real(3, 4)], "Out@GRAD": real(3, 9)}, {"column": [7, 1]},
     lambda i, a: {"X@GRAD": [i["Out@GRAD"][:, 7:9], i["Out@GRAD"][:, 1:5]]}, outs={"X@GRAD": 2})
LENGTHS = [[3, 1, 5]]


def split(s):
    ends = np.cumsum(s.lengths[-1])
    return [s.array[e - n:e] for e, n in zip(ends, s.lengths[-1])]


WALKS = Seq(integers(9, 1, hi=6), LENGTHS)


def log_counts(i, a):
    x = i["X"]
    if not a["use_cvm"]:
        return x[:, 2:]
    return np.concatenate([np.log(x[:, :1] + 1), np.log(x[:, 1:2] + 1) - np.log(x[:, :1] + 1), x[:, 2:]], 1)


for use_cvm in (True, False):
    name = "kept" if use_cvm else "left_off"
    case("cvm", {"X": real(4, 5, lo=0.0, hi=3.0), "CVM": real(4, 2)}, {"use_cvm": use_cvm}, log_counts, name=name, grad=())
    # its result for the counts is not a derivative
    case("cvm_grad", {"X": real(4, 5), "CVM": real(4, 2), "Y@GRAD": real(4, 5 if use_cvm else 3)}, {"use_cvm": use_cvm},
         lambda i, a: np.concatenate([i["CVM"], i["Y@GRAD"][:, 2 if a["use_cvm"] else 0:]], 1), name=name, grad=(),
         hostile=False)  # the reference takes any width of the gradient
HASHES = {0: (395291579, 882295055), 1: (449061269, 644089609), 123456789012: (543749408, 202815584)}
case("hash", {"X": np.array([[0], [1], [123456789012]])}, {"num_hash": 2, "mod_by": 10**9}, dtypes=("float32",),
     hostile=False, ref=lambda i, a: np.array([HASHES[k] for k in i["X"][:, 0]])[..., None])  # hashes of these keys
case("hash", {"X": np.array([[0, 1]])}, {"num_hash": 3, "mod_by": 10**9}, name="pair", dtypes=("float32",), hostile=False,
     ref=lambda i, a: np.array([[[587585787], [19853649], [448799435]]]))  # the hashes of this very input


def pooled(i, a):
    rows = [sum((i["W"][k] for k in p[:, 0] if k != a["padding_idx"]), np.zeros(i["W"].shape[1])) for p in split(i["Ids"])]
    return np.stack(rows).astype(i["W"].dtype)


POOL = {"combiner": "sum", "padding_idx": 2}
case("fused_embedding_seq_pool", {"W": real(6, 3), "Ids": WALKS}, dict(POOL, padding_idx=-1), pooled, hostile=False)
case("fused_embedding_seq_pool", {"W": real(6, 3), "Ids": Seq(np.array([[2], [1], [1], [5]]), [[2, 0, 2]])}, POOL, pooled,
     name="padding", hostile=False)  # both: NumPy counts from the end, too


def tagged(i, a):
    parts = split(i["Ins"]) if a["is_lod"] else [r[None] for r in i["Ins"]]
    chosen = set(i["Filter_tag"])
    kept = [p for p, t in zip(parts, split(i["Ins_tag"])) if chosen & set(t[:, 0])]
    out = np.concatenate(kept)
    return {"Out": Seq(out, [[len(p) for p in kept]]), "LossWeight": Seq(np.ones((len(kept), 1), "float32"), [[1] * len(kept)])}


TAGS = Seq(np.array([[1], [2], [3], [1]]), [[1, 2, 1]])
CHOSEN = np.array([7, 1])
case("filter_by_instag", {"Ins": Seq(real(9, 2), LENGTHS), "Ins_tag": TAGS, "Filter_tag": CHOSEN}, {"is_lod": True}, tagged,
     grad=())
case("filter_by_instag", {"Ins": real(3, 2), "Ins_tag": TAGS, "Filter_tag": CHOSEN}, {"is_lod": False}, tagged, grad=(),
     name="rows")
case("filter_by_instag", {"Ins": real(3, 2), "Ins_tag": TAGS, "Filter_tag": np.array([9])},
     {"is_lod": False, "out_val_if_empty": 3}, grad=(), name="none", hostile=False,  # its tag is nowhere
     ref=lambda i, a: {"Out": Seq(np.full((1, *i["Ins"].shape[1:]), 3.0), [[1]]),
                       "LossWeight": Seq(np.zeros((1, 1), "float32"), [[1]]),
                       "IndexMap": Seq(np.array([[0, 1, 1]]), [[1]])})


def placed_again(i, a):
    out = np.zeros_like(i["Ins"])
    for made, row, count in i["IndexMap"]:
        out[row:row + count] = i["Out@GRAD"][made:made + count]
    return out


# the gradient is of an output that carries sequences; the weights of these tests carry none
case("filter_by_instag_grad", {"Ins": real(4, 2), "LossWeight": np.ones((2, 1), "float32"),
                               "IndexMap": np.array([[0, 0, 1], [1, 2, 2]]), "Out@GRAD": real(3, 2)}, {}, grad=(),
     ref=placed_again, hostile=False)  # the map names rows that must be there
case("filter_by_instag_grad", {"Ins": real(4, 2), "LossWeight": np.zeros((1, 1), "float32"), "IndexMap": np.array([[0, 1, 1]]),
                               "Out@GRAD": real(1, 2)}, {}, grad=(), ref=lambda i, a: np.zeros_like(i["Ins"]), name="none",
     hostile=False)
for op in ("create_growable_table", "lookup_growable", "lookup_growable_grad", "growable_update"):
    skip(op, "works on a table, which is not a tensor: tests/python/sparse/test_growable_table.py")

# ---- sparse rows

TWICE = Rows([3, 1, 3], 5, np.array([[1.0, 2.0], [5.0, 6.0], [3.0, 4.0]]))


def merged_rows(i, a):
    found, places = np.unique(i["X"].ids, return_inverse=True)
    sums = np.zeros((len(found), *i["X"].values.shape[1:]), i["X"].values.dtype)
    np.add.at(sums, places, i["X"].values)
    return Rows(found.tolist(), i["X"].height, sums)


case("merge_selected_rows", {"X": TWICE}, ref=merged_rows, hostile=False)
case("get_tensor_from_selected_rows", {"X": TWICE}, ref=lambda i, a: i["X"].values, hostile=False)
