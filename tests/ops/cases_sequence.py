"""Operators on sequences of rows."""
import numpy as np
from op_case import Seq, apart, big, case, real

LENGTHS = [[3, 1, 5]]
X = Seq(apart(9, 3), LENGTHS)
TWO = Seq(apart(9, 3), [[2, 1, 2], [2, 1, 3, 2, 1]])
GAPS = Seq(apart(5, 2), [[3, 0, 2]])


def split(s):
    """Rows of each sequence of the innermost level."""
    ends = np.cumsum(s.lengths[-1])
    return [s.array[e - n:e] for e, n in zip(ends, s.lengths[-1])]


def pool(i, a):
    how = {"SUM": lambda p: p.sum(0), "AVERAGE": lambda p: p.mean(0), "SQRT": lambda p: p.sum(0) / np.sqrt(len(p)),
           "MAX": lambda p: p.max(0), "FIRST": lambda p: p[0], "LAST": lambda p: p[-1]}[a["pooltype"]]
    s = i["X"]
    rows = [how(p) if len(p) else np.full(s.array.shape[1:], a.get("pad_value", 0.0)) for p in split(s)]
    out = np.stack(rows).astype(s.array.dtype)
    return {"Out": Seq(out, s.lengths[:-1]) if len(s.lengths) > 1 else out}


for kind in ("SUM", "AVERAGE", "SQRT", "MAX", "FIRST", "LAST"):
    large = {"X": Seq(big(4000, 16), [[40] * 100])}
    for name, x in (("one", X), ("two_levels", TWO), ("gaps", GAPS)):
        case("sequence_pool", {"X": x}, {"pooltype": kind, "pad_value": 0.5}, pool, name=f"{kind.lower()}_{name}",
             grad_outs=("Out",), large=large if name == "one" else None, rtol=5e-6)


def max_index(i, a):
    """Of each column the row that holds the largest value; -1 where a sequence has no row."""
    s, begin, rows = i["X"], 0, []
    for p in split(s):
        rows.append(begin + p.argmax(0) if len(p) else np.full(s.array.shape[1:], -1))
        begin += len(p)
    return {**pool(i, a), "MaxIndex": np.stack(rows).astype("int32")}


case("sequence_pool", {"X": Seq(real(5, 4), [[2, 0, 1, 0, 0, 2, 0]])}, {"pooltype": "MAX", "pad_value": 0.5}, max_index,
     name="max_index", grad_outs=("Out",))


def softmax(i, a):
    s = i["X"]
    parts = [np.exp(p - p.max()) / np.exp(p - p.max()).sum() for p in split(s) if len(p)]
    return Seq(np.concatenate(parts), s.lengths)


case("sequence_softmax", {"X": Seq(real(9, 1, lo=-2, hi=2), LENGTHS)}, {}, softmax, rtol=5e-6)
case("sequence_softmax", {"X": Seq(real(5, 1), [[3, 0, 2]])}, {}, softmax, rtol=5e-6, name="gaps")
case("sequence_reverse", {"X": X}, {}, grad=(),  # its gradient is itself, on a gradient that carries the sequences
     ref=lambda i, a: Seq(np.concatenate([p[::-1] for p in split(i["X"])]), i["X"].lengths))


def expand(i, a):
    y = i["Y"].lengths
    times = y[a.get("ref_level", -1)]
    x = i["X"]
    if not isinstance(x, Seq):
        return np.repeat(x, times, 0)
    parts = [p for p, n in zip(split(x), times) for _ in range(n)]
    return Seq(np.concatenate(parts), [[len(p) for p in parts]])


Y2 = Seq(real(8, 1), [[2, 2], [3, 3, 1, 1]])
case("sequence_expand", {"X": real(3, 2), "Y": Seq(real(5, 1), [[2, 0, 3]])}, {"ref_level": 0}, expand, grad=("X",))
case("sequence_expand", {"X": real(4, 2), "Y": Y2}, {}, expand, grad=("X",), name="last_level")
case("sequence_expand", {"X": Seq(real(4, 1), [[1, 3]]), "Y": Y2}, {"ref_level": 0}, expand, grad=("X",), name="sequences")
case("sequence_expand_as", {"X": real(3, 2), "Y": Seq(real(9, 1), LENGTHS)}, {}, grad=("X",),
     ref=lambda i, a: Seq(np.repeat(i["X"], i["Y"].lengths[0], 0), i["Y"].lengths))


def context(i, a):
    s, n, start = i["X"], a["contextLength"], a["contextStart"]
    rows, before, after = [], max(0, -start), max(0, start + n - 1)
    around = i["PaddingData"] if a.get("paddingTrainable") else np.zeros((before + after, s.array.shape[1]))
    assert len(around) == before + after and a["contextStride"] == 1
    for p in split(s):
        padded = np.concatenate([around[:before], p, around[before:]])
        rows += [padded[t + before + start:t + before + start + n].ravel() for t in range(len(p))]
    return Seq((np.stack(rows) @ i["Filter"]).astype(s.array.dtype), s.lengths)


CONV = {"contextLength": 3, "contextStart": -1, "contextStride": 1}
case("sequence_conv", {"X": X, "Filter": real(9, 4)}, CONV, context, rtol=1e-5,
     large={"X": Seq(real(900, 24), [[300, 100, 500]]), "Filter": real(72, 40)})
case("sequence_conv", {"X": X, "Filter": real(6, 2)}, dict(CONV, contextLength=2, contextStart=0), context, rtol=1e-5,
     name="ahead")
for name, n, start in (("around", 3, -1), ("before", 2, -2), ("after", 3, 1), ("wide", 7, -4)):
    case("sequence_conv", {"X": Seq(real(7, 2), [[3, 0, 1, 3]]), "Filter": real(n * 2, 3),
                           "PaddingData": real(max(0, -start) + max(0, start + n - 1), 2)},
         {"paddingTrainable": True, "contextLength": n, "contextStart": start, "contextStride": 1}, context, rtol=1e-5,
         name="trained_" + name)


def ahead(i, a):
    s, w = i["X"], i["Filter"]
    dense = isinstance(s, np.ndarray)
    rows = [sum((np.pad(p[j:], ((0, min(j, len(p))), (0, 0))) * w[j] for j in range(len(w))), np.zeros_like(p))
            for p in (s if dense else split(s))]
    return np.stack(rows) if dense else Seq(np.concatenate(rows), s.lengths)


case("row_conv", {"X": X, "Filter": real(3, 3)}, {}, ahead, rtol=5e-6,
     large={"X": Seq(real(900, 70), [[300, 100, 500]]), "Filter": real(5, 70)})
case("row_conv", {"X": TWO, "Filter": real(1, 3)}, {}, ahead, name="two_levels")
case("row_conv", {"X": GAPS, "Filter": real(5, 2)}, {}, ahead, name="gaps")
case("row_conv", {"X": real(2, 4, 3), "Filter": real(3, 3)}, {}, ahead, name="dense", rtol=5e-6)


def concat(i, a):
    parts = [np.concatenate(p) for p in zip(*(split(s) for s in i["X"]))]
    return Seq(np.concatenate(parts), [[len(p) for p in parts]])


case("sequence_concat", {"X": [X, Seq(real(6, 3), [[1, 3, 2]])]}, {}, concat)


def cut(i, a):
    parts = [p[o:o + n] for p, o, n in zip(split(i["X"]), i["Offset"].ravel(), i["Length"].ravel())]
    return Seq(np.concatenate(parts), [[len(p) for p in parts]])


case("sequence_slice", {"X": X, "Offset": np.array([[1], [0], [2]]), "Length": np.array([[2], [1], [2]])}, {}, cut,
     grad=("X",))
case("sequence_slice", {"X": GAPS, "Offset": np.array([[3], [0], [0]]), "Length": np.array([[0], [0], [2]])}, {}, cut,
     grad=("X",), name="empty")


def pad(i, a):
    parts = split(i["X"])
    length = a.get("padded_length", -1)
    length = max(map(len, parts)) if length == -1 else length
    value = np.broadcast_to(i["PadValue"], parts[0].shape[1:])
    out = np.stack([np.concatenate([p, np.tile(value, (length - len(p), 1))]) for p in parts])
    return {"Out": out.astype(i["X"].array.dtype), "Length": np.array([len(p) for p in parts])}


case("sequence_pad", {"X": X, "PadValue": np.array([0.5])}, {}, pad, grad=("X",), grad_outs=("Out",))
case("sequence_pad", {"X": X, "PadValue": real(3)}, {"padded_length": 6}, pad, grad=("X",), grad_outs=("Out",), name="longer")


def unpad(i, a):
    parts = [row[:n] for row, n in zip(i["X"], i["Length"])]
    out = np.concatenate(parts)
    return Seq(out.reshape(len(out), *(i["X"].shape[2:] or (1,))), [[len(p) for p in parts]])


case("sequence_unpad", {"X": real(3, 5, 2), "Length": np.array([3, 1, 5])}, {}, unpad, grad=())  # see the next line
# The gradient is of an output that carries its sequences; the weights of these tests carry none.
case("sequence_unpad_grad", {"X": real(3, 5, 2), "Out@GRAD": Seq(real(9, 2), LENGTHS)}, {}, grad=(),
     ref=lambda i, a: np.stack([np.pad(p, [(0, 5 - len(p)), (0, 0)]) for p in split(i["Out@GRAD"])]))
case("sequence_unpad", {"X": real(3, 5), "Length": np.array([3, 1, 5])}, {}, unpad, grad=(), name="flat")
N = np.array([3, 1, 5])
MASK = {"maxlen": 6, "out_dtype": 5}
case("sequence_mask", {"X": N}, MASK, lambda i, a: (np.arange(a["maxlen"]) < i["X"][..., None]).astype("float32"))
case("sequence_mask", {"X": N}, {"maxlen": -1, "out_dtype": 3}, name="longest",
     ref=lambda i, a: (np.arange(i["X"].max()) < i["X"][..., None]).astype("int64"))
case("lod_reset", {"X": X}, {"target_lod": [0, 4, 9]}, lambda i, a: Seq(i["X"].array, [[4, 5]]))
case("lod_reset", {"X": X}, {"target_lod": [0, 9]}, lambda i, a: Seq(i["X"].array, [[9]]), name="one")
case("lod_reset", {"X": X, "Y": Seq(real(9, 1), [[4, 5]])}, {}, lambda i, a: Seq(i["X"].array, [[4, 5]]), grad=("X",), name="like_y")
case("lod_reset", {"X": X, "Y": np.array([0, 2, 9], "int32")}, {}, lambda i, a: Seq(i["X"].array, [[2, 7]]), grad=("X",),
     name="numbers")
case("lod_reset", {"X": real(9, 2)}, {"target_lod": [0, 4, 9], "append": True}, lambda i, a: Seq(i["X"], [[4, 5]]), name="append_first")
