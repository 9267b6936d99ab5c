"""Cases of mean average precision."""
import numpy as np
from cases_detection import boxes, overlaps, single
from op_case import Seq, case, integers, real


def average(found, count, kind):
    """Of (score, right, wrong) of one class."""
    found = sorted(found, key=lambda f: -f[0])
    right, wrong = np.cumsum([f[1] for f in found]), np.cumsum([f[2] for f in found])
    precision = right / np.maximum(right + wrong, 1)
    recall = right / count
    if kind == "11point":
        return sum(max([p for p, r in zip(precision, recall) if r >= k / 10] + [0]) for k in range(11)) / 11
    return sum(p * step for p, step in zip(precision, np.diff([0, *recall])))


def judged(detections, labels, threshold, difficult):
    """[(class, score, right, wrong)] of one image."""
    seen, out = set(), []
    for row in sorted(detections, key=lambda d: -d[1] if d[0] in labels[:, 0] else 0):  # in input order without truths
        fits = [t for t, label in enumerate(labels) if label[0] == row[0]]
        near = overlaps(np.clip(row[None, 2:], 0, 1), labels[fits][:, -4:])[0] if fits else []
        best = fits[int(np.argmax(near))] if fits else None
        if best is None or not max(near) > threshold:
            out.append((int(row[0]), row[1], 0, 1))
        elif difficult or labels.shape[1] == 5 or not labels[best][1]:
            out.append((int(row[0]), row[1], int(best not in seen), int(best in seen)))
            seen.add(best)
    return out


def mean_precision(i, a):
    a = single(a)
    classes, difficult = a["class_num"], a.get("evaluate_difficult", True)
    labels = i["Label"].array
    counted = [k for k in labels if difficult or len(k) == 5 or not k[1]]
    counts = np.bincount([int(k[0]) for k in counted], minlength=classes)
    found = [[] for _ in range(classes)]
    if "HasState" in i and i["HasState"][0]:
        counts = counts + i["PosCount"][:, 0]
        ends = np.cumsum([0] + list(i["TruePos"].lengths[0]))
        for k in range(classes):
            found[k] += [(*t, f) for t, f in zip(i["TruePos"].array[ends[k]:ends[k + 1]], i["FalsePos"].array[ends[k]:ends[k + 1], 1])]
    d, t = (np.cumsum([0] + list(i[s].lengths[0])) for s in ("DetectRes", "Label"))
    for n in range(len(t) - 1):
        for row in judged(i["DetectRes"].array[d[n]:d[n + 1]], labels[t[n]:t[n + 1]], a.get("overlap_threshold", 0.5), difficult):
            found[row[0]].append(row[1:])
    there = [k for k in range(classes) if counts[k]]
    scores = [average(found[k], counts[k], a.get("ap_type", "integral")) for k in there]
    rows = [f for k in range(classes) for f in found[k]]
    lengths = [[len(f) for f in found]]
    return {"MAP": np.array([np.mean(scores) if there else 0.0]), "AccumPosCount": counts[:, None].astype("int32"),
            "AccumTruePos": Seq(np.array([[f[0], f[1]] for f in rows]).reshape(-1, 2), lengths),
            "AccumFalsePos": Seq(np.array([[f[0], f[2]] for f in rows]).reshape(-1, 2), lengths)}


def pictures(found=14, truths=9, classes=3):
    """True boxes, and detections most of which are near one."""
    labels = np.concatenate([integers(truths, 1, hi=classes), integers(truths, 1, hi=2), boxes(truths) * 0.6], 1).astype(float)
    near = np.arange(found) * truths // found
    place = labels[near, 2:] + real(found, 4, lo=-0.05, hi=0.05)
    kind = np.where(np.arange(found) % 4 == 3, integers(found, hi=classes), labels[near, 0])
    return {"DetectRes": Seq(np.concatenate([kind[:, None], real(found, 1, lo=0), place], 1), [[found // 2, found - found // 2]]),
            "Label": Seq(labels, [[truths // 2, truths - truths // 2]])}


STATE = {"HasState": np.array([1], "int32"), "PosCount": np.array([[1], [2], [3]], "int32"),
         "TruePos": Seq(np.array([[0.5, 1], [0.4, 0]]), [[0, 1, 1]]), "FalsePos": Seq(np.array([[0.5, 0], [0.4, 1]]), [[0, 1, 1]])}
case("detection_map", pictures(), {"class_num": 3}, mean_precision, rtol=1e-5)
case("detection_map", pictures(), {"class_num": 4, "ap_type": "11point", "background_label": -1}, mean_precision, rtol=1e-5)
case("detection_map", pictures(), {"class_num": 3, "evaluate_difficult": False, "overlap_threshold": 0.3}, mean_precision, rtol=1e-5)
case("detection_map", dict(pictures(), **STATE), {"class_num": 3}, mean_precision, rtol=1e-5, name="state")
case("detection_map", dict(pictures(), **dict(STATE, HasState=np.array([0], "int32"))), {"class_num": 3}, mean_precision,
     rtol=1e-5, name="state_ignored")
case("detection_map", dict(pictures(), **dict(STATE, FalsePos=Seq(np.array([[0.5, 1], [0.4, 0]]), [[0, 1, 1]]))), {"class_num": 3},
     mean_precision, rtol=1e-5, name="state_counted_apart")  # a row counts as right and as wrong, or as neither
FIVE = pictures()
case("detection_map", dict(FIVE, Label=Seq(np.delete(FIVE["Label"].array, 1, 1), FIVE["Label"].lengths)), {"class_num": 3},
     mean_precision, rtol=1e-5, name="five_columns")
