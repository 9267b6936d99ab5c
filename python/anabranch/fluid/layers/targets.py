"""Layers that select anchors and proposals for the training of detectors."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..explained import explain
from . import check
from ._generated_places import gather
from .shapes import reshape

if TYPE_CHECKING:
    from ..framework import Variable

__all__ = ["rpn_target_assign", "retinanet_target_assign", "generate_proposal_labels", "generate_mask_labels"]


def rpn_target_assign(bbox_pred: Variable, cls_logits: Variable, anchor_box: Variable, anchor_var: Variable,
                      gt_boxes: Variable, is_crowd: Variable, im_info: Variable, rpn_batch_size_per_im: int = 256,
                      rpn_straddle_thresh: float = 0.0, rpn_fg_fraction: float = 0.5,
                      rpn_positive_overlap: float = 0.7, rpn_negative_overlap: float = 0.3,
                      use_random: bool = True) -> tuple[Variable, ...]:
    """Selects anchors for training, and returns their predictions and targets.

    An anchor is foreground if it overlaps a ground-truth box by at least ``rpn_positive_overlap``, or if it is the
    anchor that overlaps a ground-truth box most. It is background if it overlaps every ground-truth box by less than
    ``rpn_negative_overlap``. Source: Ren et al., arXiv:1506.01497.

    Args:
        bbox_pred (Variable): [N, A, 4], float32 or float64: offsets of the boxes from the anchors.
        cls_logits (Variable): [N, A, 1], float32 or float64: objectness scores.
        anchor_box (Variable): [A, 4], float32 or float64: left, top, right, bottom, in pixels.
        anchor_var (Variable): ignored, as in Fluid.
        gt_boxes (Variable): [truths, 4], dtype of ``anchor_box``, in pixels of the original image, with a sequence for
            each image.
        is_crowd (Variable): [truths, 1], int32: 1 for boxes of crowds, which are ignored.
        im_info (Variable): [N, 3], dtype of ``anchor_box``: height, width and scale of the images.
        rpn_batch_size_per_im (int): maximum number of anchors per image. Default 256.
        rpn_straddle_thresh (float): number of pixels that an anchor may extend beyond the image. Other anchors are
            ignored. A negative number means no limit. Default 0.0.
        rpn_fg_fraction (float): maximum share of foreground anchors. Default 0.5.
        rpn_positive_overlap (float): minimum overlap of the foreground. Default 0.7.
        rpn_negative_overlap (float): upper bound of the overlap of the background. Default 0.3.
        use_random (bool): True samples the candidates at random; False takes the first ones. Default True.

    Returns:
        tuple: the predicted scores [scored, 1] and boxes [located, 4]; their targets: labels [scored, 1], int32, 1 for
        foreground, and offsets [located, 4]; and the weights of the boxes, [located, 4].

    Raises:
        TypeError: an argument is not a Variable of a supported dtype.
        EnforceNotMet: shapes do not match, or the sequences do not match at run time.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> boxes, logits = fluid.data("b", [None, 60, 4], "float32"), fluid.data("l", [None, 60, 1], "float32")
        >>> anchors, var = fluid.data("a", [60, 4], "float32"), fluid.data("v", [60, 4], "float32")
        >>> truth, crowd = fluid.data("t", [None, 4], "float32", 1), fluid.data("c", [None, 1], "int32", 1)
        >>> info = fluid.data("i", [None, 3], "float32")
        >>> made = fluid.layers.rpn_target_assign(boxes, logits, anchors, var, truth, crowd, info)
        >>> [v.shape for v in made]
        [(-1, 1), (-1, 4), (-1, 1), (-1, 4), (-1, 4)]
    """
    for argument, value in (("bbox_pred", bbox_pred), ("cls_logits", cls_logits)):
        check.variable(value, argument, "rpn_target_assign", check.WIDE_FLOATS)
    for argument, value in (("anchor_box", anchor_box), ("gt_boxes", gt_boxes), ("im_info", im_info)):
        check.operand(value, argument, "rpn_target_assign")
    check.variable(anchor_var, "anchor_var", "rpn_target_assign")
    check.variable(is_crowd, "is_crowd", "rpn_target_assign", ("int32",))
    places, scored, labels, offsets, weights = check.several(
        "rpn_target_assign", {"Anchor": anchor_box, "GtBoxes": gt_boxes, "IsCrowd": is_crowd, "ImInfo": im_info},
        {"rpn_batch_size_per_im": rpn_batch_size_per_im, "rpn_straddle_thresh": rpn_straddle_thresh,
         "rpn_positive_overlap": rpn_positive_overlap, "rpn_negative_overlap": rpn_negative_overlap,
         "rpn_fg_fraction": rpn_fg_fraction, "use_random": use_random},
        {"LocationIndex": "int32", "ScoreIndex": "int32", "TargetLabel": "int32", "TargetBBox": anchor_box.dtype,
         "BBoxInsideWeight": anchor_box.dtype}, stop_gradient=True)
    logits, boxes = reshape(cls_logits, shape=(-1, 1)), reshape(bbox_pred, shape=(-1, 4))
    return gather(logits, scored), gather(boxes, places), labels, offsets, weights


def retinanet_target_assign(bbox_pred: Variable, cls_logits: Variable, anchor_box: Variable, anchor_var: Variable,
                            gt_boxes: Variable, gt_labels: Variable, is_crowd: Variable, im_info: Variable,
                            num_classes: int = 1, positive_overlap: float = 0.5,
                            negative_overlap: float = 0.4) -> tuple[Variable, ...]:
    """Selects anchors for the training of RetinaNet, and returns their predictions and targets.

    An anchor is foreground if it overlaps a ground-truth box by at least ``positive_overlap``, or if it is the anchor
    that overlaps a ground-truth box most. Its label is that of the box that it overlaps most. An anchor is background
    if it overlaps every ground-truth box by less than ``negative_overlap``. Source: Lin et al., arXiv:1708.02002.

    Args:
        bbox_pred (Variable): [N, A, 4], float32 or float64: offsets of the boxes from the anchors.
        cls_logits (Variable): [N, A, num_classes], float32 or float64.
        anchor_box (Variable): [A, 4], float32 or float64: left, top, right, bottom, in pixels.
        anchor_var (Variable): ignored, as in Fluid.
        gt_boxes (Variable): [truths, 4], dtype of ``anchor_box``, in pixels of the original image, with a sequence for
            each image.
        gt_labels (Variable): [truths, 1], int32: classes from 1 on.
        is_crowd (Variable): [truths, 1], int32: 1 for boxes of crowds, which are ignored.
        im_info (Variable): [N, 3], dtype of ``anchor_box``: height, width and scale of the images.
        num_classes (int): number of classes. Default 1.
        positive_overlap (float): minimum overlap of the foreground. Default 0.5.
        negative_overlap (float): upper bound of the overlap of the background. Default 0.4.

    Returns:
        tuple: the predicted scores [scored, num_classes] and boxes [located, 4]; their targets: labels [scored, 1],
        int32, 0 for background, and offsets [located, 4]; the weights of the boxes, [located, 4]; and [N, 1], int32:
        the number of boxes of each image, plus 1.

    Raises:
        TypeError: an argument is not a Variable of a supported dtype.
        EnforceNotMet: shapes do not match, or the sequences do not match at run time.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> boxes, logits = fluid.data("b", [None, 60, 4], "float32"), fluid.data("l", [None, 60, 3], "float32")
        >>> anchors, var = fluid.data("a", [60, 4], "float32"), fluid.data("v", [60, 4], "float32")
        >>> truth, label = fluid.data("t", [None, 4], "float32", 1), fluid.data("g", [None, 1], "int32", 1)
        >>> crowd, info = fluid.data("c", [None, 1], "int32", 1), fluid.data("i", [None, 3], "float32")
        >>> made = fluid.layers.retinanet_target_assign(boxes, logits, anchors, var, truth, label, crowd, info, 3)
        >>> [v.shape for v in made]
        [(-1, 3), (-1, 4), (-1, 1), (-1, 4), (-1, 4), (-1, 1)]
    """
    for argument, value in (("bbox_pred", bbox_pred), ("cls_logits", cls_logits)):
        check.variable(value, argument, "retinanet_target_assign", check.WIDE_FLOATS)
    for argument, value in (("anchor_box", anchor_box), ("gt_boxes", gt_boxes), ("im_info", im_info)):
        check.operand(value, argument, "retinanet_target_assign")
    check.variable(anchor_var, "anchor_var", "retinanet_target_assign")
    for argument, value in (("gt_labels", gt_labels), ("is_crowd", is_crowd)):
        check.variable(value, argument, "retinanet_target_assign", ("int32",))
    places, scored, labels, offsets, weights, count = check.several(
        "retinanet_target_assign", {"Anchor": anchor_box, "GtBoxes": gt_boxes, "GtLabels": gt_labels,
                                    "IsCrowd": is_crowd, "ImInfo": im_info},
        {"positive_overlap": positive_overlap, "negative_overlap": negative_overlap},
        {"LocationIndex": "int32", "ScoreIndex": "int32", "TargetLabel": "int32", "TargetBBox": anchor_box.dtype,
         "BBoxInsideWeight": anchor_box.dtype, "ForegroundNumber": "int32"}, stop_gradient=True)
    logits, boxes = reshape(cls_logits, shape=(-1, num_classes)), reshape(bbox_pred, shape=(-1, 4))
    return gather(logits, scored), gather(boxes, places), labels, offsets, weights, count


def generate_proposal_labels(rpn_rois: Variable, gt_classes: Variable, is_crowd: Variable, gt_boxes: Variable,
                             im_info: Variable, batch_size_per_im: int = 256, fg_fraction: float = 0.25,
                             fg_thresh: float = 0.25, bg_thresh_hi: float = 0.5, bg_thresh_lo: float = 0.0,
                             bbox_reg_weights: Sequence[float] = [0.1, 0.1, 0.2, 0.2],  # noqa: B006
                             class_nums: int | None = None, use_random: bool = True, is_cls_agnostic: bool = False,
                             is_cascade_rcnn: bool = False) -> tuple[Variable, ...]:
    """Selects proposals for the training of the second stage, and returns them with their classes and offsets.

    The candidates are the proposals and the ground-truth boxes. A candidate is foreground if it overlaps a ground-truth
    box by at least ``fg_thresh``, and background if its largest overlap is at least ``bg_thresh_lo`` and below
    ``bg_thresh_hi``. Source: Girshick, Fast R-CNN, arXiv:1504.08083.

    Args:
        rpn_rois (Variable): [proposals, 4], float32 or float64: left, top, right, bottom in pixels, with a sequence
            for each image.
        gt_classes (Variable): [truths, 1], int32, from 0 to class_nums - 1.
        is_crowd (Variable): [truths, 1], int32: 1 for boxes of crowds.
        gt_boxes (Variable): [truths, 4], dtype of ``rpn_rois``, in pixels of the original image, with a sequence for
            each image.
        im_info (Variable): [N, 3], dtype of ``rpn_rois``: height, width and scale of the images.
        batch_size_per_im (int): maximum number of regions per image. Default 256.
        fg_fraction (float): maximum share of the foreground. Default 0.25.
        fg_thresh (float): minimum overlap of the foreground. Default 0.25.
        bg_thresh_hi (float): upper bound of the overlap of the background. Default 0.5.
        bg_thresh_lo (float): lower bound of the overlap of the background. Default 0.0.
        bbox_reg_weights (list): 4 divisors of the offsets. Default [0.1, 0.1, 0.2, 0.2].
        class_nums (int): number of classes, including the background.
        use_random (bool): True samples the candidates at random; False takes the first ones. Default True.
        is_cls_agnostic (bool): stores the offsets of every class at class 1. Default False.
        is_cascade_rcnn (bool): the proposals come from an earlier stage: uses all of them, without the ground-truth
            boxes. Default False.

    Returns:
        tuple: regions [rois, 4], the foreground first; labels [rois, 1], int32, 0 for background; offsets [rois, 4 *
        class_nums], stored at the position of their class; and inside and outside weights of the offsets, 1 at this
        position and 0 elsewhere. All have a sequence for each image.

    Raises:
        TypeError: an argument is not a Variable of a supported dtype.
        EnforceNotMet: ``class_nums`` is missing, shapes do not match, or at run time classes are out of range or
            sequences do not match.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> rois, truth = fluid.data("r", [None, 4], "float32", 1), fluid.data("t", [None, 4], "float32", 1)
        >>> kind, crowd = fluid.data("k", [None, 1], "int32", 1), fluid.data("c", [None, 1], "int32", 1)
        >>> info = fluid.data("i", [None, 3], "float32")
        >>> made = fluid.layers.generate_proposal_labels(rois, kind, crowd, truth, info, class_nums=5)
        >>> [v.shape for v in made]
        [(-1, 4), (-1, 1), (-1, 20), (-1, 20), (-1, 20)]
    """
    for argument, value in (("rpn_rois", rpn_rois), ("gt_boxes", gt_boxes), ("im_info", im_info)):
        check.operand(value, argument, "generate_proposal_labels")
    for argument, value in (("gt_classes", gt_classes), ("is_crowd", is_crowd)):
        check.variable(value, argument, "generate_proposal_labels", ("int32",))
    dtype = rpn_rois.dtype
    return check.several(
        "generate_proposal_labels", {"RpnRois": rpn_rois, "GtClasses": gt_classes, "IsCrowd": is_crowd,
                                     "GtBoxes": gt_boxes, "ImInfo": im_info},
        {"batch_size_per_im": batch_size_per_im, "fg_fraction": fg_fraction, "fg_thresh": fg_thresh,
         "bg_thresh_hi": bg_thresh_hi, "bg_thresh_lo": bg_thresh_lo, "bbox_reg_weights": list(bbox_reg_weights),
         "class_nums": class_nums, "use_random": use_random, "is_cls_agnostic": is_cls_agnostic,
         "is_cascade_rcnn": is_cascade_rcnn},
        {"Rois": dtype, "LabelsInt32": gt_classes.dtype, "BboxTargets": dtype, "BboxInsideWeights": dtype,
         "BboxOutsideWeights": dtype}, stop_gradient=True)


def generate_mask_labels(im_info: Variable, gt_classes: Variable, is_crowd: Variable, gt_segms: Variable,
                         rois: Variable, labels_int32: Variable, num_classes: int,
                         resolution: int) -> tuple[Variable, Variable, Variable]:
    """Generates masks for the training of the mask branch: the polygons of the ground-truth boxes, drawn on a grid over
    each region that has a class.

    An image without such a region gets one row: its first background region, with a mask of -1. Source: He et al., Mask
    R-CNN, arXiv:1703.06870.

    Args:
        im_info (Variable): [N, 3], float32 or float64: height, width and scale of the images.
        gt_classes (Variable): [truths, 1], int32, with a sequence for each image. Boxes of class 0 have no mask.
        is_crowd (Variable): [truths, 1], int32: 1 for boxes of crowds, which have no mask.
        gt_segms (Variable): [points, 2], dtype of ``im_info``: x and y of the vertices of polygons, in pixels of the
            original image, with three levels of sequences: the ground-truth boxes of an image, the polygons of a box,
            and the points of a polygon.
        rois (Variable): [rois, 4], dtype of ``im_info``: left, top, right, bottom in pixels, with a sequence for each
            image.
        labels_int32 (Variable): [rois, 1], int32: classes of the regions, 0 for background.
        num_classes (int): number of classes, including the background.
        resolution (int): number of rows and columns of a mask.

    Returns:
        tuple: the regions that have a mask, [masks, 4]; their indices among the regions of the image, [masks, 1],
        int32; and the masks [masks, num_classes * resolution * resolution], int32: at the position of the class, 1
        inside and 0 outside; -1 elsewhere. All have a sequence for each image.

    Raises:
        TypeError: an argument is not a Variable of a supported dtype.
        EnforceNotMet: shapes do not match, or at run time labels are out of range or sequences do not match.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> rois, points = fluid.data("r", [None, 4], "float32", 1), fluid.data("p", [None, 2], "float32", 3)
        >>> kind, crowd = fluid.data("k", [None, 1], "int32", 1), fluid.data("c", [None, 1], "int32", 1)
        >>> info, label = fluid.data("i", [None, 3], "float32"), fluid.data("l", [None, 1], "int32", 1)
        >>> made = fluid.layers.generate_mask_labels(info, kind, crowd, points, rois, label, 5, 14)
        >>> [v.shape for v in made]
        [(-1, 4), (-1, 1), (-1, 980)]
    """
    for argument, value in (("im_info", im_info), ("gt_segms", gt_segms), ("rois", rois)):
        check.operand(value, argument, "generate_mask_labels")
    for argument, value in (("gt_classes", gt_classes), ("is_crowd", is_crowd), ("labels_int32", labels_int32)):
        check.variable(value, argument, "generate_mask_labels", ("int32",))
    kept, numbers, masks = check.several(
        "generate_mask_labels", {"ImInfo": im_info, "GtClasses": gt_classes, "IsCrowd": is_crowd,
                                 "GtSegms": gt_segms, "Rois": rois, "LabelsInt32": labels_int32},
        {"num_classes": num_classes, "resolution": resolution},
        {"MaskRois": rois.dtype, "RoiHasMaskInt32": gt_classes.dtype, "MaskInt32": gt_classes.dtype},
        stop_gradient=True)
    return kept, numbers, masks


explain(globals())
