"""Connectionist temporal classification, the labels of its paths, and distances of sequences."""
import itertools

import numpy as np
from op_case import Seq, case, integers, real, seeded


def split(value, lengths=None):
    if isinstance(value, Seq):
        ends = np.cumsum(value.lengths[-1])
        return [value.array[e - n:e] for e, n in zip(ends, value.lengths[-1])]
    return [row[:n] for row, n in zip(value, lengths.ravel())]


def labels_of(path, blank, merge=True):
    kept = [k for t, k in enumerate(path) if not (merge and t and path[t - 1] == k)]
    return [k for k in kept if k != blank]


def log_softmax(x):
    x = x.astype("float64")
    return x - np.logaddexp.reduce(x, axis=1, keepdims=True)


def all_paths(x, y, blank):
    """The sum over all paths that give y, one by one."""
    ways = [p for p in itertools.product(range(x.shape[1]), repeat=len(x)) if labels_of(p, blank) == list(y)]
    return np.logaddexp.reduce([sum(x[t, k] for t, k in enumerate(p)) for p in ways]) if ways else None


def lattice(x, y, blank):
    """The same by dynamic programming: columns of states blank, y0, blank, y1 ... blank."""
    states = [blank] + [k for label in y for k in (label, blank)]
    sums = np.full(len(states), -np.inf)
    sums[:2] = x[0][states[:2]]
    for row in x[1:]:
        before = sums
        sums = np.array([
            np.logaddexp.reduce([before[s]] + ([before[s - 1]] if s else [])
                                + ([before[s - 2]] if s > 1 and k != blank and k != states[s - 2] else [])) + row[k]
            for s, k in enumerate(states)])
    return np.logaddexp.reduce(sums[-2:])


def cost(i, a):
    blank, out = a.get("blank", 0), []
    if "LogitsLength" in i:
        rows = [x[:n] for x, n in zip(i["Logits"].swapaxes(0, 1), i["LogitsLength"].ravel())]
        labels = split(i["Label"], i["LabelLength"])
    else:
        rows, labels = split(i["Logits"]), split(i["Label"])
    for x, y in zip(rows, labels):
        x, y = log_softmax(x), y.ravel()
        if len(x) < len(y) + sum((y[1:] == y[:-1]) | (y[1:] == blank)) or len(x) == 0:
            out.append([0.0])
            continue
        log_sum = lattice(x, y, blank)
        if x.shape[1] ** len(x) < 300 and blank not in y:
            assert abs(log_sum - all_paths(x, y, blank)) < 1e-9
        out.append([-log_sum])
    return {"Loss": np.reshape(out, (-1, 1))}


def ids(*labels, dtype="int32"):
    return np.array(labels, dtype).reshape(-1, 1)


ROWS = Seq(real(9, 4, lo=-2, hi=2), [[4, 3, 2]])
LABELS = Seq(ids(1, 2, 3, 3, 1), [[2, 2, 1]])
ONLY = {"grad_outs": ("Loss",), "rtol": 5e-6}
LONG, NAMES = [[70, 9, 120, 0, 33, 50] * 6], [[20, 5, 33, 0, 11, 0] * 6]
MANY, FEW = sum(LONG[0]), sum(NAMES[0])
case("warpctc", {"Logits": ROWS, "Label": LABELS}, {"blank": 0}, cost, name="sequences", **ONLY,
     large={"Logits": Seq(real(MANY, 20, lo=-2, hi=2), LONG), "Label": Seq(integers(FEW, 1, lo=1, hi=20, dtype="int32"), NAMES)})
case("warpctc", {"Logits": ROWS, "Label": Seq(ids(1, 0, 2, 2, 1), [[2, 2, 1]])}, {"blank": 3}, cost, name="blank_last", **ONLY)
case("warpctc", {"Logits": ROWS, "Label": Seq(ids(2, 0, 3, 3, 0), [[2, 2, 1]])}, {"blank": 1}, cost, name="blank_inside",
     **ONLY)
case("warpctc", {"Logits": ROWS, "Label": Seq(ids(1, 0, 0, 3, 0), [[2, 2, 1]])}, {"blank": 0}, cost, name="blank_as_label",
     **ONLY)
case("warpctc", {"Logits": Seq(real(8, 3), [[4, 0, 2, 2, 0]]), "Label": Seq(ids(1, 1, 2, 2, 2), [[2, 0, 0, 2, 1]])}, {}, cost,
     name="gaps_and_too_short", **ONLY)
case("warpctc", {"Logits": real(4, 3, 4), "Label": np.array([[1, 2, 0], [3, 3, 0], [0, 0, 0]], "int32"),
                 "LogitsLength": np.array([4, 3, 2]), "LabelLength": np.array([2, 2, 0])}, {}, cost, name="batch", **ONLY)
case("warpctc", {"Logits": Seq(real(60, 3, lo=-80, hi=80), [[60]]), "Label": Seq(integers(20, 1, lo=1, hi=3), [[20]])}, {},
     cost, name="far_apart", **ONLY)


def aligned(i, a):
    merge, blank = a.get("merge_repeated", True), a.get("blank", 0)
    if "InputLength" not in i:
        found = [labels_of(list(p.ravel()), blank, merge) for p in split(i["Input"])]
        return {"Output": Seq(np.array([k for p in found for k in p], i["Input"].array.dtype).reshape(-1, 1),
                              [[len(p) for p in found]]),
                "OutputLength": np.array([[len(p)] for p in found], i["Input"].array.dtype).reshape(-1, 1)}
    found = [labels_of(list(p), blank, merge) for p in split(i["Input"], i["InputLength"])]
    width, dtype = i["Input"].shape[1], i["Input"].dtype
    return {"Output": np.array([p + [a.get("padding_value", 0)] * (width - len(p)) for p in found], dtype),
            "OutputLength": np.array([[len(p)] for p in found], dtype)}


PATHS = ids(0, 1, 1, 0, 2, 2, 2, 0, 1, 0, 0)
case("ctc_align", {"Input": Seq(PATHS, [[5, 4, 2]])}, {"blank": 0, "merge_repeated": True}, aligned, dtypes=("float32",))
case("ctc_align", {"Input": Seq(PATHS.astype("int64"), [[5, 0, 6]])}, {"blank": 2, "merge_repeated": False}, aligned,
     name="repeated", dtypes=("float32",))
case("ctc_align", {"Input": PATHS[:10].reshape(2, 5), "InputLength": np.array([[5], [3]])},
     {"blank": 0, "merge_repeated": True, "padding_value": -1}, aligned, name="batch", dtypes=("float32",))
LONG = seeded(5).randint(0, 3, (6000, 1)).astype("int32")  # longer than what the loops look at at once
case("ctc_align", {"Input": Seq(LONG, [[2047, 0, 1, 1, 2000, 3, 44, 0, 1900, 4]])}, {"blank": 0, "merge_repeated": True}, aligned,
     name="long", dtypes=("float32",), hostile=False)


def distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a):
        old, row = row, [i + 1]
        for j, y in enumerate(b):
            row.append(min(old[j] + (x != y), old[j + 1] + 1, row[j] + 1))
    return row[-1]


def distances(i, a):
    pairs = zip(split(i["Hyps"], i.get("HypsLength")), split(i["Refs"], i.get("RefsLength")))
    out = [[distance(x.ravel(), y.ravel()) / (len(y) if a.get("normalized") else 1)] for x, y in pairs]
    return {"Out": np.array(out, "float32"), "SequenceNum": np.array([len(out)])}


HYPS, REFS = integers(6, 1, hi=4), integers(7, 1, hi=4)
case("edit_distance", {"Hyps": Seq(HYPS, [[3, 1, 2]]), "Refs": Seq(REFS, [[2, 2, 3]])}, {"normalized": True}, distances,
     dtypes=("float32",), large={"Hyps": Seq(integers(2000, 1), [[40] * 50]), "Refs": Seq(integers(2500, 1), [[50] * 50])})
case("edit_distance", {"Hyps": Seq(HYPS, [[3, 0, 3]]), "Refs": Seq(REFS, [[2, 5, 0]])}, {"normalized": False}, distances,
     name="gaps", dtypes=("float32",))
case("edit_distance", {"Hyps": integers(2, 3, hi=4, dtype="int32"), "Refs": integers(2, 4, hi=4, dtype="int32"),
                       "HypsLength": np.array([[3], [0]]), "RefsLength": np.array([[2], [4]])}, {"normalized": True},
     distances, name="batch", dtypes=("float32",))
