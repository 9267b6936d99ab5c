"""Cases of other kinds of suppression."""
import numpy as np
from cases_detection import boxes, diamonds, kept, single
from op_case import Seq, case, real


def near(x, y, a):
    """Overlaps of boxes; 0 where they do not touch."""
    edge = 0.0 if a.get("normalized", True) else 1.0
    low, high = np.maximum(x[:, None, :2], y[None, :, :2]), np.minimum(x[:, None, 2:], y[None, :, 2:])
    common = np.prod(high - low + edge, -1) * (high >= low).all(-1)
    area = [np.prod(b[:, 2:] - b[:, :2] + edge, -1) for b in (x, y)]
    return common / (area[0][:, None] + area[1][None] - common)


def decayed(i, a):
    a = single(a)
    rows, numbers, lengths = [], [], []
    for n, (box, scores) in enumerate(zip(i["BBoxes"], i["Scores"])):
        found = []
        for k, score in enumerate(scores):
            order = [b for b in np.argsort(-score, kind="stable") if score[b] > a["score_threshold"]]
            order = order[:a["nms_top_k"]] if a["nms_top_k"] >= 0 else order
            if k == a.get("background_label", 0) or not order:
                continue
            o = np.tril(near(box[order], box[order], a), -1)
            most = o.max(1)
            factor = np.exp((most ** 2 - o ** 2) * a["gaussian_sigma"]) if a.get("use_gaussian") else (1 - o) / (1 - most)
            factor = np.where(np.tri(len(order), k=-1), factor, 1).min(1)
            found += [(s, k, b) for s, b in zip(score[order] * np.minimum(factor, 1), order) if s > a.get("post_threshold", 0)]
        found = sorted(found, key=lambda f: -f[0])[:a["keep_top_k"] if a["keep_top_k"] >= 0 else None]
        rows += [[k, s, *box[b]] for s, k, b in found]
        numbers += [[n * len(box) + b] for _, _, b in found]
        lengths.append(len(found))
    return {"Out": Seq(np.array(rows).reshape(-1, 6), [lengths]),
            "Index": Seq(np.array(numbers, "int32").reshape(-1, 1), [lengths])}


FOUND = {"BBoxes": boxes(2, 12), "Scores": real(2, 3, 12, lo=0)}
MATRIX = {"score_threshold": 0.1, "nms_top_k": -1, "keep_top_k": -1}
case("matrix_nms", FOUND, MATRIX, decayed, rtol=1e-5, large={"BBoxes": boxes(2, 300, scale=2.0), "Scores": real(2, 8, 300, lo=0)},
     large_rtol=1e-4)
case("matrix_nms", FOUND, dict(MATRIX, nms_top_k=8, keep_top_k=5, post_threshold=0.2, background_label=-1, normalized=False),
     decayed, rtol=1e-5)
case("matrix_nms", FOUND, dict(MATRIX, use_gaussian=True, gaussian_sigma=1.5, background_label=1), decayed, rtol=1e-5)
case("matrix_nms", FOUND, dict(MATRIX, score_threshold=2.0), decayed, name="nothing")


def merged(i, a):
    a = single(a)
    rows, lengths = [], []
    for box, scores in zip(i["BBoxes"].copy(), i["Scores"].copy()):
        found = []
        for k, score in enumerate(scores):
            if k == a.get("background_label", -1):
                continue
            last = -1
            for b in range(len(box)):
                if last >= 0:
                    o = near(box[b:b + 1], box[last:last + 1], a)[0, 0] if box.shape[1] == 4 else diamonds(box[b], box[last])
                    if o > a.get("nms_threshold", 0.3):
                        box[last] = (box[b] * score[b] + box[last] * score[last]) / (score[b] + score[last])
                        score[last] += score[b]
                        score[b] = -np.inf
                        continue
                last = b
            found += [(score[b], k, box[b].copy(), (k, b)) for b in kept(box, score, a, box.shape[1] > 4)]
        if 0 <= a["keep_top_k"] < len(found):
            best = sorted(range(len(found)), key=lambda f: -found[f][0])[:a["keep_top_k"]]
            found = [found[f] for f in sorted(best)]
        rows += [[k, s, *box[at[1]]] for s, k, _, at in found]
        lengths.append(len(found))
    if not rows:
        return Seq(np.full((1, 1), -1.0), [[1]])
    return Seq(np.array(rows), [lengths])


TEXT = {"BBoxes": boxes(2, 14), "Scores": real(2, 1, 14, lo=0)}
TEXT["BBoxes"][:, 3:6] = TEXT["BBoxes"][:, 3:4] + 0.02
middle = real(1, 12, 1, 2, lo=0, hi=3)
DIAMONDS = (middle + np.array([[0, -1.0], [1, 0], [0, 1], [-1, 0]]) * real(1, 12, 1, 1, lo=0.4)).reshape(1, 12, 8)
DIAMONDS[:, 4] = DIAMONDS[:, 5] + 0.03
case("locality_aware_nms", TEXT, MATRIX, merged, rtol=1e-5)
case("locality_aware_nms", dict(TEXT, Scores=real(2, 2, 14, lo=0)), dict(MATRIX, nms_top_k=5, keep_top_k=4, nms_threshold=0.2, normalized=False),
     merged, rtol=1e-5)
case("locality_aware_nms", dict(TEXT, Scores=real(2, 3, 14, lo=0)), dict(MATRIX, background_label=0, nms_threshold=0.7, nms_eta=0.8),
     merged, rtol=1e-5)
case("locality_aware_nms", {"BBoxes": DIAMONDS, "Scores": real(1, 1, 12, lo=0)}, MATRIX, merged, rtol=1e-5, name="polygons")
case("locality_aware_nms", TEXT, dict(MATRIX, score_threshold=20.0), merged, name="nothing")


# ---- RetinaNet

def detected(i, a):
    a = single(a)
    rows, lengths = [], []
    levels = list(zip(i["BBoxes"], i["Scores"], i["Anchors"]))
    for n, (height, width, scale) in enumerate(i["ImInfo"]):
        found = {}
        for level, (deltas, scores, anchor) in enumerate(levels):
            score, least = scores[n].ravel(), a["score_threshold"] if level < len(levels) - 1 else 0
            order = [k for k in np.argsort(-score, kind="stable") if score[k] > least]
            for k in order[:a["nms_top_k"]] if a["nms_top_k"] >= 0 else order:
                at, cls = divmod(k, scores.shape[2])
                size = anchor[at, 2:] - anchor[at, :2] + 1
                middle = anchor[at, :2] + size / 2 + deltas[n, at, :2] * size
                size = np.exp(deltas[n, at, 2:]) * size
                box = np.concatenate([middle - size / 2, middle + size / 2 - 1]) / scale
                edge = np.round(np.array([width, height] * 2) / scale) - 1
                found.setdefault(cls, []).append((np.maximum(np.minimum(box, edge), 0), score[k]))
        chosen = []
        for cls in sorted(found):
            box, score = np.array([f[0] for f in found[cls]]), np.array([f[1] for f in found[cls]])
            chosen += [[cls + 1, score[k], *box[k]] for k in kept(
                box, score, dict(a, score_threshold=-np.inf, nms_top_k=-1, normalized=False), False)]
        chosen = sorted(chosen, key=lambda c: -c[1])[:a["keep_top_k"] if a["keep_top_k"] >= 0 else None]
        rows += chosen
        lengths.append(len(chosen))
    return Seq(np.array(rows).reshape(-1, 6), [lengths])


RETINA = {"BBoxes": [real(2, 9, 4), real(2, 4, 4)], "Scores": [real(2, 9, 3, lo=0), real(2, 4, 3, lo=0)],
          "Anchors": [boxes(9, scale=16.0), boxes(4, scale=24.0)], "ImInfo": np.array([[30.0, 34.0, 1.5], [24, 26, 0.5]])}
DETECT = {"score_threshold": 0.3, "nms_top_k": 20, "nms_threshold": 0.3, "nms_eta": 1.0, "keep_top_k": 100}
case("retinanet_detection_output", RETINA, DETECT, detected, rtol=1e-5)
case("retinanet_detection_output", RETINA, dict(DETECT, nms_top_k=6, keep_top_k=5, nms_threshold=0.7, nms_eta=0.8), detected, rtol=1e-5)
case("retinanet_detection_output", dict(RETINA, Scores=[s - 2 for s in RETINA["Scores"]]), DETECT, detected, name="nothing")
