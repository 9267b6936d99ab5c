"""Cases of ops that propose regions, and choose and code those that are trained on."""
import numpy as np
from cases_detection import kept, single
from op_case import Seq, case, integers, real

# ---- proposals

def propose(i, a):
    a = single(a)
    rows, scores, lengths = [], [], []
    anchors, variances = i["Anchors"].reshape(-1, 4), i["Variances"].reshape(-1, 4)
    for n, (height, width, scale) in enumerate(i["ImInfo"]):
        score = i["Scores"][n].transpose(1, 2, 0).ravel()
        order = np.argsort(-score, kind="stable")[:a["pre_nms_topN"] if a["pre_nms_topN"] > 0 else None]
        delta = i["BboxDeltas"][n].reshape(-1, 4, *i["Scores"].shape[2:]).transpose(2, 3, 0, 1).reshape(-1, 4)[order]
        delta, anchor = delta * variances[order], anchors[order]
        size = anchor[:, 2:] - anchor[:, :2] + 1
        middle = anchor[:, :2] + size / 2 + delta[:, :2] * size
        size = np.exp(np.minimum(delta[:, 2:], np.log(1000 / 16))) * size
        box = np.concatenate([middle - size / 2, middle + size / 2 - 1], 1)
        box = np.maximum(np.minimum(box, [width - 1, height - 1] * 2), 0)
        size = box[:, 2:] - box[:, :2]
        fits = (size / scale + 1 >= max(a["min_size"], 1)).all(1) & (box[:, :2] + (size + 1) / 2 <= [width, height]).all(1)
        box, score = box[fits], score[order][fits]
        if a["nms_thresh"] > 0:
            found = kept(box, score, {"score_threshold": -np.inf, "nms_top_k": -1, "nms_threshold": a["nms_thresh"],
                                      "nms_eta": a["eta"], "normalized": False}, False)
            found = found[:a["post_nms_topN"] if a["post_nms_topN"] > 0 else None]
            box, score = box[found], score[found]
        rows += list(box)
        scores += [[s] for s in score]
        lengths.append(len(box))
    return {"RpnRois": Seq(np.array(rows).reshape(-1, 4), [lengths]), "RpnRoiProbs": Seq(np.array(scores).reshape(-1, 1), [lengths]),
            "RpnRoisLod": np.cumsum(lengths)}


def anchors(*n, size=20.0):
    corner = real(*n, 2, lo=-4, hi=size)
    return np.concatenate([corner, corner + real(*n, 2, lo=2, hi=size)], -1)


def heads(n, a, h, w):
    return {"Scores": real(n, a, h, w), "BboxDeltas": real(n, 4 * a, h, w, lo=-2, hi=2),
            "ImInfo": np.array([[30.0, 34.0, 1.5], [24, 26, 0.5]][:n]), "Anchors": anchors(h, w, a),
            "Variances": real(h, w, a, 4, lo=0.1, hi=0.5)}


PROPOSE = {"pre_nms_topN": 40, "post_nms_topN": 10, "nms_thresh": 0.5, "min_size": 3.0, "eta": 1.0}
case("generate_proposals", heads(2, 3, 4, 5), PROPOSE, propose, rtol=1e-5)
case("generate_proposals", heads(2, 2, 3, 4), dict(PROPOSE, pre_nms_topN=-1, post_nms_topN=-1, nms_thresh=0.8, eta=0.7, min_size=0.1),
     propose, rtol=1e-5)
case("generate_proposals", heads(1, 2, 3, 4), dict(PROPOSE, nms_thresh=0.0, post_nms_topN=3), propose, rtol=1e-5, name="all")
case("generate_proposals", heads(2, 2, 3, 4), dict(PROPOSE, min_size=100.0), propose, rtol=1e-5, name="none")
case("generate_proposals", heads(2, 2, 3, 4), dict(PROPOSE, min_size=100.0, nms_thresh=-1.0), propose, rtol=1e-5, name="none_of_all")


# ---- anchors to train on

def iou(x, y):
    """Of boxes of pixels."""
    low, high = np.maximum(x[:, None, :2], y[None, :, :2]), np.minimum(x[:, None, 2:], y[None, :, 2:])
    common = np.prod(np.maximum(high - low + 1, 0), -1)
    area = [np.prod(b[:, 2:] - b[:, :2] + 1, -1) for b in (x, y)]
    return common / (area[0][:, None] + area[1][None] - common)


def offsets(box, truth):
    size, goal = box[:, 2:] - box[:, :2] + 1, truth[:, 2:] - truth[:, :2] + 1
    return np.concatenate([((truth[:, :2] + goal / 2) - (box[:, :2] + size / 2)) / size, np.log(goal / size)], 1)


def split(rows, lengths):
    ends = np.cumsum([0] + list(lengths))
    return [rows[b:e] for b, e in zip(ends, ends[1:])]


def assign(i, a, labeled=False):
    a = single(a)
    anchors, count = i["Anchor"], len(i["Anchor"])
    high, low = (a["positive_overlap"], a["negative_overlap"]) if labeled else (a["rpn_positive_overlap"], a["rpn_negative_overlap"])
    made = {k: [] for k in ("LocationIndex", "ScoreIndex", "TargetBBox", "TargetLabel", "BBoxInsideWeight")}
    lengths = i["GtBoxes"].lengths[0]
    for n, (truth, crowd, info) in enumerate(zip(split(i["GtBoxes"].array, lengths), split(i["IsCrowd"].array[:, 0], lengths),
                                                 i["ImInfo"])):
        inside = np.arange(count)
        edge = -1 if labeled else a["rpn_straddle_thresh"]
        if edge >= 0:
            inside = np.flatnonzero((anchors[:, :2] >= -edge).all(1) & (anchors[:, 2:] < info[[1, 0]] + edge).all(1))
        truth = truth[crowd == 0] * info[2]
        near = iou(anchors[inside], truth)
        most = near.max(1)
        front = np.flatnonzero((most >= high) | (np.abs(near - near.max(0)) < 1e-5).any(1))
        back = np.flatnonzero(most < low)
        if not labeled:
            if min(a["rpn_batch_size_per_im"], a["rpn_fg_fraction"]) > 0:  # else there is no limit
                front = front[:int(a["rpn_batch_size_per_im"] * a["rpn_fg_fraction"])]
                back = back[:a["rpn_batch_size_per_im"] - len(front)]
        idle = [front[0]] * len(set(front) & set(back))
        front = [k for k in front if k not in back]
        place = np.array(idle + list(front), int)
        best = near.argmax(1)
        labels = split(i["GtLabels"].array[:, 0], lengths)[n][crowd == 0][best[front]] if labeled else np.ones(len(front))
        made["LocationIndex"].append(inside[place] + n * count)
        made["ScoreIndex"].append(inside[np.array(list(front) + list(back), int)] + n * count)
        made["TargetBBox"].append(offsets(anchors[inside][place], truth[best[place]]))
        made["TargetLabel"].append(np.concatenate([labels, np.zeros(len(back))])[:, None].astype("int32"))
        made["BBoxInsideWeight"].append(np.repeat(np.arange(len(place)) >= len(idle), 4).reshape(-1, 4).astype(float))
    out = {k: Seq(np.concatenate(v).astype("int32" if "Index" in k or "Label" in k else float), [[len(p) for p in v]])
           for k, v in made.items()}
    if labeled:
        out["ForegroundNumber"] = Seq(np.array([[len(p) + 1] for p in made["LocationIndex"]], "int32"), [[1] * len(lengths)])
    return out


def retina(i, a):
    return assign(i, a, True)


def truths(*lengths, labeled=False, size=20.0):
    n = sum(lengths)
    made = {"GtBoxes": Seq(anchors(n, size=size), [list(lengths)]),
            "IsCrowd": Seq(np.array([[k % 3 == 2] for k in range(n)], "int32"), [list(lengths)])}
    if labeled:
        made["GtLabels"] = Seq(integers(n, 1, lo=1, hi=5, dtype="int32"), [list(lengths)])
    return made


INFO = np.array([[36.0, 40.0, 1.0], [40, 36, 1.25]])
RPN = {"rpn_batch_size_per_im": 12, "rpn_straddle_thresh": 2.0, "rpn_positive_overlap": 0.4, "rpn_negative_overlap": 0.2,
       "rpn_fg_fraction": 0.5, "use_random": False}
case("rpn_target_assign", dict(truths(3, 4), Anchor=anchors(60), ImInfo=INFO), RPN, assign, rtol=1e-5)
case("rpn_target_assign", dict(truths(5, 2), Anchor=anchors(40), ImInfo=INFO),
     dict(RPN, rpn_straddle_thresh=-1.0, rpn_fg_fraction=0.2, rpn_positive_overlap=0.3, rpn_negative_overlap=0.5), assign, rtol=1e-5)
case("rpn_target_assign", dict(truths(3, 4), Anchor=anchors(50), ImInfo=INFO), dict(RPN, rpn_fg_fraction=-1.0), assign, rtol=1e-5)
case("retinanet_target_assign", dict(truths(3, 4, labeled=True), Anchor=anchors(30), ImInfo=INFO),
     {"positive_overlap": 0.4, "negative_overlap": 0.3}, retina, rtol=1e-5)
case("retinanet_target_assign", dict(truths(4, 3, labeled=True), Anchor=anchors(20), ImInfo=INFO),
     {"positive_overlap": 0.7, "negative_overlap": 0.6}, retina, rtol=1e-5)


# ---- proposals to train on

def label(i, a):
    a = single(a)
    cascade, classes = a.get("is_cascade_rcnn", False), a["class_nums"]
    made = {k: [] for k in ("Rois", "LabelsInt32", "BboxTargets", "BboxInsideWeights", "BboxOutsideWeights")}
    lengths = i["GtBoxes"].lengths[0]
    for n, scale in enumerate(i["ImInfo"][:, 2]):
        truth, crowd = split(i["GtBoxes"].array, lengths)[n], split(i["IsCrowd"].array[:, 0], lengths)[n]
        kind = split(i["GtClasses"].array[:, 0], lengths)[n]
        box = split(i["RpnRois"].array, i["RpnRois"].lengths[0])[n] / scale
        if cascade:
            box = box[(box[:, 2:] - box[:, :2] + 1 > 0).all(1)]
        elif len(box):  # an image without proposals gets no rois, as in Fluid 1.8.5
            box = np.concatenate([truth, box])
        near = iou(box, truth)
        most = near.max(1)
        if not cascade:
            most[:len(truth)][(crowd != 0)[:len(box)]] = -1
        fits = most > a["fg_thresh"] if cascade else most >= a["fg_thresh"]
        front = np.flatnonzero(fits)
        back = np.flatnonzero(~fits & (most >= a["bg_thresh_lo"]) & (most < a["bg_thresh_hi"]))
        if not cascade:
            front = front[:int(a["batch_size_per_im"] * min(a["fg_fraction"], 1))]
            back = back[:a["batch_size_per_im"] - len(front)]
        rows, best = np.concatenate([front, back]), near.argmax(1)
        kinds = np.where(np.arange(len(rows)) < len(front), kind[best[rows]], 0)
        targets, weights = np.zeros((2, len(rows), classes, 4))
        for r, k in enumerate(kinds):
            if k > 0:
                at = 1 if a.get("is_cls_agnostic") else k
                targets[r, at] = offsets(box[rows[r]][None], truth[best[rows[r]]][None])[0] / a["bbox_reg_weights"]
                weights[r, at] = 1
        made["Rois"].append(box[rows] * scale)
        made["LabelsInt32"].append(kinds[:, None].astype("int32"))
        made["BboxTargets"].append(targets.reshape(len(rows), 4 * classes))
        made["BboxInsideWeights"].append(weights.reshape(len(rows), 4 * classes))
        made["BboxOutsideWeights"].append(weights.reshape(len(rows), 4 * classes))
    return {k: Seq(np.concatenate(v), [[len(p) for p in v]]) for k, v in made.items()}


def stage(first, second):
    made = truths(*first, labeled=True)
    made["GtClasses"] = made.pop("GtLabels")
    return dict(made, RpnRois=Seq(anchors(sum(second)), [list(second)]), ImInfo=INFO)


LABEL = {"batch_size_per_im": 12, "fg_fraction": 0.25, "fg_thresh": 0.4, "bg_thresh_hi": 0.4, "bg_thresh_lo": 0.0,
         "bbox_reg_weights": [0.1, 0.1, 0.2, 0.2], "class_nums": 5, "use_random": False}
case("generate_proposal_labels", stage((3, 4), (20, 25)), LABEL, label, rtol=1e-5)
case("generate_proposal_labels", stage((5, 2), (30, 12)),
     dict(LABEL, batch_size_per_im=40, fg_fraction=0.5, fg_thresh=0.3, bg_thresh_hi=0.25, bg_thresh_lo=0.1, is_cls_agnostic=True),
     label, rtol=1e-5)
# The second stage of a cascade: offsets in two columns for labels of all classes.
case("generate_proposal_labels", stage((5, 2), (30, 12)), dict(LABEL, class_nums=2, is_cls_agnostic=True), label, rtol=1e-5,
     name="agnostic_two_columns")
CASCADE = stage((2, 2), (30, 12))
CASCADE["RpnRois"].array[5:9, 2] -= 15.0
CASCADE["ImInfo"] = np.array([[36.0, 40.0, 1.0], [40, 36, 1.0]])
case("generate_proposal_labels", dict(CASCADE, IsCrowd=Seq(np.zeros((4, 1), "int32"), [[2, 2]])),
     dict(LABEL, is_cascade_rcnn=True, fg_thresh=0.3, batch_size_per_im=64), label, rtol=1e-5, name="cascade")
case("generate_proposal_labels", stage((3, 2), (30, 12)), dict(LABEL, is_cascade_rcnn=True, fg_thresh=0.3), label, rtol=1e-5,
     name="cascade_scaled")
case("generate_proposal_labels", stage((3, 2), (0, 12)), LABEL, label, rtol=1e-5, name="image_without_proposals")


# ---- levels of pyramids

def distribute(i, a):
    rois, lengths = i["FpnRois"].array, i["FpnRois"].lengths[-1]
    side = np.sqrt(np.where((rois[:, 2:] < rois[:, :2]).any(1), 0, np.prod(rois[:, 2:] - rois[:, :2] + 1, 1)))
    level = np.floor(np.log2(side / a["refer_scale"] + 1e-6) + a["refer_level"])
    level = np.clip(level, a["min_level"], a["max_level"]).astype(int)
    order = np.argsort(level, kind="stable")
    restore = np.zeros((len(rois), 1), "int32")
    restore[order, 0] = np.arange(len(rois))
    made = [Seq(rois[level == k], [[int((p == k).sum()) for p in split(level, lengths)]])
            for k in range(a["min_level"], a["max_level"] + 1)]
    return {"MultiFpnRois": made, "RestoreIndex": restore}


LEVELS = {"min_level": 2, "max_level": 4, "refer_level": 3, "refer_scale": 12}
case("distribute_fpn_proposals", {"FpnRois": Seq(anchors(14), [[5, 9]])}, LEVELS, distribute)
case("distribute_fpn_proposals", {"FpnRois": Seq(anchors(6) - np.array([0, 0, 9, 0]), [[0, 4, 2]])},
     dict(LEVELS, max_level=5, refer_scale=5), distribute)


def collect(i, a):
    rois, images = i["MultiLevelRois"], len(i["MultiLevelRois"][0].lengths[0])
    rows = [(s, n, box) for level, score in zip(rois, i["MultiLevelScores"])
            for n, (b, p) in enumerate(zip(split(level.array, level.lengths[0]), split(score.array[:, 0], level.lengths[0])))
            for box, s in zip(b, p)]
    rows = sorted(rows, key=lambda r: -r[0])[:a["post_nms_topN"]]
    chosen = [[r[2] for r in rows if r[1] == n] for n in range(images)]
    return Seq(np.array([b for c in chosen for b in c]).reshape(-1, 4), [[len(c) for c in chosen]])


PYRAMID = {"MultiLevelRois": [Seq(anchors(5), [[2, 3]]), Seq(anchors(4), [[4, 0]]), Seq(anchors(6), [[1, 5]])],
           "MultiLevelScores": [Seq(real(5, 1), [[2, 3]]), Seq(real(4, 1), [[4, 0]]), Seq(real(6, 1), [[1, 5]])]}
case("collect_fpn_proposals", PYRAMID, {"post_nms_topN": 7}, collect)
case("collect_fpn_proposals", PYRAMID, {"post_nms_topN": 100}, collect)


# ---- boxes of all classes

def decode(i, a):
    a = single(a)
    prior, score = i["PriorBox"], i["BoxScore"]
    delta = i["TargetBox"].reshape(len(prior), -1, 4) * i.get("PriorBoxVar", np.ones(4))
    size = (prior[:, 2:] - prior[:, :2] + 1)[:, None]
    middle = prior[:, None, :2] + size / 2 + delta[..., :2] * size
    size = np.exp(np.minimum(delta[..., 2:], a["box_clip"])) * size
    box = np.concatenate([middle - size / 2, middle + size / 2 - 1], -1)
    best = score[:, 1:].argmax(1) + 1 if score.shape[1] > 1 else np.zeros(len(prior), int)
    return {"DecodeBox": box.reshape(len(prior), -1),
            "OutputAssignBox": box[np.arange(len(prior)), best] if score.shape[1] > 1 else prior}


DECODE = {"PriorBox": anchors(7), "PriorBoxVar": np.array([0.1, 0.2, 0.3, 0.4]), "TargetBox": real(7, 12, lo=-3, hi=3),
          "BoxScore": real(7, 3, lo=0)}
case("box_decoder_and_assign", DECODE, {"box_clip": 0.5}, decode, rtol=1e-5, large={
    "PriorBox": anchors(900), "TargetBox": real(900, 24), "BoxScore": real(900, 6, lo=0)})
case("box_decoder_and_assign", {"PriorBox": anchors(3), "TargetBox": real(3, 4), "BoxScore": real(3, 1, lo=0), "PriorBoxVar": np.ones(4)},
     {"box_clip": 4.0}, decode, rtol=1e-5, name="one_class")
