"""Cases of ops of detection: boxes, priors, matches, suppression."""
import numpy as np
from op_case import Seq, case, integers, real


def boxes(*n, scale=1.0):
    corner = real(*n, 2, lo=0)
    return np.concatenate([corner, corner + real(*n, 2, lo=0.2)], -1) * scale


def overlaps(x, y, edge=0.0):
    low, high = np.maximum(x[:, None, :2], y[None, :, :2]), np.minimum(x[:, None, 2:], y[None, :, 2:])
    common = np.prod(np.maximum(high - low + edge, 0), -1)
    area = [np.prod(b[:, 2:] - b[:, :2] + edge, -1) for b in (x, y)]
    return common / (area[0][:, None] + area[1][None] - common + 1e-10)


def single(value):
    """Attributes hold float32; None leaves one out."""
    if isinstance(value, dict):
        return {k: single(v) for k, v in value.items() if v is not None}
    if isinstance(value, (list, tuple)):
        return [single(v) for v in value]
    return float(np.float32(value)) if isinstance(value, float) else value


def plain(x):
    return x.array if isinstance(x, Seq) else x


# ---- boxes

def iou(i, a):
    a = single(a)
    x = i["X"]
    out = overlaps(plain(x), i["Y"], 0.0 if a.get("box_normalized", True) else 1.0)
    return Seq(out, x.lengths) if isinstance(x, Seq) else out


case("iou_similarity", {"X": boxes(5), "Y": boxes(7)}, ref=iou, large={"X": boxes(700), "Y": boxes(301)})
case("iou_similarity", {"X": Seq(boxes(3), [[2, 1]]), "Y": boxes(2)}, {"box_normalized": False}, iou)
case("iou_similarity", {"X": np.array([[2.0, 2, 1, 1], [0, 0, 0, 0], [0, 0, 1, 1]]), "Y": boxes(2)}, ref=iou,
     name="degenerate")


def centred(b, edge):
    size = b[..., 2:] - b[..., :2] + edge
    return b[..., :2] + size / 2, size


def coder(i, a):
    a = single(a)
    edge, target = 0.0 if a.get("box_normalized", True) else 1.0, plain(i["TargetBox"])
    prior, variance = i["PriorBox"], i.get("PriorBoxVar", np.array(a.get("variance") or [1.0] * 4, "float32"))
    if a.get("axis") and target.ndim == 3:
        prior, variance = prior[:, None], variance[:, None] if variance.ndim == 2 else variance
    (middle, size), v = centred(prior, edge), np.broadcast_to(variance, prior.shape)
    if target.ndim == 2:
        at, extent = (target[:, None, 2:] + target[:, None, :2]) / 2, target[:, None, 2:] - target[:, None, :2] + edge
        out = np.concatenate([(at - middle) / size, np.log(np.abs(extent / size))], -1) / v
    else:
        at, extent = v[..., :2] * target[..., :2] * size + middle, np.exp(v[..., 2:] * target[..., 2:]) * size
        out = np.concatenate([at - extent / 2, at + extent / 2 - edge], -1)
    return Seq(out, i["TargetBox"].lengths) if isinstance(i["TargetBox"], Seq) else out


case("box_coder", {"PriorBox": boxes(4), "PriorBoxVar": real(4, 4, lo=0.1), "TargetBox": Seq(boxes(3), [[1, 2]])},
     ref=coder, rtol=2e-5)
case("box_coder", {"PriorBox": boxes(4), "TargetBox": boxes(3)},
     {"variance": [0.1, 0.1, 0.2, 0.2], "box_normalized": False}, coder, rtol=2e-5)
case("box_coder", {"PriorBox": boxes(4), "TargetBox": boxes(3)}, ref=coder, rtol=2e-5)
case("box_coder", {"PriorBox": boxes(4), "PriorBoxVar": real(4, 4, lo=0.1), "TargetBox": Seq(real(3, 4, 4), [[1, 2]])},
     {"code_type": "decode_center_size"}, coder, rtol=1e-5)
case("box_coder", {"PriorBox": boxes(4), "PriorBoxVar": real(4, 4, lo=0.1), "TargetBox": real(4, 3, 4)},
     {"code_type": "decode_center_size", "axis": 1, "box_normalized": False}, coder, rtol=1e-5,
     large={"PriorBox": boxes(130), "PriorBoxVar": real(130, 4, lo=0.1), "TargetBox": real(130, 97, 4)}, large_rtol=2e-5)
case("box_coder", {"PriorBox": boxes(3), "TargetBox": real(2, 3, 4)},
     {"code_type": "decode_center_size", "variance": [0.1, 0.2, 0.3, 0.4]}, coder, rtol=1e-5)


def clip(i, a):
    x, out, row = i["Input"], [], 0
    for n, (height, width, scale) in zip(x.lengths[0], i["ImInfo"]):
        last = np.array([np.floor(width / scale + 0.5) - 1, np.floor(height / scale + 0.5) - 1] * 2)
        out.append(np.maximum(np.minimum(x.array[row:row + n], last), 0))
        row += n
    return Seq(np.concatenate(out), x.lengths)


IMAGES = np.array([[10.0, 20.0, 1.0], [21.0, 13.0, 2.0]])
case("box_clip", {"Input": Seq(real(5, 4, lo=-5, hi=30), [[2, 3]]), "ImInfo": IMAGES}, ref=clip)
case("box_clip", {"Input": Seq(real(4, 3, 4, lo=-5, hi=30), [[1, 3]]), "ImInfo": IMAGES}, ref=clip)


def corners(i, a):
    x = i["Input"]
    at = np.stack([np.broadcast_to(np.arange(x.shape[3]), x.shape[2:]),
                   np.broadcast_to(np.arange(x.shape[2])[:, None], x.shape[2:])])
    return 4.0 * np.tile(at, (x.shape[1] // 2, 1, 1)) - x


case("polygon_box_transform", {"Input": real(2, 8, 3, 4)}, ref=corners, large={"Input": real(2, 8, 121, 97)})


def yolo(i, a):
    a = single(a)
    x, size = i["X"], i["ImgSize"].astype("float64")
    anchors = np.array(a["anchors"], "float64").reshape(-1, 2)
    n, (rows, columns), k = len(x), x.shape[2:], len(anchors)
    x = x.reshape(n, k, -1, rows, columns)
    s = 1 / (1 + np.exp(-x))
    scale, unit = a.get("scale_x_y", 1.0), size[:, ::-1].reshape(n, 2, 1, 1, 1)
    grid = np.stack(np.broadcast_arrays(np.arange(columns), np.arange(rows)[:, None]))[:, None]
    middle = (grid + s[:, :, :2].swapaxes(1, 2) * scale + (1 - scale) / 2) * unit / rows
    half = np.exp(x[:, :, 2:4].swapaxes(1, 2)) * anchors.T[None, :, :, None, None] * unit / (
        a.get("downsample_ratio", 32) * rows) / 2
    low, high = middle - half, middle + half
    if a.get("clip_bbox", True):
        low, high = np.maximum(low, 0), np.minimum(high, unit - 1)
    box = np.concatenate([low, high], 1).transpose(0, 2, 3, 4, 1)
    score = (s[:, :, 4:5] * s[:, :, 5:]).transpose(0, 1, 3, 4, 2)
    keep = s[:, :, 4, ..., None] >= a["conf_thresh"]
    return {"Boxes": (box * keep).reshape(n, -1, 4), "Scores": (score * keep).reshape(n, k * rows * columns, -1)}


YOLO = {"class_num": 2, "anchors": [10, 13, 16, 30], "conf_thresh": 0.4}
SIZES = np.array([[64, 90], [50, 30]], "int32")
case("yolo_box", {"X": real(2, 14, 3, 3), "ImgSize": SIZES}, YOLO, yolo, rtol=1e-5,
     large={"X": real(2, 14, 40, 40), "ImgSize": SIZES}, large_rtol=1e-4)
case("yolo_box", {"X": real(2, 14, 2, 3), "ImgSize": SIZES},
     dict(YOLO, clip_bbox=False, scale_x_y=1.2, downsample_ratio=16, conf_thresh=0.0), yolo, rtol=1e-5)


# ---- priors

def grid(i, a, at_cell, name="Boxes"):
    """Boxes (dx, dy, half width, half height) around the centres of cells, in fractions of the image."""
    rows, columns = i["Input"].shape[2:]
    height, width = i["Image"].shape[2:]
    w, h = a.get("step_w", 0.0), a.get("step_h", 0.0)
    if not w or not h:
        w, h = width / columns, height / rows
    offset, b = a.get("offset", 0.5), np.array(at_cell(w, h)).reshape(-1, 4)
    middle = np.stack(np.broadcast_arrays((np.arange(columns) + offset) * w, (np.arange(rows)[:, None] + offset) * h), -1)
    middle = middle[:, :, None] + b[:, :2]
    out = np.concatenate([middle - b[:, 2:], middle + b[:, 2:]], -1) / [width, height, width, height]
    if a.get("clip", True):
        out = np.clip(out, 0, 1)
    return {name: out, "Variances": np.broadcast_to(np.array(a["variances"], "float32"), out.shape)}


def prior(i, a):
    a = single(a)
    ratios = [1.0]
    for r in a["aspect_ratios"]:
        if all(abs(r - k) > 1e-6 for k in ratios):
            ratios += [r, float(np.float32(1 / r))] if a.get("flip", True) else [r]

    def at_cell(w, h):
        made = []
        for k, s in enumerate(a["min_sizes"]):
            here = [(0, 0, s * r ** 0.5 / 2, s / r ** 0.5 / 2) for r in ratios]
            if a.get("max_sizes"):
                half = (s * a["max_sizes"][k]) ** 0.5 / 2
                here.insert(1 if a.get("min_max_aspect_ratios_order") else len(here), (0, 0, half, half))
            made += here
        return made
    return grid(i, a, at_cell)


VARIANCES = [0.1, 0.1, 0.2, 0.2]
MAPS = {"Input": real(1, 2, 3, 4), "Image": real(1, 3, 9, 16)}
PRIOR = {"min_sizes": [2.0, 4.0], "aspect_ratios": [2.0], "variances": VARIANCES}
case("prior_box", MAPS, PRIOR, prior)
case("prior_box", MAPS, dict(PRIOR, max_sizes=[5.0, 9.0], clip=False, min_max_aspect_ratios_order=True,
                             aspect_ratios=[1.0, 2.0, 2.0000001, 0.5]), prior, rtol=1e-5)
case("prior_box", MAPS, dict(PRIOR, max_sizes=[5.0, 9.0], flip=False, step_w=3.0, step_h=2.0, offset=0.3), prior, rtol=1e-5,
     large={"Input": real(1, 1, 71, 67), "Image": real(1, 1, 300, 200)})


def density(i, a):
    a = single(a)
    def at_cell(w, h):
        side, made = int((w + h) / 2), []
        for s, d in zip(a["fixed_sizes"], a["densities"]):
            shift = side // d
            for r in a["fixed_ratios"]:
                made += [((shift - side) / 2 + x * shift, (shift - side) / 2 + y * shift, s * r ** 0.5 / 2, s / r ** 0.5 / 2)
                         for y in range(d) for x in range(d)]
        return made
    found = grid(i, dict(a, clip=False), at_cell)
    out = found["Boxes"]
    out[..., :2], out[..., 2:] = np.maximum(out[..., :2], 0), np.minimum(out[..., 2:], 1)
    if a.get("clip", True):
        found["Boxes"] = np.clip(out, 0, 1)
    return {k: v.reshape(-1, 4) for k, v in found.items()} if a.get("flatten_to_2d") else found


DENSITY = {"variances": VARIANCES, "fixed_sizes": [2.0, 4.0], "fixed_ratios": [1.0, 2.0], "densities": [2, 1]}
case("density_prior_box", MAPS, DENSITY, density, rtol=1e-5)
case("density_prior_box", MAPS, dict(DENSITY, clip=False, step_w=7.0, step_h=6.0, offset=0.0, densities=[3, 2]), density,
     rtol=1e-5)
case("density_prior_box", MAPS, dict(DENSITY, flatten_to_2d=True), density, rtol=1e-5)


def anchors(i, a):
    a = single(a)
    (w, h), made = a.get("stride", (16.0, 16.0)), []
    for r in a["aspect_ratios"]:
        base_w = np.floor((w * h / r) ** 0.5 + 0.5)
        base_h = np.floor(base_w * r + 0.5)
        made += [((s / w * base_w - 1) / 2, (s / h * base_h - 1) / 2) for s in a["anchor_sizes"]]
    rows, columns = i["Input"].shape[2:]
    offset, half = a.get("offset", 0.5), np.array(made)
    middle = np.stack(np.broadcast_arrays(np.arange(columns) * w + offset * (w - 1),
                                          np.arange(rows)[:, None] * h + offset * (h - 1)), -1)[:, :, None]
    out = np.concatenate([middle - half, middle + half], -1)
    return {"Anchors": out, "Variances": np.broadcast_to(np.array(a["variances"], "float32"), out.shape)}


ANCHORS = {"anchor_sizes": [32.0, 64.0], "aspect_ratios": [0.5, 1.0, 2.0], "variances": VARIANCES}
case("anchor_generator", {"Input": MAPS["Input"]}, ANCHORS, anchors)
case("anchor_generator", {"Input": MAPS["Input"]}, dict(ANCHORS, stride=[16.0, 8.0], offset=0.2), anchors)


# ---- matches

def match(i, a):
    a = single(a)
    dist = i["DistMat"]
    lengths = dist.lengths[0] if isinstance(dist, Seq) else [len(dist)]
    d = plain(dist)
    rows, near, first = np.full((len(lengths), d.shape[1]), -1, "int32"), np.zeros((len(lengths), d.shape[1])), 0
    for n, length in enumerate(lengths):
        part = d[first:first + length]
        first += length
        order = sorted((-part[r, c], c, r) for r in range(length) for c in range(d.shape[1]) if part[r, c] >= 1e-6)
        for value, c, r in order:
            if rows[n, c] < 0 and r not in rows[n]:
                rows[n, c], near[n, c] = r, -value
        if a.get("match_type") == "per_prediction":
            for c in np.flatnonzero(rows[n] < 0):
                r = part[:, c].argmax() if length else 0
                if length and part[r, c] >= 1e-6 and part[r, c] >= a.get("dist_threshold", 0.5):
                    rows[n, c], near[n, c] = r, part[r, c]
    return {"ColToRowMatchIndices": rows, "ColToRowMatchDist": near}


case("bipartite_match", {"DistMat": real(5, 7, lo=-0.3)}, ref=match,
     large={"DistMat": Seq(real(60, 400, lo=0), [[20, 40]])})
case("bipartite_match", {"DistMat": Seq(real(7, 5, lo=0), [[4, 3]])}, ref=match)
case("bipartite_match", {"DistMat": Seq(real(7, 9, lo=0), [[4, 3]])},
     {"match_type": "per_prediction", "dist_threshold": 0.6}, match)
case("bipartite_match", {"DistMat": np.round(real(6, 9, lo=0), 1)}, {"match_type": "per_prediction"}, match, name="ties",
     dtypes=("float64",))


def assign(i, a):
    a = single(a)
    x, m = i["X"].array, i["MatchIndices"]
    starts = np.cumsum([0] + list(i["X"].lengths[0]))[:len(m), None]
    out = x[np.where(m >= 0, m + starts, 0), np.arange(m.shape[1]) % x.shape[1]]
    out, weight = np.where(m[..., None] >= 0, out, a.get("mismatch_value", 0)), (m >= 0).astype("float32")
    if "NegIndices" in i:
        first = 0
        for n, length in enumerate(i["NegIndices"].lengths[0]):
            places = i["NegIndices"].array[first:first + length, 0]
            out[n, places], weight[n, places], first = a.get("mismatch_value", 0), 1, first + length
    return {"Out": out.astype(x.dtype), "OutWeight": weight[..., None]}


MATCHES = np.array([[0, -1, 1, -1], [-1, 0, -1, 2]], "int32")
NEGATIVES = Seq(np.array([[1], [3], [0]], "int32"), [[2, 1]])
case("target_assign", {"X": Seq(real(5, 2, 3), [[2, 3]]), "MatchIndices": MATCHES}, {"mismatch_value": 7}, assign)
case("target_assign", {"X": Seq(real(5, 1, 3), [[2, 3]]), "MatchIndices": MATCHES, "NegIndices": NEGATIVES}, ref=assign)
case("target_assign", {"X": Seq(integers(5, 1, 1, dtype="int32"), [[2, 3]]), "MatchIndices": MATCHES,
                       "NegIndices": NEGATIVES}, {"mismatch_value": 2}, assign, name="int32")


def mine(i, a):
    a = single(a)
    everything = a.get("mining_type") == "hard_example"
    updated, chosen, lengths = i["MatchIndices"].copy(), [], []
    for n, m in enumerate(i["MatchIndices"]):
        loss = i["ClsLoss"][n] + (i["LocLoss"][n] if everything and "LocLoss" in i else 0)
        fits = np.full(m.shape, True) if everything else (m == -1) & (i["MatchDist"][n] < a.get("neg_dist_threshold", 0.5))
        most = a["sample_size"] if everything else int((m != -1).sum() * a.get("neg_pos_ratio", 1.0))
        picked = [k for k in np.argsort(-loss, kind="stable") if fits[k]][:most]
        negatives = sorted(k for k in picked if m[k] < 0)
        if everything:
            updated[n, [k for k in range(len(m)) if k not in picked and m[k] >= 0]] = -1
        chosen += negatives
        lengths.append(len(negatives))
    return {"NegIndices": Seq(np.array(chosen, "int32").reshape(-1, 1), [lengths]), "UpdatedMatchIndices": updated}


LOSSES = {"ClsLoss": real(2, 9, lo=0), "LocLoss": real(2, 9, lo=0), "MatchDist": real(2, 9, lo=0),
          "MatchIndices": np.array([[0, -1, 1, -1, -1, -1, -1, -1, -1], [-1, 0, -1, 2, 1, -1, -1, -1, -1]], "int32")}
case("mine_hard_examples", LOSSES, {"neg_pos_ratio": 1.5, "neg_dist_threshold": 0.7}, mine)
case("mine_hard_examples", {k: LOSSES[k] for k in ("ClsLoss", "MatchDist", "MatchIndices")}, ref=mine)
case("mine_hard_examples", LOSSES, {"mining_type": "hard_example", "sample_size": 4}, mine)
case("mine_hard_examples", {**LOSSES, "MatchIndices": LOSSES["MatchIndices"] * 3}, {"mining_type": "hard_example", "sample_size": 4},
     mine, name="far_below_0")


# ---- suppression

def kept(box, score, a, polygons):
    order = [k for k in np.argsort(-score, kind="stable") if score[k] > np.float32(a["score_threshold"])]
    if a["nms_top_k"] >= 0:
        order = order[:a["nms_top_k"]]
    threshold, eta, found = a.get("nms_threshold", 0.3), a.get("nms_eta", 1.0), []
    for k in order:
        with np.errstate(invalid="ignore"):
            if polygons:
                near = [diamonds(box[k], box[f]) for f in found]
            else:
                touch = np.all((box[k, :2] <= box[found, 2:]) & (box[found, :2] <= box[k, 2:]), -1)
                near = list(touch * overlaps(box[k:k + 1], box[found], 0.0 if a.get("normalized", True) else 1.0)[0])
        if all(n <= threshold for n in near):
            found.append(k)
            threshold *= eta if eta < 1 and threshold > 0.5 else 1
    return found


def diamonds(p, q):
    """Overlap of squares that stand on a corner, by their boxes after a rotation."""
    turned = [np.stack([b[0::2] + b[1::2], b[1::2] - b[0::2]]) for b in (p, q)]
    sides = [np.concatenate([t.min(1), t.max(1)])[None] for t in turned]
    return overlaps(*sides)[0, 0]


def nms(i, a, index=False):
    a = single(a)
    boxes_in, scores = i["BBoxes"], plain(i["Scores"])
    if scores.ndim == 3:
        images = [(boxes_in[n][None].repeat(scores.shape[1], 0), scores[n]) for n in range(len(scores))]
        number = lambda n, c, k: n * scores.shape[2] + k
    else:
        ends = np.cumsum([0] + list(boxes_in.lengths[0]))
        images = [(boxes_in.array[b:e].swapaxes(0, 1), scores[b:e].T) for b, e in zip(ends, ends[1:])]
        number = lambda n, c, k: (ends[n] + k) * scores.shape[1] + c
    rows, numbers, lengths = [], [], []
    for n, (box, score) in enumerate(images):
        found = [(c, k) for c in range(len(score)) if c != a.get("background_label", 0)
                 for k in kept(box[c], score[c], a, box.shape[-1] > 4)]
        if 0 <= a["keep_top_k"] < len(found):
            best = sorted(range(len(found)), key=lambda f: -score[found[f]])[:a["keep_top_k"]]
            found = [found[f] for f in sorted(best)]
        if scores.ndim == 2:
            found.sort()
        rows += [[c, score[c, k], *box[c, k]] for c, k in found]
        numbers += [[number(n, c, k)] for c, k in found]
        lengths.append(len(found))
    out = Seq(np.array(rows).reshape(-1, plain(boxes_in).shape[-1] + 2), [lengths])
    if index:
        return {"Out": out, "Index": Seq(np.array(numbers, "int32").reshape(-1, 1), [lengths])}
    return out if rows else Seq(np.full((1, 1), -1.0), [[1]])


def nms2(i, a):
    return nms(i, a, True)


NMS = {"score_threshold": 0.1, "nms_top_k": -1, "keep_top_k": -1}
FOUND = {"BBoxes": boxes(2, 9), "Scores": real(2, 3, 9, lo=0)}
BY_CLASS = {"BBoxes": Seq(boxes(9, 3), [[4, 5]]), "Scores": Seq(real(9, 3, lo=0), [[4, 5]])}
middle = real(1, 12, 1, 2, lo=0, hi=3)
DIAMONDS = (middle + np.array([[0, -1.0], [1, 0], [0, 1], [-1, 0]]) * real(1, 12, 1, 1, lo=0.4)).reshape(1, 12, 8)
case("multiclass_nms", FOUND, NMS, nms, large={"BBoxes": boxes(2, 300, scale=2.0), "Scores": real(2, 8, 300, lo=0)})
case("multiclass_nms", FOUND, dict(NMS, nms_top_k=6, keep_top_k=5, normalized=False, background_label=-1), nms)
case("multiclass_nms", FOUND, dict(NMS, score_threshold=2.0), nms, name="nothing")
case("multiclass_nms", BY_CLASS, dict(NMS, nms_threshold=0.5, keep_top_k=7, background_label=-1), nms)
case("multiclass_nms2", FOUND, dict(NMS, nms_threshold=0.8, nms_eta=0.7, background_label=1), nms2)
case("multiclass_nms2", FOUND, dict(NMS, score_threshold=2.0), nms2, name="nothing")
case("multiclass_nms2", BY_CLASS, dict(NMS, background_label=-1), nms2)
case("multiclass_nms2", {"BBoxes": DIAMONDS, "Scores": real(1, 2, 12, lo=0)}, dict(NMS, keep_top_k=9), nms2,
     name="polygons")
