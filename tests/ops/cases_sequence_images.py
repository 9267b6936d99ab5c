"""Sequences matched with each other, and images of different sizes in one tensor."""
import numpy as np
from op_case import Seq, apart, case, real


def split(s):
    ends = np.cumsum(s.lengths[-1])
    return [s.array[e - n:e] for e, n in zip(ends, s.lengths[-1])]


def matched(i, a):
    found = [np.einsum("id,dte,je->tij", x, i["W"], y) for x, y in zip(split(i["X"]), split(i["Y"]))]
    assert len(i["X"].lengths[-1]) == len(i["Y"].lengths[-1]) and a["dim_t"] == i["W"].shape[1]
    return {"Out": Seq(np.concatenate([f.reshape(-1, 1) for f in found]), [[f.size for f in found]]),
            "Tmp": (i["X"].array @ i["W"].reshape(i["W"].shape[0], -1)).reshape(-1, 1)}


case("match_matrix_tensor", {"X": Seq(real(5, 3), [[3, 2]]), "Y": Seq(real(6, 4), [[2, 4]]), "W": real(3, 2, 4)},
     {"dim_t": 2}, matched, rtol=5e-6, large_rtol=1e-4, grad_outs=("Out",),
     large={"X": Seq(real(60, 12), [[20, 1, 39]]), "Y": Seq(real(70, 9), [[30, 30, 10]]), "W": real(12, 2, 9)})
case("match_matrix_tensor", {"X": Seq(real(5, 2), [[3, 0, 2]]), "Y": Seq(real(4, 2), [[2, 2, 0]]), "W": real(2, 1, 2)},
     {"dim_t": 1}, matched, name="gaps", rtol=5e-6, grad_outs=("Out",))


def images(i, channels):
    """[channels, height, width] of each."""
    sizes = list(zip(i["ROW"].lengths[-1], i["COLUMN"].lengths[-1]))
    assert [channels * h * w for h, w in sizes] == i["X"].lengths[-1]
    return [p.reshape(channels, h, w) for p, (h, w) in zip(split(i["X"]), sizes)]


def sizes(channels, *extents):
    """X, ROW and COLUMN of images. The last two have the dtype of X, which 1.8.5 requires; their numbers are not read."""
    counts = [channels * h * w for h, w in extents]
    rows, columns = [h for h, _ in extents], [w for _, w in extents]
    return {"X": Seq(apart(sum(counts), 1), [counts]), "ROW": Seq(real(sum(rows), 2), [rows]),
            "COLUMN": Seq(real(sum(columns), 1), [columns])}


def pooled(i, a):
    topks, out, places = a["topks"], [], []
    assert min(topks) > 0
    for image in images(i, a["channel_num"]):
        for r in range(image.shape[1]):
            for row in image[:, r]:
                order = np.argsort(-row, kind="stable")
                out += [row[order[:k]].sum() / k for k in topks]
                places.append(np.append(order, [-1] * max(topks))[:max(topks)])
                places[-1][len(order):] = -1
    width = a["channel_num"] * len(topks)
    return {"Out": Seq(np.array(out, i["X"].array.dtype).reshape(-1, width), i["ROW"].lengths),
            "pos": np.concatenate(places).astype("int32")}


case("sequence_topk_avg_pooling", sizes(2, (2, 3), (3, 4)), {"topks": [1, 3, 5], "channel_num": 2}, pooled, rtol=5e-6,
     grad=("X",), grad_outs=("Out",))
case("sequence_topk_avg_pooling", sizes(1, (1, 0), (2, 3), (0, 2)), {"topks": [2], "channel_num": 1}, pooled, name="gaps",
     grad=("X",), grad_outs=("Out",))


def convolved(i, a):
    kh, kw, down, right = a["KernelH"], a["KernelW"], a["StrideH"], a["StrideW"]
    out, columns = [], []
    for image in images(i, a["InputChannel"]):
        _, h, w = image.shape
        padded = np.pad(image, ((0, 0), (kh // 2, kh), (kw // 2, kw)))
        found = [padded[:, y:y + kh, x:x + kw].ravel() for y in range(0, h, down) for x in range(0, w, right)]
        taps = np.array(found).reshape(-1, i["W"].shape[1]).T
        columns.append(taps.reshape(-1, 1))
        out.append((i["W"] @ taps).reshape(-1, 1))
    assert min(kh, kw) > 0
    dtype = i["X"].array.dtype
    return {"Out": Seq(np.concatenate(out).astype(dtype), [[len(o) for o in out]]),
            "Col": Seq(np.concatenate(columns).astype(dtype), [[len(o) for o in columns]])}


FILTER = {"InputChannel": 2, "OutputChannel": 3, "StrideH": 1, "StrideW": 1, "KernelH": 2, "KernelW": 3}
case("var_conv_2d", {**sizes(2, (2, 3), (3, 4)), "W": real(3, 12)}, FILTER, convolved, rtol=1e-5, grad=("X", "W"),
     grad_outs=("Out",), large={**sizes(2, (20, 30), (30, 10), (1, 7)), "W": real(3, 12)}, large_rtol=1e-4)
case("var_conv_2d", {**sizes(1, (3, 5), (0, 2), (1, 1)), "W": real(2, 9)},
     dict(FILTER, InputChannel=1, OutputChannel=2, StrideH=2, StrideW=3, KernelH=3), convolved, rtol=1e-5, name="strides_gaps",
     grad=("X", "W"), grad_outs=("Out",))
