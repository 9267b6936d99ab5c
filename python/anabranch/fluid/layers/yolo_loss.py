"""The loss of YOLOv3."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..explained import explain
from . import check

if TYPE_CHECKING:
    from ..framework import Variable

__all__ = ["yolov3_loss"]


def yolov3_loss(x: Variable, gt_box: Variable, gt_label: Variable, anchors: Sequence[int], anchor_mask: Sequence[int],
                class_num: int, ignore_thresh: float, downsample_ratio: int, gt_score: Variable | None = None,
                use_label_smooth: bool = True, name: str | None = None, scale_x_y: float = 1.0) -> Variable:
    """Computes the loss of YOLOv3 at one scale of its output.

    A ground-truth box belongs to the anchor with the most similar shape, if this anchor is in ``anchor_mask``. Its loss
    is (2 - w * h) * score * (cross entropy of its position in its cell + distance of ln(size / anchor)) + score *
    (cross entropy of its classes). In addition, the loss contains the cross entropy of the confidence of each predicted
    box. Predicted boxes that do not belong to a ground-truth box but overlap one by more than ``ignore_thresh`` are
    excluded. Source: Redmon & Farhadi, arXiv:1804.02767.

    Args:
        x (Variable): [N, A * (5 + class_num), H, H], float32 or float64. For each of the A anchors of this scale: tx,
            ty, tw, th, the confidence and the classes.
        gt_box (Variable): [N, B, 4], dtype of ``x``: x and y of the center, width and height, in fractions of the
            image. Boxes with a width or height of 0 are padding.
        gt_label (Variable): [N, B], int32: classes from 0 to class_num - 1.
        anchors (list): width and height of the anchors of all scales, in pixels of the network's input.
        anchor_mask (list): indices of the anchors of this scale.
        class_num (int): number of classes, at least 1.
        ignore_thresh (float): bound of the overlap, as described above.
        downsample_ratio (int): number of pixels of the network's input per cell of ``x``, along each axis.
        gt_score (Variable, optional): [N, B], dtype of ``x``: weight (score) of each box. Default: 1.
        use_label_smooth (bool): uses the labels 1 - s and s instead of 1 and 0, with s = min(1 / class_num, 1 / 40).
            Default True.
        name (str, optional): prefix of the outputs' names.
        scale_x_y (float): factor that extends the range of the center around the middle of a cell. Default 1.0.

    Returns:
        Variable: the loss of each image, [N].

    Raises:
        TypeError: an argument has the wrong type or dtype.
        EnforceNotMet: shapes do not match, or at run time labels are out of range or centers are outside of the image.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, box = fluid.data("x", [None, 14, 4, 4], "float32"), fluid.data("box", [None, 6, 4], "float32")
        >>> label = fluid.data("label", [None, 6], "int32")
        >>> fluid.layers.yolov3_loss(x, box, label, [10, 13, 16, 30, 33, 23], [0, 1], 2, 0.7, 32).shape
        (-1,)
    """
    check.operand(x, "x", "yolov3_loss")
    check.operand(gt_box, "gt_box", "yolov3_loss")
    check.variable(gt_label, "gt_label", "yolov3_loss", ("int32",))
    if gt_score is not None:
        check.operand(gt_score, "gt_score", "yolov3_loss")
    check.of_type(anchors, "anchors", "yolov3_loss", (list, tuple))
    check.of_type(anchor_mask, "anchor_mask", "yolov3_loss", (list, tuple))
    check.of_type(class_num, "class_num", "yolov3_loss", int)
    check.of_type(ignore_thresh, "ignore_thresh", "yolov3_loss", float)
    check.of_type(use_label_smooth, "use_label_smooth", "yolov3_loss", bool)
    attrs = {"anchors": list(anchors), "anchor_mask": list(anchor_mask), "class_num": class_num,
             "ignore_thresh": ignore_thresh, "downsample_ratio": downsample_ratio,
             "use_label_smooth": use_label_smooth, "scale_x_y": scale_x_y}
    inputs = {"X": x, "GTBox": gt_box, "GTLabel": gt_label, "GTScore": gt_score}
    outs = {"Loss": x.dtype, "ObjectnessMask": "int32", "GTMatchMask": "int32"}
    return check.several("yolov3_loss", inputs, attrs, outs, name=name)[0]


explain(globals())
