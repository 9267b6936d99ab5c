"""Steps of beam searches, and windows of images as sequences."""
import numpy as np
from op_case import Seq, case, integers, real, skip


def step(i, a):
    """All continuations sorted; of equal scores those of later beams first. Equal ones of one beam are not expected."""
    scores, own = i["scores"], i["pre_ids"].ravel()
    wide = scores.array.astype("float64")
    assert a.get("level", 0) == 0 and len(scores.lengths) == 2 and a["beam_size"] > 0
    assert all(len(set(row)) == len(row) for row in wide) and (a["is_accumulated"] or wide.min() > 0)
    beams = np.cumsum([0] + [sum(scores.lengths[1][b:e]) for b, e in zip(
        np.cumsum([0] + scores.lengths[0][:-1]), np.cumsum(scores.lengths[0]))])
    chosen = []
    for first, end in zip(beams, beams[1:]):
        ways = []
        for b in range(first, end):
            if own[b] == a["end_id"]:
                ways.append((i["pre_scores"].ravel()[b], b, a["end_id"]))
                continue
            for k, s in enumerate(wide[b]):
                token = i["ids"][b, k] if "ids" in i else k
                ways.append((s if a["is_accumulated"] else i["pre_scores"].ravel()[b] + np.log(s), b, token))
        best = sorted(ways, key=lambda w: (-w[0], -w[1]))[:a["beam_size"]]
        if not all(w[2] == a["end_id"] == own[w[1]] for w in best):
            chosen += sorted(best, key=lambda w: w[1])
    lengths = [list(np.diff(beams)), [sum(w[1] == b for w in chosen) for b in range(len(own))]]
    column = lambda k, dtype: np.array([w[k] for w in chosen], dtype).reshape(-1, 1)  # noqa: E731
    return {"selected_ids": Seq(column(2, "int64"), lengths), "selected_scores": Seq(column(0, scores.array.dtype), lengths),
            "parent_idx": column(1, "int32").ravel()}


LENGTHS = [[2, 1, 3], [1] * 6]
OWN, TOTAL = np.array([[3], [1], [2], [1], [1], [1]]), real(6, 1, lo=-3, hi=-1)
TOKENS = integers(6, 4, lo=1, hi=9)
for name, more in (("tokens", {"ids": TOKENS}), ("columns", {})):
    case("beam_search", {"pre_ids": OWN, "pre_scores": TOTAL, "scores": Seq(real(6, 4, lo=-6, hi=-1), LENGTHS), **more},
         {"beam_size": 2, "end_id": 1, "is_accumulated": True}, step, name=name)
case("beam_search", {"pre_ids": OWN + 1, "pre_scores": TOTAL, "ids": TOKENS, "scores": Seq(real(6, 4, lo=0.1, hi=1), LENGTHS)},
     {"beam_size": 3, "end_id": 0, "is_accumulated": False}, step, name="probabilities")
case("beam_search", {"pre_ids": np.array([[2], [3]]), "pre_scores": real(2, 1), "scores": Seq(real(2, 2), [[2], [1, 1]])},
     {"beam_size": 9, "end_id": 0, "is_accumulated": True}, step, name="fewer_than_asked")
skip("beam_search_decode", "it reads arrays: tests/python/layers/test_beam_search.py")


def windows(i, a):
    x, (top, left, bottom, right) = i["X"], a["paddings"]
    (kh, kw), (down, after) = a["kernels"], a["strides"]
    padded = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    rows, lengths = [], []
    for n, image in enumerate(padded):
        h, w = x.shape[2:]
        if "Y" in i:
            h, w = (min(int(np.ceil(s / f)), m) for s, f, m in zip(i["Y"][n], a.get("out_stride", [1, 1]), (h, w)))
        found = [image[:, y:y + kh, z:z + kw].ravel() for y in range(0, h + top + bottom - kh + 1, down)
                 for z in range(0, w + left + right - kw + 1, after)]
        rows += found
        lengths.append(len(found))
    out = np.array(rows, x.dtype).reshape(-1, x.shape[1] * kh * kw)
    return Seq(out, [lengths])


IMAGES = real(2, 2, 4, 5)
PLAIN = {"kernels": [2, 3], "strides": [1, 2], "paddings": [0, 0, 0, 0]}
case("im2sequence", {"X": IMAGES}, PLAIN, windows, large={"X": real(6, 3, 20, 30)})
case("im2sequence", {"X": IMAGES}, {"kernels": [3, 2], "strides": [2, 1], "paddings": [1, 0, 2, 1]}, windows, name="padded")
case("im2sequence", {"X": IMAGES}, dict(PLAIN, kernels=[1, 7], paddings=[0, 4, 0, 4]), windows, name="wide_borders")
case("im2sequence", {"X": IMAGES, "Y": np.array([[8, 9], [3, 10]], "float32")}, dict(PLAIN, out_stride=[2, 2]), windows,
     name="sizes", grad=("X",))
