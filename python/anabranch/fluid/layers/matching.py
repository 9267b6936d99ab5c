"""Layers that match priors with ground truth, and select detections among boxes."""
from __future__ import annotations

from typing import TYPE_CHECKING

from ..explained import explain
from . import check
from ._generated_reductions import softmax
from .boxes import box_coder
from .check import one_op
from .shapes import transpose

if TYPE_CHECKING:
    from ..framework import Variable
    from ..hints import DType

__all__ = ["bipartite_match", "target_assign", "multiclass_nms", "detection_output"]


def bipartite_match(dist_matrix: Variable, match_type: str | None = None, dist_threshold: float | None = None,
                    name: str | None = None) -> tuple[Variable, Variable]:
    """Matches rows and columns of a matrix greedily, the largest entry first.

    The largest entry pairs its row and its column, then the largest entry of the remaining rows and columns, and so on,
    as long as it is at least 1e-6. Among equal entries, the one in the first column comes first, then the one in the
    first row.

    Args:
        dist_matrix (Variable): [rows, columns], float32 or float64: similarities, with a sequence of rows for each
            sample. Without sequences, it is a single sample.
        match_type (str, optional): "bipartite" (default) or "per_prediction". With "per_prediction", each unmatched
            column gets the row of its largest entry, if this is at least ``dist_threshold``.
        dist_threshold (float, optional): threshold for "per_prediction". Default 0.5.
        name (str, optional): prefix of the outputs' names.

    Returns:
        tuple: [samples, columns], int32: for each column, its row in the sample or -1; and the matched entries, or 0.

    Raises:
        TypeError: an argument is not a Variable of a supported dtype.
        EnforceNotMet: the shape does not match, ``match_type`` is unknown, or at run time a sequence is empty.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> near = fluid.data("near", [None, 7], "float32", lod_level=1)
        >>> rows, entries = fluid.layers.bipartite_match(near)
        >>> rows.shape
        (-1, 7)
    """
    check.operand(dist_matrix, "dist_matrix", "bipartite_match")
    rows, entries = check.several(
        "bipartite_match", {"DistMat": dist_matrix}, {"match_type": match_type, "dist_threshold": dist_threshold},
        {"ColToRowMatchIndices": "int32", "ColToRowMatchDist": dist_matrix.dtype}, name=name)
    return rows, entries


def target_assign(input: Variable, matched_indices: Variable, negative_indices: Variable | None = None,
                  mismatch_value: int | None = None, name: str | None = None) -> tuple[Variable, Variable]:
    """Assigns to each prior the row with which it is matched as its target.

    Prior j of sample n gets row ``matched_indices[n, j]`` of sequence n of ``input``, with weight 1. If the index is
    below 0, the prior gets ``mismatch_value``, with weight 1 if it is one of ``negative_indices`` and weight 0
    otherwise.

    Args:
        input (Variable): [rows, P, K], float32, float64 or int32, with a sequence for each sample. Prior j reads [row,
            j modulo P].
        matched_indices (Variable): [samples, priors], int32.
        negative_indices (Variable, optional): [number, 1], int32, with a sequence for each sample.
        mismatch_value (int, optional): target of priors without a match. Default 0.
        name (str, optional): prefix of the outputs' names.

    Returns:
        tuple: the targets [samples, priors, K] and the weights [samples, priors, 1], float32.

    Raises:
        TypeError: an argument is not a Variable, or ``input`` has an unsupported dtype.
        EnforceNotMet: shapes do not match, or an index is out of range at run time.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> rows = fluid.data("rows", [None, 1, 4], "float32", lod_level=1)
        >>> targets, weights = fluid.layers.target_assign(rows, fluid.data("matches", [None, 7], "int32"))
        >>> targets.shape, weights.shape
        ((-1, 7, 4), (-1, 7, 1))
    """
    check.variable(input, "input", "target_assign")
    check.variable(matched_indices, "matched_indices", "target_assign")
    targets, weights = check.several(
        "target_assign", {"X": input, "MatchIndices": matched_indices, "NegIndices": negative_indices},
        {"mismatch_value": mismatch_value}, {"Out": input.dtype, "OutWeight": "float32"}, name=name)
    return targets, weights


def multiclass_nms(bboxes: Variable, scores: Variable, score_threshold: float, nms_top_k: int, keep_top_k: int,
                   nms_threshold: float = 0.3, normalized: bool = True, nms_eta: float = 1.0, background_label: int = 0,
                   name: str | None = None) -> Variable:
    """Selects detections by non-maximum suppression: for each class, the boxes with high scores that do not overlap
    better boxes too much.

    Args:
        bboxes (Variable): [N, M, 4] float32 or float64: left, top, right, bottom; or polygons of 8, 16, 24 or 32
            numbers. With two axes of ``scores``: [rows, classes, 4] with a sequence of rows for each image.
        scores (Variable): [N, classes, M], or [rows, classes]; dtype of ``bboxes``.
        score_threshold (float): minimum score: only boxes with a higher score are considered.
        nms_top_k (int): maximum number of boxes considered per class. -1 means no limit.
        keep_top_k (int): maximum number of detections per image. -1 means no limit.
        nms_threshold (float): maximum overlap (intersection over union) with a better box. Boxes that overlap more are
            removed. Default 0.3.
        normalized (bool): True: coordinates are fractions of the image. False: they are pixels, and the right and
            bottom pixels belong to the box. Default True.
        nms_eta (float): if below 1, ``nms_threshold`` is multiplied by it after each selected box, as long as the
            threshold is above 0.5. Default 1.
        background_label (int): class to ignore. -1 means none. Default 0.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: [detections, 6] (for polygons, 2 + the numbers of a polygon) with a sequence for each image: class,
        score, box. Detections are sorted by class, then by decreasing score, or by row if ``scores`` has two axes. If
        there is no detection, the result is [1, 1] with the value -1.

    Raises:
        TypeError: an argument is not a Variable of a supported dtype.
        EnforceNotMet: shapes do not match.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> boxes, scores = fluid.data("boxes", [None, 9, 4], "float32"), fluid.data("scores", [None, 3, 9], "float32")
        >>> fluid.layers.multiclass_nms(boxes, scores, score_threshold=0.1, nms_top_k=400, keep_top_k=200).shape
        (-1, 6)
    """
    check.operand(bboxes, "bboxes", "multiclass_nms")
    check.operand(scores, "scores", "multiclass_nms")
    return one_op("multiclass_nms", {"BBoxes": bboxes, "Scores": scores}, {
        "background_label": background_label, "score_threshold": score_threshold, "nms_top_k": nms_top_k,
        "nms_threshold": nms_threshold, "nms_eta": nms_eta, "keep_top_k": keep_top_k, "normalized": normalized},
        name=name, stop_gradient=True)


def detection_output(loc: Variable, scores: Variable, prior_box: Variable, prior_box_var: Variable | list[float],
                     background_label: int = 0, nms_threshold: float = 0.3, nms_top_k: int = 400, keep_top_k: int = 200,
                     score_threshold: float = 0.01, nms_eta: float = 1.0,
                     return_index: bool = False) -> Variable | tuple[Variable, Variable]:
    """Computes the detections of SSD: decodes the offsets (:func:`box_coder`), applies softmax to the scores, and
    selects detections with :func:`multiclass_nms`.

    Args:
        loc (Variable): offsets [N, M, 4] from the priors, float32 or float64.
        scores (Variable): [N, M, classes], logits.
        prior_box (Variable): priors, [M, 4].
        prior_box_var (Variable|list): variances [M, 4], or 4 numbers.
        background_label (int): ignored, as in Fluid: class 0 is the background.
        nms_threshold (float): maximum overlap with a better box. Boxes that overlap more are removed. Default 0.3.
        nms_top_k (int): maximum number of boxes considered per class. Default 400.
        keep_top_k (int): maximum number of detections per image. Default 200.
        score_threshold (float): minimum score of the boxes considered. Default 0.01.
        nms_eta (float): ignored, as in Fluid.
        return_index (bool): also returns the indices of the boxes. Default False.

    Returns:
        Variable: [detections, 6] with a sequence for each image: class, score, left, top, right, bottom. If there is no
        detection, the result is [1, 1] with the value -1. With ``return_index``, a tuple of the detections, which may
        have no rows, and the indices [detections, 1], int32: n * M + j for box j of image n.

    Raises:
        TypeError: an argument is not a Variable of a supported dtype.
        EnforceNotMet: shapes do not match.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> loc, scores = fluid.data("loc", [None, 9, 4], "float32"), fluid.data("scores", [None, 9, 3], "float32")
        >>> priors, spread = fluid.data("priors", [9, 4], "float32"), fluid.data("spread", [9, 4], "float32")
        >>> fluid.layers.detection_output(loc, scores, priors, spread).shape
        (-1, 6)
    """
    boxes = box_coder(prior_box, prior_box_var, loc, "decode_center_size")
    likely = transpose(softmax(scores), [0, 2, 1])
    likely.stop_gradient = True
    attrs = {"score_threshold": score_threshold, "nms_top_k": nms_top_k, "nms_threshold": nms_threshold,
             "keep_top_k": keep_top_k}
    outs: dict[str, DType] = {"Out": loc.dtype}
    if return_index:
        outs["Index"] = "int32"
    made = check.several("multiclass_nms2" if return_index else "multiclass_nms", {"BBoxes": boxes, "Scores": likely},
                         attrs, outs, layer="detection_output", stop_gradient=True)
    return (made[0], made[1]) if return_index else made[0]


explain(globals())
