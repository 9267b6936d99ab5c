"""The heads and the loss of SSD."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..errors import InvalidType, InvalidValue
from ..explained import explain
from . import check
from ._generated_places import shape as shape_of
from ._generated_reductions import reduce_sum
from .boxes import box_coder, iou_similarity
from .conv import conv2d
from .copies import cast
from .joins import concat
from .losses.classification import softmax_with_cross_entropy
from .losses.regression import smooth_l1
from .matching import bipartite_match, target_assign
from .priors import prior_box
from .shapes import flatten, reshape, transpose
from .slices import slice

if TYPE_CHECKING:
    from ..framework import Variable

__all__ = ["multi_box_head", "ssd_loss"]


def _sizes_from_ratios(maps: int, base: float, low: Any, high: Any) -> tuple[list[Any], list[Any]]:
    """Returns the sizes of the smallest and the largest box of each map: 10 and 20 percent of the image for the first
    map, then equal steps."""
    if maps <= 2:
        raise InvalidValue("multi_box_head: min_sizes and max_sizes must be given for %d inputs, got None" % maps)
    for argument, value in (("min_ratio", low), ("max_ratio", high)):
        if not isinstance(value, int):
            raise InvalidType("multi_box_head: %s must be an int where min_sizes is None, got %r" % (argument, value))
    step = int(math.floor((high - low) / (maps - 2)))
    ratios = range(low, high + 1, max(step, 1))
    return ([base * 0.10] + [base * r / 100.0 for r in ratios],
            [base * 0.20] + [base * (r + step) / 100.0 for r in ratios])


def _per_map(values: Any, argument: str, maps: int, several: bool = True) -> list[Any]:
    """Returns one entry of an argument for each map. None: no entry for any map."""
    if values is None:
        return [None] * maps
    if not isinstance(values, (list, tuple)) or (len(values) != maps if several else len(values) < maps):
        raise InvalidValue("multi_box_head: %s must be a list with one entry for each of the %d inputs, got %r"
                           % (argument, maps, values))
    return list(values)


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def multi_box_head(inputs: Sequence[Variable], image: Variable, base_size: float, num_classes: int,
                   aspect_ratios: Sequence[Any], min_ratio: int | None = None, max_ratio: int | None = None,
                   min_sizes: Sequence[Any] | None = None, max_sizes: Sequence[Any] | None = None,
                   steps: Sequence[float] | None = None, step_w: Sequence[float] | None = None,
                   step_h: Sequence[float] | None = None, offset: float = 0.5,
                   variance: Sequence[float] = [0.1, 0.1, 0.2, 0.2], flip: bool = True, clip: bool = False,  # noqa: B006
                   kernel_size: int = 1, pad: int = 0, stride: int = 1, name: str | None = None,
                   min_max_aspect_ratios_order: bool = False) -> tuple[Variable, Variable, Variable, Variable]:
    """Appends the heads of SSD to feature maps: prior boxes, and two convolutions per map that compute the offsets and
    scores of these boxes.

    Source: Liu et al., SSD, arXiv:1512.02325.

    Args:
        inputs (list): feature maps [N, C, H, W].
        image (Variable): images [N, C, height, width]. Only their extents are used.
        base_size (float): size of the image, for ``min_ratio`` and ``max_ratio``.
        num_classes (int): number of classes, including the background.
        aspect_ratios (list): for each map, a list of aspect ratios or a single ratio: see :func:`prior_box`.
        min_ratio (int, optional): size of the smallest boxes of the second map, in percent of ``base_size``. Used for
            three or more maps if ``min_sizes`` is not given. The boxes of the first map have 10 to 20 percent.
        max_ratio (int, optional): size of the smallest boxes of the last map, in percent.
        min_sizes (list, optional): for each map, a size or a list of sizes.
        max_sizes (list, optional): for each map, a size or a list of sizes. Required with ``min_sizes``.
        steps (list, optional): for each map, the width and height of a cell in pixels.
        step_w (list, optional): for each map, only the width.
        step_h (list, optional): for each map, only the height.
        offset (float): position of the centers of the boxes in a cell. Default 0.5.
        variance (list): 4 numbers above 0. Default [0.1, 0.1, 0.2, 0.2].
        flip (bool): adds 1 / r for each aspect ratio r. Default True.
        clip (bool): moves sides outside of the image to its border. Default False.
        kernel_size (int): filter size of the convolutions. Default 1.
        pad (int): padding of the convolutions. Default 0.
        stride (int): stride of the convolutions. Default 1.
        name (str, optional): ignored, as in Fluid.
        min_max_aspect_ratios_order (bool): as for :func:`prior_box`. Default False.

    Returns:
        tuple: offsets [N, boxes, 4], scores [N, boxes, num_classes], prior boxes [boxes, 4], variances [boxes, 4].

    Raises:
        TypeError: ``inputs`` or a ratio has the wrong type.
        ValueError: a list does not have one entry for each map.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> maps = [fluid.data("a", [None, 8, 4, 5], "float32"), fluid.data("b", [None, 6, 2, 3], "float32")]
        >>> image = fluid.data("image", [None, 3, 32, 40], "float32")
        >>> loc, scores, boxes, variances = fluid.layers.multi_box_head(
        ...     maps, image, 32, 3, [[2.0], [2.0]], min_sizes=[4.0, 8.0], max_sizes=[8.0, 16.0])
        >>> boxes.shape
        (104, 4)
    """
    if not isinstance(inputs, (list, tuple)):
        raise InvalidValue("multi_box_head: inputs must be a list of Variables, got %s" % type(inputs).__name__)
    maps = len(inputs)
    if min_sizes is None:
        if max_sizes is not None:
            raise InvalidType("multi_box_head: min_sizes must be given with max_sizes, got None")
        min_sizes, max_sizes = _sizes_from_ratios(maps, base_size, min_ratio, max_ratio)
    low = _per_map(min_sizes, "min_sizes", maps, several=False)
    high = _per_map(max_sizes, "max_sizes", maps, several=False)
    ratios = _per_map(aspect_ratios, "aspect_ratios", maps)
    both = _per_map(steps, "steps", maps)
    wide, tall = _per_map(step_w, "step_w", maps), _per_map(step_h, "step_h", maps)
    heads: list[list[Variable]] = [[], []]
    priors: list[tuple[Variable, Variable]] = []
    for i, features in enumerate(inputs):
        cell = [both[i] or wide[i] or 0.0, both[i] or tall[i] or 0.0]
        box, spread = prior_box(features, image, _listed(low[i]), None if high[i] is None else _listed(high[i]),
                                _listed(ratios[i]), variance, flip, clip, cell, offset,
                                min_max_aspect_ratios_order=min_max_aspect_ratios_order)
        priors.append((box, spread))
        for numbers, head in zip((4, num_classes), heads):
            found = conv2d(features, box.shape[2] * numbers, kernel_size, stride, pad)
            head.append(flatten(transpose(found, [0, 2, 3, 1]), axis=1))
    flat = [(flatten(box, axis=3), flatten(spread, axis=3)) for box, spread in priors]
    boxes, variances = (_joined([pair[k] for pair in flat], 0) for k in (0, 1))
    boxes.stop_gradient = variances.stop_gradient = True
    loc, scores = (reshape(_joined(head, 1), [0, -1, numbers]) for head, numbers in zip(heads, (4, num_classes)))
    return loc, scores, boxes, variances


def _joined(parts: list[Variable], axis: int) -> Variable:
    return concat(parts, axis=axis) if len(parts) > 1 else parts[0]


def _constant(value: Variable) -> Variable:
    value.stop_gradient = True
    return value


def _mined(loss: Variable, rows: Variable, entries: Variable, ratio: float, threshold: float, mining: str,
           size: int | None) -> tuple[Variable, Variable]:
    """Returns the priors that count as background, and the matches."""
    attrs = {"neg_pos_ratio": ratio, "neg_dist_threshold": threshold, "mining_type": mining, "sample_size": size}
    negatives, updated = check.several(
        "mine_hard_examples", {"ClsLoss": loss, "LocLoss": None, "MatchIndices": rows, "MatchDist": entries}, attrs,
        {"NegIndices": "int32", "UpdatedMatchIndices": rows.dtype}, layer="ssd_loss")
    return negatives, updated


def ssd_loss(location: Variable, confidence: Variable, gt_box: Variable, gt_label: Variable, prior_box: Variable,
             prior_box_var: Variable | list[float] | None = None, background_label: int = 0,
             overlap_threshold: float = 0.5, neg_pos_ratio: float = 3.0, neg_overlap: float = 0.5,
             loc_loss_weight: float = 1.0, conf_loss_weight: float = 1.0, match_type: str = "per_prediction",
             mining_type: str = "max_negative", normalize: bool = True, sample_size: int | None = None) -> Variable:
    """Computes the loss of SSD: cross entropy of classes and smooth L1 distance of offsets.

    Priors are matched with the ground truth that they overlap (:func:`iou_similarity`, :func:`bipartite_match`).
    Matched priors contribute to both terms. Of the other priors, those with the largest cross entropy count as
    background, ``neg_pos_ratio`` for each matched prior. Source: Liu et al., SSD, arXiv:1512.02325.

    Args:
        location (Variable): offsets [N, M, 4] that the network predicts for the priors.
        confidence (Variable): logits [N, M, classes].
        gt_box (Variable): ground truth [boxes, 4] with a non-empty sequence for each image.
        gt_label (Variable): classes of these boxes, [boxes, 1], int32, with the same sequences.
        prior_box (Variable): priors, [M, 4].
        prior_box_var (Variable|list): variances [M, 4], or 4 numbers.
        background_label (int): class of priors without a match. Default 0.
        overlap_threshold (float): minimum overlap of a match, with "per_prediction". Default 0.5.
        neg_pos_ratio (float): number of background priors per matched one, above 0. Default 3.0.
        neg_overlap (float): maximum overlap of a background prior, between 0 and 1. Default 0.5.
        loc_loss_weight (float): weight of the distance of offsets. Default 1.0.
        conf_loss_weight (float): weight of the cross entropy. Default 1.0.
        match_type (str): "per_prediction" (default) or "bipartite".
        mining_type (str): must be "max_negative".
        normalize (bool): divides the loss by the number of matched priors. Default True.
        sample_size (int, optional): has no effect with "max_negative".

    Returns:
        Variable: the loss of each image, [N, 1].

    Raises:
        TypeError: an argument is not a Variable, or ``prior_box_var`` is neither a Variable nor a list.
        ValueError: ``mining_type`` is unknown.
        EnforceNotMet: shapes do not match, or at run time an image has no ground truth.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> loc, scores = fluid.data("loc", [None, 9, 4], "float32"), fluid.data("scores", [None, 9, 3], "float32")
        >>> box, label = fluid.data("box", [None, 4], "float32", 1), fluid.data("label", [None, 1], "int32", 1)
        >>> priors = fluid.data("priors", [9, 4], "float32")
        >>> fluid.layers.ssd_loss(loc, scores, box, label, priors, [0.1, 0.1, 0.2, 0.2]).shape
        (-1, 1)
    """
    if mining_type != "max_negative":
        raise InvalidValue("ssd_loss: mining_type must be 'max_negative', got %r" % (mining_type,))
    extents = shape_of(confidence)
    rows, entries = bipartite_match(iou_similarity(gt_box, prior_box), match_type, overlap_threshold)
    labels = _constant(reshape(gt_label, [0, -1, 1]))
    guess, _ = target_assign(labels, rows, mismatch_value=background_label)
    logits = flatten(confidence, axis=2)
    entropy = softmax_with_cross_entropy(logits, _constant(flatten(cast(guess, "int64"), axis=2)))
    samples = _constant(slice(extents, axes=[0], starts=[0], ends=[2]))
    entropy = _constant(reshape(entropy, [-1, 0], actual_shape=samples))
    negatives, matches = _mined(entropy, rows, entries, neg_pos_ratio, neg_overlap, mining_type, sample_size)
    offsets = box_coder(prior_box, prior_box_var, gt_box)  # type: ignore[arg-type]
    offset_targets, offset_weights = target_assign(offsets, matches, mismatch_value=background_label)
    classes, class_weights = target_assign(labels, matches, negatives, background_label)
    entropy = softmax_with_cross_entropy(logits, _constant(cast(flatten(classes, axis=2), "int64")))
    class_loss = entropy * _constant(flatten(class_weights, axis=2))
    distance = smooth_l1(flatten(location, axis=2), _constant(flatten(offset_targets, axis=2)))
    matched = _constant(flatten(offset_weights, axis=2))
    place_loss = distance * matched
    loss = class_loss * conf_loss_weight + place_loss * loc_loss_weight
    loss = reduce_sum(reshape(loss, [-1, 0], actual_shape=samples), dim=1, keep_dim=True)
    return loss / reduce_sum(matched) if normalize else loss


explain(globals())
