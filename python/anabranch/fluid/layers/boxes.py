"""Layers that compare boxes, encode them relative to priors, and decode the output of YOLO."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..explained import explain
from . import check
from .check import one_op

if TYPE_CHECKING:
    from ..framework import Variable

__all__ = ["iou_similarity", "box_coder", "box_clip", "polygon_box_transform", "yolo_box"]


def iou_similarity(x: Variable, y: Variable, box_normalized: bool = True, name: str | None = None) -> Variable:
    """Computes the overlap of each pair of boxes: area of the intersection / (area of the union + 1e-10).

    Args:
        x (Variable): boxes [N, 4], float32 or float64: left, top, right, bottom.
        y (Variable): boxes [M, 4], dtype of ``x``.
        box_normalized (bool): True: coordinates are fractions of the image. False: they are pixels, and the right and
            bottom pixels belong to the box. Default True.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: [N, M] with the sequences of ``x``, with values from 0 to 1.

    Raises:
        TypeError: an argument is not a Variable of a supported dtype.
        EnforceNotMet: shapes do not match.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, y = fluid.data("x", [None, 4], "float32"), fluid.data("y", [7, 4], "float32")
        >>> fluid.layers.iou_similarity(x, y).shape
        (-1, 7)
    """
    check.operand(x, "x", "iou_similarity")
    check.operand(y, "y", "iou_similarity")
    return one_op("iou_similarity", {"X": x, "Y": y}, {"box_normalized": box_normalized}, name=name)


def box_coder(prior_box: Variable, prior_box_var: Variable | list[float], target_box: Variable,
              code_type: str = "encode_center_size", box_normalized: bool = True, name: str | None = None,
              axis: int = 0) -> Variable:
    """Encodes boxes as offsets from prior boxes, or decodes such offsets.

    The offsets of a box with center (x, y) and size (w, h) from a prior with center (px, py) and size (pw, ph) are
    ((x - px) / pw, (y - py) / ph, ln|w / pw|, ln|h / ph|), each divided by its variance. Source: Liu et al., SSD,
    arXiv:1512.02325.

    Args:
        prior_box (Variable): priors [M, 4], float32 or float64: left, top, right, bottom.
        prior_box_var (Variable|list): variances [M, 4] of the dtype of ``prior_box``, or a list of 4 numbers for all
            priors.
        target_box (Variable): boxes [N, 4] to encode, or offsets [N, M, 4] to decode ([M, N, 4] if ``axis`` is 1).
        code_type (str): "encode_center_size" (default) or "decode_center_size".
        box_normalized (bool): True: coordinates are fractions of the image. False: they are pixels, and the right and
            bottom pixels belong to the box. Default True.
        name (str, optional): prefix of the output's name.
        axis (int): for decoding: 0 if axis 1 of ``target_box`` counts the priors, 1 if axis 0 does. Default 0.

    Returns:
        Variable: [N, M, 4] or the shape of ``target_box``, with the sequences of ``target_box``.

    Raises:
        TypeError: an argument is not a Variable of a supported dtype, or ``prior_box_var`` is neither a Variable nor a
            list.
        EnforceNotMet: shapes do not match, or ``code_type`` is unknown.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> priors, boxes = fluid.data("priors", [7, 4], "float32"), fluid.data("boxes", [None, 4], "float32")
        >>> fluid.layers.box_coder(priors, [0.1, 0.1, 0.2, 0.2], boxes).shape
        (-1, 7, 4)
    """
    check.operand(prior_box, "prior_box", "box_coder")
    check.operand(target_box, "target_box", "box_coder")
    inputs = {"PriorBox": prior_box, "TargetBox": target_box}
    attrs = {"code_type": code_type, "box_normalized": box_normalized, "axis": axis}
    if isinstance(prior_box_var, list):
        attrs["variance"] = prior_box_var
    else:
        check.operand(prior_box_var, "prior_box_var", "box_coder")
        inputs["PriorBoxVar"] = prior_box_var
    return one_op("box_coder", inputs, attrs, name=name, out="OutputBox")


def box_clip(input: Variable, im_info: Variable, name: str | None = None) -> Variable:
    """Clips boxes at the border of their image: x to [0, width - 1], y to [0, height - 1].

    Args:
        input (Variable): boxes [boxes, ..., 4], float32 or float64, with a sequence for each image.
        im_info (Variable): [images, 3], dtype of ``input``: height, width and scale of each image. The border is at
            height / scale and width / scale, rounded.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: shape, dtype and sequences of ``input``.

    Raises:
        TypeError: an argument is not a Variable of a supported dtype.
        EnforceNotMet: shapes do not match, or, at run time, sequences are missing or empty.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> boxes = fluid.data("boxes", [None, 4], "float32", lod_level=1)
        >>> fluid.layers.box_clip(boxes, fluid.data("im_info", [None, 3], "float32")).shape
        (-1, 4)
    """
    check.operand(input, "input", "box_clip")
    check.operand(im_info, "im_info", "box_clip")
    return one_op("box_clip", {"Input": input, "ImInfo": im_info}, name=name, out="Output")


def polygon_box_transform(input: Variable, name: str | None = None) -> Variable:
    """Computes the corners of text boxes from offsets: 4 * x - input in even channels, 4 * y - input in odd channels.

    x and y are the column and the row in the map; a column or row corresponds to 4 pixels. Source: Zhou et al., EAST,
    arXiv:1704.03155.

    Args:
        input (Variable): [N, C, H, W], float32 or float64. C must be even.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: shape and dtype of ``input``.

    Raises:
        TypeError: an argument is not a Variable of a supported dtype.
        EnforceNotMet: the shape does not match.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.polygon_box_transform(fluid.data("x", [None, 8, 4, 5], "float32")).shape
        (-1, 8, 4, 5)
    """
    check.operand(input, "input", "polygon_box_transform")
    return one_op("polygon_box_transform", {"Input": input}, name=name, out="Output")


def yolo_box(x: Variable, img_size: Variable, anchors: Sequence[int], class_num: int, conf_thresh: float,
             downsample_ratio: int, clip_bbox: bool = True, name: str | None = None,
             scale_x_y: float = 1.0) -> tuple[Variable, Variable]:
    """Computes boxes and scores from the output of YOLOv3.

    Let s be the sigmoid and a = ``scale_x_y``. An anchor (pw, ph) in column i and row j gives a box with its center at
    ((i + a * s(tx) - (a - 1) / 2) / H, (j + a * s(ty) - (a - 1) / 2) / H) and the size (pw * exp(tw), ph * exp(th)) /
    (downsample_ratio * H), multiplied by the image's width and height. Its scores are s(confidence) * s(class). If
    s(confidence) < ``conf_thresh``, the box and the scores are zeros. Source: Redmon & Farhadi, arXiv:1804.02767.

    Args:
        x (Variable): [N, A * (5 + class_num), H, W], float32 or float64. For each of the A anchors: tx, ty, tw, th, the
            confidence and the classes.
        img_size (Variable): [N, 2], int32: height and width of each image.
        anchors (list): width and height of each anchor, in pixels of the network's input.
        class_num (int): number of classes, at least 1.
        conf_thresh (float): minimum confidence. Boxes with less confidence are zeros.
        downsample_ratio (int): number of pixels of the network's input per cell of ``x``, along each axis.
        clip_bbox (bool): moves sides outside of the image to its border. Default True.
        name (str, optional): prefix of the outputs' names.
        scale_x_y (float): factor that extends the range of the center around the middle of a cell. Default 1.0.

    Returns:
        tuple: boxes [N, A * H * W, 4] - left, top, right, bottom in pixels - and scores [N, A * H * W, class_num].

    Raises:
        TypeError: an argument has the wrong type or dtype.
        EnforceNotMet: shapes do not match.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, size = fluid.data("x", [None, 14, 4, 4], "float32"), fluid.data("size", [None, 2], "int32")
        >>> boxes, scores = fluid.layers.yolo_box(x, size, [10, 13, 16, 30], 2, 0.01, 32)
        >>> boxes.shape, scores.shape
        ((-1, 32, 4), (-1, 32, 2))
    """
    check.operand(x, "x", "yolo_box")
    check.variable(img_size, "img_size", "yolo_box", ("int32",))
    check.of_type(anchors, "anchors", "yolo_box", (list, tuple))
    check.of_type(class_num, "class_num", "yolo_box", int)
    check.of_type(conf_thresh, "conf_thresh", "yolo_box", float)
    attrs = {"anchors": list(anchors), "class_num": class_num, "conf_thresh": conf_thresh,
             "downsample_ratio": downsample_ratio, "clip_bbox": clip_bbox, "scale_x_y": scale_x_y}
    boxes, scores = check.several("yolo_box", {"X": x, "ImgSize": img_size}, attrs,
                                  {"Boxes": x.dtype, "Scores": x.dtype}, name=name)
    return boxes, scores


explain(globals())
