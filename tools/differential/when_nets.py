"""Conditions of listed_nets.py, as those of listed_when.py."""

import numpy as np
from compare import compared
from listed_when import value

from engine import ARRAY, TENSOR, unpacked


def given(case, slot):
    """Variables of a slot."""
    return [case["vars"][n] for n in case["ins"].get(slot, [])]


def lengths(case, _theirs=None, _ours=None):
    """Lengths of all innermost sequences."""
    return [n for v in case["vars"].values() if v.get("lod") for n in v["lod"][-1]]


def close(part, share, least=0.0):
    """The values of a part of the records, "outs" or "grads", are equal up to ``share`` of the larger of |expected| and
    its root mean square, or up to ``least``.
    """

    def near(a, b):
        if a is None or a[0] != TENSOR or a[1][:2] != b[1][:2] or a[2] != b[2]:
            return a is None
        x, y = (unpacked(v[1]).astype("float64") for v in (a, b))
        rms = np.sqrt(np.mean(np.square(x))) if x.size else 0.0
        return bool(np.all(np.abs(x - y) <= np.maximum(share * np.maximum(np.abs(x), rms), least)))

    def equal(case, theirs, ours):
        a, b = theirs[part] or {}, ours[part] or {}
        names = compared(case) if part == "outs" else a
        return all(near(a.get(n), b[n]) for n in names if b.get(n) is not None)

    return equal


def cancels_on_paths(case, theirs, ours):
    """The logarithms of likelihoods differ by the rounding of the scores whose difference they are."""
    name = case["outs"]["LogLikelihood"][0]
    a, b = (unpacked(r["outs"][name][1]).astype("float64") for r in (theirs, ours))
    emission, transition = (np.abs(value(case, slot)) for slot in ("Emission", "Transition"))
    scores = emission.sum() + len(emission) * transition.max()
    return a.shape == b.shape and bool((np.abs(a - b) <= 1e-7 * scores).all())


def either_below_0(case, _theirs, _ours):
    """A state that no moving average has."""
    states = [value(case, slot) for slot in ("InScale", "InState", "InAccum")]
    return any(s is not None and (s <= 0).any() for s in states)


def sources_do_not_fit(case, _theirs, _ours):
    """A source has other beams in a step than the next step continues."""
    lods = [v["lod"] for n, v in sorted(case["vars"].items()) if n.startswith("ids") and v.get("lod")]
    for (outer, inner), (following, _) in zip(lods, lods[1:]):
        ends = np.cumsum([0, *outer])
        if [sum(inner[a:b]) for a, b in zip(ends, ends[1:])] != list(following):
            return True
    return False


def shares_a_cell(case, _theirs, _ours):
    """Two true boxes of an image lie in one cell."""
    boxes, grid = value(case, "GTBox"), value(case, "X").shape[2:]
    for image in boxes:
        cells = [(int(b[0] * grid[1]), int(b[1] * grid[0])) for b in image if b[2] > 0 and b[3] > 0]
        if len(set(cells)) < len(cells):
            return True
    return False


def makes_nothing(case, _theirs, ours):
    return any(v is not None and v[0] != ARRAY and 0 in v[1][1] for v in ours["outs"].values())


def empty_on_a_level(case, _theirs, _ours):
    return any(0 in level for v in case["vars"].values() for level in v.get("lod") or [])


def has_empty(case, _theirs, _ours):
    return 0 in lengths(case)


def ties_in(slot):
    def ties(case, _theirs, _ours):
        found = np.concatenate([np.ravel(v["value"]) for v in given(case, slot)] or [[]])
        return len(np.unique(found)) < len(found)

    return ties


def some(slot, test):
    """``test`` of the numbers of an input that is given."""
    return lambda case, _theirs, _ours: value(case, slot) is not None and bool(test(value(case, slot)))


def levels(slot, least):
    return lambda case, _theirs, _ours: any(len(v.get("lod") or []) >= least for v in given(case, slot))


def has_levels(least):
    """An input has sequences of this many levels."""
    return lambda case, _theirs, _ours: any(len(v.get("lod") or []) >= least for v in case["vars"].values())


def adaptive(case, _theirs, _ours):
    a = case["attrs"]
    odd = a.get("global_pooling") or a.get("pooling_type") == "max" or not value(case, "X").size
    return a.get("adaptive") and odd


def counted_by_background(case, theirs, _ours):
    """The number of true boxes of a class equals ``background_label``."""
    count = theirs["outs"][case["outs"]["AccumPosCount"][0]]
    return case["attrs"].get("background_label", 0) in unpacked(count[1])


def other_scores(case, _theirs, _ours):
    """Scores in which TruePos and FalsePos of the last run differ."""
    a, b = value(case, "TruePos"), value(case, "FalsePos")
    return a is not None and b is not None and (a.shape != b.shape or not np.array_equal(a[:, 0], b[:, 0]))


def has_blank(case, theirs, ours):
    """A label that equals the blank."""
    labels = value(case, "Label")
    return labels is not None and bool((labels == case["attrs"].get("blank", 0)).any())


def widths_differ(case, _theirs, _ours):
    x, y = value(case, "X"), value(case, "Y")
    return x.ndim == y.ndim == 2 and x.shape[1] != y.shape[1]


def repeated(case, _theirs, _ours):
    return any(len(set(v["rows"])) < len(v["rows"]) for v in case["vars"].values() if v.get("rows"))


def last_images_have_nothing(_case, theirs, ours):
    """The same boxes, in sequences to which those of images at the end are added, which have none."""
    for name, a in theirs["outs"].items():
        (short,), (long,) = a[2], ours["outs"][name][2]
        if a[1] != ours["outs"][name][1] or list(long) != [*short, *[short[-1]] * (len(long) - len(short))]:
            return False
    return True


def is_cascade(attrs):
    return attrs.get("is_cascade_rcnn")


def scaled_or_crowded(case, _theirs, _ours):
    return bool((value(case, "ImInfo")[:, 2] != 1).any() or (value(case, "IsCrowd") != 0).any())


def shows_nothing(_case, theirs, _ours):
    """It runs, and writes no result."""
    return not any(theirs["outs"].values())


def scores_of_nothing(case, theirs, _ours):
    return bool(np.isnan(unpacked(theirs["outs"][case["outs"]["selected_scores"][0]][1])).any())


def turned(boxes):
    """A detection or true box, of which the last four numbers are a box, whose maximum is below its minimum."""
    return bool(boxes.ndim == 2 and boxes.shape[1] > 4 and (boxes[:, -2:] < boxes[:, -4:-2]).any())


def spans_floats(logits):
    """Whether the softmax of a row has probabilities below the smallest float32."""
    return logits.size > 0 and np.ptp(logits, axis=-1).max() > 87


def steep_cells(case, theirs, _ours):
    """The sigmoid of a cell above 13, in float64."""
    cell = (theirs["outs"] or {}).get("cell.out0")
    return case["attrs"]["cell_activation"] == "sigmoid" and cell is not None and unpacked(cell[1]).max() > 13


def steep_gates(case, _theirs, ours):
    """The sigmoid of a number above 13 or below -40, in float64, among the gates and candidates of gru."""
    name, attrs = case["outs"]["BatchGate"][0], case["attrs"]
    gates = unpacked(ours["outs"][name][1])
    width = gates.shape[1] // 3
    found = [part for part, act in ((gates[:, : 2 * width], "gate_activation"), (gates[:, 2 * width :], "activation"))
             if attrs[act] == "sigmoid" and part.dtype == np.float64]
    return any(((part > 1 / (1 + np.exp(-13))) | (part < np.exp(-40))).any() for part in found)


def rounded_to_columns(case, theirs, ours):
    """One number a row: cosines are 1 or -1, and gradients are zero, except for rounding."""
    names = [n for n in case["ins"]["X"] + case["ins"]["Y"] if n + "@GRAD" in theirs["grads"]]
    values = [np.abs(case["vars"][n]["value"]) for n in names]
    grads = [[np.abs(unpacked(r["grads"][n + "@GRAD"][1])) for n in names] for r in (theirs, ours)]
    return all(x.ndim > 1 and x.size == len(x) for x in values) and all(
        (g * x).max(initial=0) < 1e-6 for side in grads for g, x in zip(side, values)
    )


def same_rows(_case, theirs, ours):
    """The results have the same rows, in another order."""
    def rows(v):
        array = unpacked(v[1])
        return (sorted(map(tuple, array.reshape(len(array), -1))) if array.size else [array.shape]), v[2]

    return all(rows(theirs["outs"][n]) == rows(ours["outs"][n]) for n in theirs["outs"])


def on_a_border(case, theirs, ours):
    """Corners of regions are whole numbers, so that rounding decides whether their borders are inside."""
    rois, name = value(case, "ROIs"), case["outs"]["Mask"][0]
    a, b = (unpacked(r["outs"][name][1]) for r in (theirs, ours))
    return bool((rois == np.round(rois)).all()) and a.shape == b.shape and (a != b).mean() < 0.2
