"""Layers that create region proposals, distribute them to the levels of a feature pyramid and collect them; and boxes
of all classes."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..explained import explain
from ..layer_helper import LayerHelper
from . import check
from .check import one_op

if TYPE_CHECKING:
    from ..framework import Variable

__all__ = ["generate_proposals", "distribute_fpn_proposals", "collect_fpn_proposals", "box_decoder_and_assign"]


def generate_proposals(scores: Variable, bbox_deltas: Variable, im_info: Variable, anchors: Variable,
                       variances: Variable, pre_nms_top_n: int = 6000, post_nms_top_n: int = 1000,
                       nms_thresh: float = 0.5, min_size: float = 0.1, eta: float = 1.0, name: str | None = None,
                       return_rois_num: bool = False) -> tuple[Variable, ...]:
    """Generates region proposals: selects the best anchors and moves them by the predicted offsets.

    For each image, the ``pre_nms_top_n`` anchors with the highest scores are moved and clipped at the border of the
    image. Boxes smaller than ``min_size`` pixels are removed. In the order of decreasing scores, the first
    ``post_nms_top_n`` boxes that do not overlap a better box by more than ``nms_thresh`` are the proposals. Source: Ren
    et al., Faster R-CNN, arXiv:1506.01497.

    Args:
        scores (Variable): [N, A, H, W], float32: scores of the A anchors of each cell.
        bbox_deltas (Variable): [N, 4 * A, H, W], dtype of ``scores``: displacement of the center as a fraction of the
            size, and logarithm of the growth, each divided by ``variances``.
        im_info (Variable): [N, 3], dtype of ``scores``: height, width and scale of the images.
        anchors (Variable): [H, W, A, 4], dtype of ``scores``: left, top, right, bottom, in pixels.
        variances (Variable): [H, W, A, 4], dtype of ``scores``.
        pre_nms_top_n (int): maximum number of anchors before suppression. 0 or a negative number means no limit.
            Default 6000.
        post_nms_top_n (int): maximum number of proposals. 0 or a negative number means no limit. Default 1000.
        nms_thresh (float): maximum overlap with a better box. 0 or a negative number means no suppression. Default
            0.5.
        min_size (float): minimum size in pixels of the original image. Values below 1 count as 1. Default 0.1.
        eta (float): if below 1, ``nms_thresh`` is multiplied by it after each selected box, as long as the threshold
            is above 0.5. Default 1.0.
        name (str, optional): prefix of the outputs' names.
        return_rois_num (bool): also returns the ends of the images. Default False.

    Returns:
        tuple: boxes [proposals, 4] and their scores [proposals, 1], with a sequence for each image; with
        ``return_rois_num``, also [N], int64: the row after the last proposal of each image.

    Raises:
        TypeError: an argument is not a Variable of a supported dtype.
        EnforceNotMet: shapes do not match.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> scores, deltas = fluid.data("s", [None, 3, 4, 5], "float32"), fluid.data("d", [None, 12, 4, 5], "float32")
        >>> maps, info = fluid.data("m", [None, 8, 4, 5], "float32"), fluid.data("i", [None, 3], "float32")
        >>> anchors, variances = fluid.layers.anchor_generator(maps, [32.0], [0.5, 1.0, 2.0], stride=[16.0, 16.0])
        >>> rois, probs = fluid.layers.generate_proposals(scores, deltas, info, anchors, variances)
        >>> rois.shape, probs.shape
        ((-1, 4), (-1, 1))
    """
    for argument, value in (("scores", scores), ("bbox_deltas", bbox_deltas), ("im_info", im_info),
                            ("anchors", anchors), ("variances", variances)):
        check.operand(value, argument, "generate_proposals")
    outs = {"RpnRois": bbox_deltas.dtype, "RpnRoiProbs": scores.dtype, "RpnRoisLod": "int32"}
    made = check.several(
        "generate_proposals",
        {"Scores": scores, "BboxDeltas": bbox_deltas, "ImInfo": im_info, "Anchors": anchors, "Variances": variances},
        {"pre_nms_topN": pre_nms_top_n, "post_nms_topN": post_nms_top_n, "nms_thresh": nms_thresh,
         "min_size": min_size, "eta": eta}, outs, name=name, stop_gradient=True)
    return made if return_rois_num else made[:2]


def distribute_fpn_proposals(fpn_rois: Variable, min_level: int, max_level: int, refer_level: int, refer_scale: int,
                             name: str | None = None) -> tuple[list[Variable], Variable]:
    """Distributes boxes to the levels of a feature pyramid by their size.

    The level of a box is floor(refer_level + log2(sqrt(area) / refer_scale)), clipped to [min_level, max_level].
    Source: Lin et al., arXiv:1612.03144.

    Args:
        fpn_rois (Variable): [R, 4], float32 or float64: left, top, right, bottom, in pixels, with a sequence for each
            image.
        min_level (int): lowest level, with the smallest boxes.
        max_level (int): highest level.
        refer_level (int): level of square boxes with sides of ``refer_scale``.
        refer_scale (int): size of a box, in pixels.
        name (str, optional): prefix of the outputs' names.

    Returns:
        tuple: a list of the boxes [boxes, 4] of each level, with a sequence for each image; and [R, 1], int32: the row
        of each box in the concatenation of all levels.

    Raises:
        TypeError: an argument is not a Variable of a supported dtype.
        ValueError: ``max_level`` is below ``min_level``.
        EnforceNotMet: the shape does not match.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> rois = fluid.data("rois", [None, 4], "float32", lod_level=1)
        >>> levels, restore = fluid.layers.distribute_fpn_proposals(rois, 2, 5, 4, 224)
        >>> len(levels), levels[0].shape, restore.shape
        (4, (-1, 4), (-1, 1))
    """
    check.operand(fpn_rois, "fpn_rois", "distribute_fpn_proposals")
    for argument, value in (("min_level", min_level), ("max_level", max_level)):
        check.of_type(value, argument, "distribute_fpn_proposals", int)
    helper = LayerHelper("distribute_fpn_proposals", name=name)
    levels = [helper.create_variable_for_type_inference(fpn_rois.dtype) for _ in range(max_level - min_level + 1)]
    restore = helper.create_variable_for_type_inference("int32")
    helper.append_op(
        type="distribute_fpn_proposals", inputs={"FpnRois": fpn_rois},
        outputs={"MultiFpnRois": levels, "RestoreIndex": restore},
        attrs={"min_level": min_level, "max_level": max_level, "refer_level": refer_level, "refer_scale": refer_scale})
    return levels, restore


def collect_fpn_proposals(multi_rois: Sequence[Variable], multi_scores: Sequence[Variable], min_level: int,
                          max_level: int, post_nms_top_n: int, name: str | None = None) -> Variable:
    """Collects the best boxes of all levels of a feature pyramid.

    Source: Lin et al., arXiv:1612.03144.

    Args:
        multi_rois (list): boxes [boxes, 4] of each level, float32 or float64, with a sequence for each image.
        multi_scores (list): their scores [boxes, 1].
        min_level (int): lowest level.
        max_level (int): highest level. Only the first ``max_level - min_level + 1`` entries of the lists are read.
        post_nms_top_n (int): number of boxes of all images together.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: [boxes, 4], sorted by image and then by decreasing score, with a sequence for each image.

    Raises:
        TypeError: an argument is not a list of Variables, or has an unsupported dtype.
        EnforceNotMet: shapes do not match.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> rois = [fluid.data("r%d" % k, [None, 4], "float32", 1) for k in range(2)]
        >>> scores = [fluid.data("s%d" % k, [None, 1], "float32", 1) for k in range(2)]
        >>> fluid.layers.collect_fpn_proposals(rois, scores, 2, 3, 50).shape
        (50, 4)
    """
    check.of_type(multi_rois, "multi_rois", "collect_fpn_proposals", (list, tuple))
    check.of_type(multi_scores, "multi_scores", "collect_fpn_proposals", (list, tuple))
    count = max_level - min_level + 1
    rois = check.operands(multi_rois, "multi_rois", "collect_fpn_proposals")[:count]
    scores = check.operands(multi_scores, "multi_scores", "collect_fpn_proposals")[:count]
    return one_op("collect_fpn_proposals", {"MultiLevelRois": rois, "MultiLevelScores": scores},
                  {"post_nms_topN": post_nms_top_n}, name=name, out="FpnRois", stop_gradient=True)


def box_decoder_and_assign(prior_box: Variable, prior_box_var: Variable, target_box: Variable, box_score: Variable,
                           box_clip: float, name: str | None = None) -> tuple[Variable, Variable]:
    """Decodes the boxes of all classes from offsets, and selects the box of the most likely class for each row.

    The prior box is moved by variance * offset * size and grown by exp(min(variance * offset, box_clip)).

    Args:
        prior_box (Variable): [N, 4], float32 or float64: left, top, right, bottom, in pixels.
        prior_box_var (Variable): [4], dtype of ``prior_box``: factors of the offsets.
        target_box (Variable): [N, 4 * classes], dtype of ``prior_box``: offsets for each class.
        box_score (Variable): [N, classes], dtype of ``prior_box``; class 0 is the background.
        box_clip (float): maximum logarithm of the growth.
        name (str, optional): prefix of the outputs' names.

    Returns:
        tuple: all boxes, [N, 4 * classes]; and the box of the class other than 0 with the highest score, [N, 4].

    Raises:
        TypeError: an argument is not a Variable of a supported dtype.
        EnforceNotMet: shapes do not match.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> prior, var = fluid.data("prior", [None, 4], "float32"), fluid.data("var", [4], "float32")
        >>> target, score = fluid.data("target", [None, 12], "float32"), fluid.data("score", [None, 3], "float32")
        >>> boxes, best = fluid.layers.box_decoder_and_assign(prior, var, target, score, 4.135)
        >>> boxes.shape, best.shape
        ((-1, 12), (-1, 4))
    """
    for argument, value in (("prior_box", prior_box), ("target_box", target_box), ("box_score", box_score)):
        check.operand(value, argument, "box_decoder_and_assign")
    check.operand(prior_box_var, "prior_box_var", "box_decoder_and_assign")
    boxes, best = check.several(
        "box_decoder_and_assign",
        {"PriorBox": prior_box, "PriorBoxVar": prior_box_var, "TargetBox": target_box, "BoxScore": box_score},
        {"box_clip": box_clip}, {"DecodeBox": prior_box.dtype, "OutputAssignBox": prior_box.dtype}, name=name)
    return boxes, best


explain(globals())
