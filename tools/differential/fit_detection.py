"""Shapes, classes and boxes that fit the images of detectors: each function changes a case, see partners.py."""

import numpy as np
from fit import at_least_of, one, resize, those


def boxes_of_images(case):
    """Classes of `detection_map` that exist, boxes whose maximum is not below their minimum, a state for each class."""
    count = at_least_of(case, "class_num")
    for v in those(case, "Label", "DetectRes"):
        a = v["value"]
        if a.ndim == 2 and a.shape[1] > 4:
            low, high = np.minimum(a[:, -4:-2], a[:, -2:]), np.maximum(a[:, -4:-2], a[:, -2:])
            v["value"] = np.concatenate([np.trunc(a[:, :1]) % count, a[:, 1:-4], low, high], 1).astype(a.dtype)
    state = [one(case, slot) for slot in ("HasState", "PosCount", "TruePos", "FalsePos")]
    if None in state:
        for slot in ("HasState", "PosCount", "TruePos", "FalsePos"):
            case["ins"].pop(slot, None)
        return
    _, boxes, right, wrong = state
    resize(boxes, count, 1)
    boxes["value"] = np.abs(boxes["value"])
    lengths = [k for k in (right.get("lod") or [[]])[-1][:count] if k <= 8] + [0] * count
    for v in (right, wrong):
        v["lod"] = [lengths[:count]]
        resize(v, sum(lengths[:count]), 2)
        v["value"][:, 1] = np.abs(v["value"][:, 1]) > 0.5
    wrong["value"][:, 0] = right["value"][:, 0]


def regions_of_images(case):
    """BatchRoINums of `prroi_pool` has a number for each image, which add up to the rows of ROIs."""
    x, rois = one(case, "X")["value"], one(case, "ROIs")
    if not x.ndim or not len(x):
        return
    for v in those(case, "BatchRoINums"):
        ends = np.linspace(0, len(rois["value"]), len(x) + 1).astype(int)
        v["value"] = np.diff(ends).astype(v["value"].dtype)


def truths_of_images(case):
    """MatchIndices of `target_assign` has a row for each sequence of X, whose rows it names, or -1."""
    x, matches, missed = (one(case, slot) for slot in ("X", "MatchIndices", "NegIndices"))
    if not x.get("lod") or matches["value"].ndim != 2:
        return
    lengths = np.array(x["lod"][-1]).reshape(-1, 1)
    resize(matches, len(lengths), matches["value"].shape[1])
    found = matches["value"].astype("int64")
    matches["value"] = np.where(found < 0, -1, found % np.maximum(lengths, 1) - (lengths == 0)).astype("int32")
    if missed is not None and missed.get("lod"):
        missed["lod"] = [[*missed["lod"][-1][: len(lengths)], *[0] * len(lengths)][: len(lengths)]]
        resize(missed, sum(missed["lod"][0]), 1)
        missed["value"] = missed["value"] % missed["value"].dtype.type(max(1, found.shape[1]))
