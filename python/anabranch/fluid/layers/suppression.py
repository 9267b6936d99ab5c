"""Variants of non-maximum suppression, and the mean average precision of detections."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..explained import explain
from ..layer_helper import LayerHelper
from . import check
from .check import one_op

if TYPE_CHECKING:
    from ..framework import Variable

__all__ = ["matrix_nms", "locality_aware_nms", "retinanet_detection_output", "detection_map"]


def matrix_nms(bboxes: Variable, scores: Variable, score_threshold: float, post_threshold: float, nms_top_k: int,
               keep_top_k: int, use_gaussian: bool = False, gaussian_sigma: float = 2.0, background_label: int = 0,
               normalized: bool = True, return_index: bool = False,
               name: str | None = None) -> Variable | tuple[Variable, Variable]:
    """Matrix non-maximum suppression: the score of a box decays with its overlap with better boxes.

    Let o be the overlap of a box with a better box of its class, and m the largest overlap of this better box with
    boxes that are better still. The score is multiplied by the minimum, over all better boxes, of (1 - o) / (1 - m), or
    of exp((m^2 - o^2) * gaussian_sigma). Source: Wang et al., SOLOv2, arXiv:2003.10152.

    Args:
        bboxes (Variable): [N, M, 4], float32 or float64: left, top, right, bottom.
        scores (Variable): [N, classes, M], dtype of ``bboxes``.
        score_threshold (float): minimum score: only boxes with a higher score are considered.
        post_threshold (float): minimum score after the decay.
        nms_top_k (int): maximum number of boxes considered per class. A negative number means no limit.
        keep_top_k (int): maximum number of detections per image. A negative number means no limit.
        use_gaussian (bool): uses the second of the two factors. Default False.
        gaussian_sigma (float): speed of the decay. Default 2.0.
        background_label (int): class to ignore. -1 means none. Default 0.
        normalized (bool): True: coordinates are fractions of the image. False: they are pixels, and the right and
            bottom pixels belong to the box. Default True.
        return_index (bool): also returns the indices of the boxes. Default False.
        name (str, optional): prefix of the outputs' names.

    Returns:
        Variable|tuple: [detections, 6]: class, score and box, best first, with a sequence for each image; with
        ``return_index`` also [detections, 1], int32: the box's row in ``bboxes`` as [N * M, 4].

    Raises:
        TypeError: an argument has the wrong type or dtype.
        EnforceNotMet: shapes do not match.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> boxes, scores = fluid.data("b", [None, 9, 4], "float32"), fluid.data("s", [None, 3, 9], "float32")
        >>> fluid.layers.matrix_nms(boxes, scores, 0.1, 0.05, 400, 200).shape
        (-1, 6)
    """
    check.operand(bboxes, "BBoxes", "matrix_nms")
    check.operand(scores, "Scores", "matrix_nms")
    for argument, value, kind in (
            ("score_threshold", score_threshold, float), ("post_threshold", post_threshold, float),
            ("nms_top_k", nms_top_k, int), ("keep_top_k", keep_top_k, int), ("normalized", normalized, bool),
            ("use_gaussian", use_gaussian, bool), ("gaussian_sigma", gaussian_sigma, float),
            ("background_label", background_label, int)):
        check.of_type(value, argument, "matrix_nms", kind)
    out, index = check.several(
        "matrix_nms", {"BBoxes": bboxes, "Scores": scores},
        {"score_threshold": score_threshold, "post_threshold": post_threshold, "nms_top_k": nms_top_k,
         "keep_top_k": keep_top_k, "use_gaussian": use_gaussian, "gaussian_sigma": gaussian_sigma,
         "background_label": background_label, "normalized": normalized}, {"Out": bboxes.dtype, "Index": "int32"},
        name=name)
    out.stop_gradient = True
    return (out, index) if return_index else out


def locality_aware_nms(bboxes: Variable, scores: Variable, score_threshold: float, nms_top_k: int, keep_top_k: int,
                       nms_threshold: float = 0.3, normalized: bool = True, nms_eta: float = 1.0,
                       background_label: int = -1, name: str | None = None) -> Variable:
    """Locality-aware non-maximum suppression, which first merges adjacent boxes. It is meant for text boxes that are
    generated from pixels row by row.

    For each class, the boxes are visited in order. A box that overlaps the previous one by more than ``nms_threshold``
    is merged into it: their coordinates are averaged, weighted by the scores, and their scores are added. Then boxes
    are suppressed as in :func:`multiclass_nms`. Source: Zhou et al., EAST, arXiv:1704.03155.

    Args:
        bboxes (Variable): [N, M, 4], float32 or float64, or polygons of 8, 16, 24 or 32 numbers.
        scores (Variable): [N, classes, M], dtype of ``bboxes``.
        score_threshold (float): minimum score: only boxes with a higher score are considered.
        nms_top_k (int): maximum number of boxes considered per class. A negative number means no limit.
        keep_top_k (int): maximum number of detections per image. A negative number means no limit.
        nms_threshold (float): maximum overlap with a better box. Boxes that overlap more are removed. Default 0.3.
        normalized (bool): True: coordinates are fractions of the image. False: they are pixels, and the right and
            bottom pixels belong to the box. Default True.
        nms_eta (float): if below 1, ``nms_threshold`` is multiplied by it after each selected box, as long as the
            threshold is above 0.5. Default 1.0.
        background_label (int): class to ignore. -1 means none. Default -1.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: [detections, 2 + box]: class, score and box, sorted by class and then by score, with a sequence for
        each image. If there is no detection, the result is [1, 1] with the value -1.

    Raises:
        TypeError: an argument has the wrong type or dtype.
        EnforceNotMet: shapes do not match.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> boxes, scores = fluid.data("b", [None, 9, 8], "float32"), fluid.data("s", [None, 1, 9], "float32")
        >>> fluid.layers.locality_aware_nms(boxes, scores, 0.1, 400, 200).shape
        (-1, 10)
    """
    check.operand(bboxes, "bboxes", "locality_aware_nms")
    check.operand(scores, "scores", "locality_aware_nms")
    for argument, value, kind in (
            ("background_label", background_label, int), ("score_threshold", score_threshold, float),
            ("nms_top_k", nms_top_k, int), ("nms_eta", nms_eta, float), ("nms_threshold", nms_threshold, float),
            ("keep_top_k", keep_top_k, int), ("normalized", normalized, bool)):
        check.of_type(value, argument, "locality_aware_nms", kind)
    attrs = {"background_label": background_label, "score_threshold": score_threshold, "nms_top_k": nms_top_k,
             "nms_threshold": nms_threshold, "nms_eta": nms_eta, "keep_top_k": keep_top_k, "normalized": normalized}
    out = one_op("locality_aware_nms", {"BBoxes": bboxes, "Scores": scores}, attrs, name=name)
    out.stop_gradient = True
    return out


def retinanet_detection_output(bboxes: Sequence[Variable], scores: Sequence[Variable], anchors: Sequence[Variable],
                               im_info: Variable, score_threshold: float = 0.05, nms_top_k: int = 1000,
                               keep_top_k: int = 100, nms_threshold: float = 0.3, nms_eta: float = 1.0) -> Variable:
    """Computes detections from the levels of RetinaNet.

    For each level, the ``nms_top_k`` boxes with the highest scores above ``score_threshold`` (above 0 on the last
    level) are decoded and clipped at the border of the image. For each class, boxes that overlap a better one by more
    than ``nms_threshold`` are removed. The ``keep_top_k`` best boxes of each image remain. Source: Lin et al.,
    arXiv:1708.02002.

    Args:
        bboxes (list): [N, A, 4] of each level, float32 or float64: offsets from the anchors.
        scores (list): [N, A, classes] of each level, dtype of ``bboxes``, from 0 to 1.
        anchors (list): [A, 4] of each level, dtype of ``bboxes``: left, top, right, bottom, in pixels.
        im_info (Variable): [N, 3], dtype of ``bboxes``: height, width and scale of the images.
        score_threshold (float): minimum score. Default 0.05.
        nms_top_k (int): maximum number of boxes per level. Default 1000.
        keep_top_k (int): maximum number of detections per image. Default 100.
        nms_threshold (float): maximum overlap with a better box. Default 0.3.
        nms_eta (float): if below 1, ``nms_threshold`` is multiplied by it after each selected box, as long as the
            threshold is above 0.5. Default 1.0.

    Returns:
        Variable: [detections, 6]: class from 1 on, score, and box in pixels of the original image, the best first, with
        a sequence for each image.

    Raises:
        TypeError: an argument is not a list of Variables, or has an unsupported dtype.
        EnforceNotMet: shapes do not match.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> boxes = [fluid.data("b%d" % k, [None, 6, 4], "float32") for k in range(2)]
        >>> scores = [fluid.data("s%d" % k, [None, 6, 3], "float32") for k in range(2)]
        >>> anchors = [fluid.data("a%d" % k, [6, 4], "float32") for k in range(2)]
        >>> info = fluid.data("info", [None, 3], "float32")
        >>> fluid.layers.retinanet_detection_output(boxes, scores, anchors, info).shape
        (-1, 6)
    """
    inputs = {}
    for slot, argument, values in (("BBoxes", "bboxes", bboxes), ("Scores", "scores", scores),
                                   ("Anchors", "anchors", anchors)):
        check.of_type(values, argument, "retinanet_detection_output", (list, tuple))
        inputs[slot] = check.operands(values, argument, "retinanet_detection_output")
    check.operand(im_info, "im_info", "retinanet_detection_output")
    attrs = {"score_threshold": score_threshold, "nms_top_k": nms_top_k, "nms_threshold": nms_threshold,
             "keep_top_k": keep_top_k, "nms_eta": nms_eta}
    out = one_op("retinanet_detection_output", dict(inputs, ImInfo=im_info), attrs)
    out.stop_gradient = True
    return out


def detection_map(detect_res: Variable, label: Variable, class_num: int, background_label: int = 0,
                  overlap_threshold: float = 0.3, evaluate_difficult: bool = True, has_state: Variable | None = None,
                  input_states: Sequence[Variable] | None = None, out_states: Sequence[Variable] | None = None,
                  ap_version: str = "integral") -> Variable:
    """Computes the mean average precision of detections.

    Detections are visited in the order of decreasing scores. A detection is correct if it overlaps a ground-truth box
    of its class by more than ``overlap_threshold``, and the ground-truth box that it overlaps most has not been found
    before. Classes without a ground-truth box are ignored. Source: Everingham et al., doi:10.1007/s11263-009-0275-4.

    Args:
        detect_res (Variable): [M, 6], float32 or float64: class, score, and box in fractions of the image, with a
            sequence for each image.
        label (Variable): [N, 6], dtype of ``detect_res``: class, difficult (0 or 1), and box; or [N, 5] without
            `difficult`; with a sequence for each image.
        class_num (int): number of classes, including the background.
        background_label (int): ignored. Default 0.
        overlap_threshold (float): minimum overlap of a match. Default 0.3.
        evaluate_difficult (bool): False ignores difficult boxes and the detections that match them. Default True.
        has_state (Variable, optional): [1], int32. If it is not 0, ``input_states`` is continued.
        input_states (list, optional): three Variables: the numbers of ground-truth boxes of each class, and the correct
            and the wrong detections of previous batches, in the form of ``out_states``.
        out_states (list, optional): three Variables that receive these values, including this batch.
        ap_version (str): "integral" (default), the area under the precision-recall curve, or "11point", the mean of the
            best precisions at 11 levels of recall.

    Returns:
        Variable: [1].

    Raises:
        TypeError: an argument is not a Variable of a supported dtype.
        EnforceNotMet: shapes do not match, or at run time classes are out of range or sequences do not match.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> found, label = fluid.data("f", [None, 6], "float32", 1), fluid.data("l", [None, 6], "float32", 1)
        >>> fluid.layers.detection.detection_map(found, label, class_num=21).shape
        (1,)
    """
    check.operand(detect_res, "detect_res", "detection_map")
    check.operand(label, "label", "detection_map")
    helper = LayerHelper("detection_map")
    result = helper.create_variable_for_type_inference(detect_res.dtype)
    states = list(out_states) if out_states is not None else [
        helper.create_variable_for_type_inference(dtype) for dtype in ("int32", detect_res.dtype, detect_res.dtype)]
    before = dict(zip(("PosCount", "TruePos", "FalsePos"), input_states)) if input_states is not None else {}
    if has_state is not None:
        before["HasState"] = has_state
    helper.append_op(
        type="detection_map", inputs={"Label": label, "DetectRes": detect_res, **before},
        outputs={"MAP": result, "AccumPosCount": states[0], "AccumTruePos": states[1], "AccumFalsePos": states[2]},
        attrs={"overlap_threshold": overlap_threshold, "evaluate_difficult": evaluate_difficult, "ap_type": ap_version,
               "class_num": class_num, "background_label": background_label})
    return result


explain(globals())
