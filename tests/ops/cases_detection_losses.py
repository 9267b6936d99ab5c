"""Cases of the loss of YOLOv3."""
import numpy as np
from cases_detection import single
from op_case import case, integers, real


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def entropy(x, label):
    return np.maximum(x, 0) - x * label + np.log1p(np.exp(-np.abs(x)))


def overlap(a, b):
    """Of boxes given by centre and size."""
    low, high = np.maximum(a[:2] - a[2:] / 2, b[:2] - b[2:] / 2), np.minimum(a[:2] + a[2:] / 2, b[:2] + b[2:] / 2)
    common = np.prod(high - low) if (high >= low).all() else 0
    return common / (a[2] * a[3] + b[2] * b[3] - common)


def yolo(i, a):
    a = single(a)
    x, truths, labels, grid = i["X"], i["GTBox"], i["GTLabel"], i["X"].shape[2]
    sizes, mask, classes = np.reshape(a["anchors"], (-1, 2)) / (a.get("downsample_ratio", 32) * grid), a["anchor_mask"], a["class_num"]
    x = x.reshape(len(x), len(mask), 5 + classes, grid, grid)
    scores = i.get("GTScore", np.ones(labels.shape))
    smooth = min(1 / classes, 1 / 40) if a.get("use_label_smooth", True) else 0
    stretch = a.get("scale_x_y", 1.0)
    loss, objects, matches = np.zeros(len(x)), np.zeros((len(x), len(mask), grid, grid)), np.full(labels.shape, -1, "int32")
    for n in range(len(x)):
        there = [t for t in range(truths.shape[1]) if min(truths[n, t, 2:]) >= 1e-6]
        for m, row, column in np.ndindex(*objects.shape[1:]):
            raw = x[n, m, :, row, column]
            box = np.concatenate([(np.array([column, row]) + sigmoid(raw[:2]) * stretch - (stretch - 1) / 2) / grid,
                                  np.exp(raw[2:4]) * sizes[mask[m]]])
            if max([overlap(box, truths[n, t]) for t in there] + [0]) > a.get("ignore_thresh", 0.7):
                objects[n, m, row, column] = -1
        for t in there:
            box, score = truths[n, t], scores[n, t]
            best = np.argmax([overlap(np.array([0, 0, *s]), np.array([0, 0, *box[2:]])) for s in sizes])
            if best not in mask:
                continue
            m = matches[n, t] = mask.index(best)
            column, row = (box[:2] * grid).astype(int)
            objects[n, m, row, column] = score
            raw = x[n, m, :, row, column]
            weight = (2 - box[2] * box[3]) * score
            loss[n] += weight * entropy(raw[:2], box[:2] * grid - [column, row]).sum()
            loss[n] += weight * np.abs(raw[2:4] - np.log(box[2:] / sizes[best])).sum()
            loss[n] += score * entropy(raw[5:], np.where(np.arange(classes) == labels[n, t], 1 - smooth, smooth)).sum()
        for at in np.ndindex(*objects.shape[1:]):
            o, confidence = objects[(n, *at)], x[(n, at[0], 4, *at[1:])]
            loss[n] += entropy(confidence, 1) * o if o > 1e-5 else entropy(confidence, 0) if o > -0.5 else 0
    return {"Loss": loss, "ObjectnessMask": objects, "GTMatchMask": matches}


def truth(n, count):
    boxes = np.concatenate([real(n, count, 2, lo=0.05, hi=0.95), real(n, count, 2, lo=0.05, hi=0.6)], -1)
    boxes[:, -1] = 0
    return boxes


YOLO = {"class_num": 3, "anchors": [10, 13, 16, 30, 33, 23, 62, 45], "anchor_mask": [1, 3, 2]}
SCENE = {"X": real(2, 24, 4, 4, lo=-2, hi=2), "GTBox": truth(2, 6), "GTLabel": integers(2, 6, hi=3, dtype="int32")}
case("yolov3_loss", SCENE, YOLO, yolo, grad=("X",), rtol=1e-5)
case("yolov3_loss", dict(SCENE, GTScore=real(2, 6, lo=0.1)),
     dict(YOLO, downsample_ratio=16, ignore_thresh=0.3, use_label_smooth=False, scale_x_y=1.2), yolo, grad=("X",), rtol=1e-5)
case("yolov3_loss", {"X": real(1, 12, 5, 5), "GTBox": truth(1, 1) + 0.25, "GTLabel": np.zeros((1, 1), "int32")},
     {"class_num": 1, "anchors": [40, 40], "anchor_mask": [0, 0], "ignore_thresh": 0.5}, yolo, grad=("X",), rtol=1e-5,
     name="one_class")
