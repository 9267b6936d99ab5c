"""Priors and anchors: boxes around the cells of a feature map."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..errors import InvalidValue
from ..explained import explain
from . import check

if TYPE_CHECKING:
    from ..framework import Variable
    from ..hints import DType

__all__ = ["prior_box", "density_prior_box", "anchor_generator"]


def _floats(values: Any, argument: str, layer: str) -> list[float]:
    check.of_type(values, argument, layer, (list, tuple))
    return [float(v) for v in values]


def _pair(values: Any, argument: str, layer: str) -> list[float]:
    if not isinstance(values, (list, tuple)) or len(values) != 2:
        raise InvalidValue("%s: %s must be 2 numbers, for width and height, got %r" % (layer, argument, values))
    return [float(v) for v in values]


def prior_box(input: Variable, image: Variable, min_sizes: Sequence[float], max_sizes: Sequence[float] | None = None,
              aspect_ratios: Sequence[float] = [1.0], variance: Sequence[float] = [0.1, 0.1, 0.2, 0.2],  # noqa: B006
              flip: bool = False, clip: bool = False, steps: Sequence[float] = [0.0, 0.0],  # noqa: B006
              offset: float = 0.5, name: str | None = None,
              min_max_aspect_ratios_order: bool = False) -> tuple[Variable, Variable]:
    """Creates the prior boxes of SSD around the center of each cell of a feature map.

    For each s of ``min_sizes``, a cell has a box of s * sqrt(r) by s / sqrt(r) pixels for r = 1 and for each aspect
    ratio r. If s has a max_size m, the cell also has a box of sqrt(s * m) by sqrt(s * m) pixels. Source: Liu et al.,
    SSD, arXiv:1512.02325.

    Args:
        input (Variable): feature map [N, C, H, W], float32 or float64. Only its extents are used.
        image (Variable): images [N, C, height, width]. Only their extents are used.
        min_sizes (list): at least one size above 0, in pixels.
        max_sizes (list, optional): for each of ``min_sizes``, a larger size. None, an empty list or a first entry of 0:
            no max_sizes.
        aspect_ratios (list): ratios of width to height. Default [1.0].
        variance (list): 4 numbers above 0, returned for each box. Default [0.1, 0.1, 0.2, 0.2].
        flip (bool): adds 1 / r for each aspect ratio r. Default False.
        clip (bool): moves sides outside of the image to its border. Default False.
        steps (list): width and height of a cell in pixels. If one is 0, both are computed as the size of the image
            divided by the size of the map.
        offset (float): position of the centers of the boxes in a cell, from 0 to 1. Default 0.5.
        name (str, optional): prefix of the outputs' names.
        min_max_aspect_ratios_order (bool): places the box of the max_size second instead of last. Default False.

    Returns:
        tuple: boxes [H, W, boxes of a cell, 4] - left, top, right, bottom in fractions of the image's sides - and
        variances of the same shape.

    Raises:
        TypeError: an argument is not a Variable of a supported dtype, or not a list.
        ValueError: ``steps`` does not have two elements.
        EnforceNotMet: sizes or variances are invalid.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> features = fluid.data("features", [None, 8, 4, 5], "float32")
        >>> image = fluid.data("image", [None, 3, 32, 40], "float32")
        >>> boxes, variances = fluid.layers.prior_box(features, image, [4.0], [8.0], [2.0], flip=True)
        >>> boxes.shape
        (4, 5, 4, 4)
    """
    check.operand(input, "input", "prior_box")
    check.variable(image, "image", "prior_box")
    step_w, step_h = _pair(steps, "steps", "prior_box")
    attrs = {"min_sizes": _floats(min_sizes, "min_sizes", "prior_box"),
             "aspect_ratios": _floats(aspect_ratios, "aspect_ratios", "prior_box"), "variances": variance, "flip": flip,
             "clip": clip, "step_w": step_w, "step_h": step_h, "offset": offset,
             "min_max_aspect_ratios_order": min_max_aspect_ratios_order}
    if max_sizes is not None:
        sizes = _floats(max_sizes, "max_sizes", "prior_box")
        if sizes and sizes[0] > 0:
            attrs["max_sizes"] = sizes
    boxes, variances = check.several("prior_box", {"Input": input, "Image": image}, attrs,
                                     {"Boxes": input.dtype, "Variances": input.dtype}, name=name, stop_gradient=True)
    return boxes, variances


def density_prior_box(input: Variable, image: Variable, densities: Sequence[int] | None = None,
                      fixed_sizes: Sequence[float] | None = None, fixed_ratios: Sequence[float] | None = None,
                      variance: Sequence[float] = [0.1, 0.1, 0.2, 0.2], clip: bool = False,  # noqa: B006
                      steps: Sequence[float] = [0.0, 0.0], offset: float = 0.5, flatten_to_2d: bool = False,  # noqa: B006
                      name: str | None = None) -> tuple[Variable, Variable]:
    """Creates a grid of prior boxes within each cell of a feature map.

    For each fixed size s with density d and each ratio r, a cell has d by d evenly spaced boxes of s * sqrt(r) by s /
    sqrt(r) pixels. Source: Zhang et al., FaceBoxes, arXiv:1708.05234.

    Args:
        input (Variable): feature map [N, C, H, W], float32 or float64. Only its extents are used.
        image (Variable): images [N, C, height, width]. Only their extents are used.
        densities (list): for each of ``fixed_sizes``, the number of boxes along a side of a cell, above 0.
        fixed_sizes (list): sizes above 0, in pixels.
        fixed_ratios (list): ratios of width to height, above 0.
        variance (list): 4 numbers above 0, returned for each box. Default [0.1, 0.1, 0.2, 0.2].
        clip (bool): moves sides outside of the image to its border. Default False.
        steps (list): width and height of a cell in pixels. If one is 0, both are computed as the size of the image
            divided by the size of the map.
        offset (float): position of the centers of the boxes in a cell, from 0 to 1. Default 0.5.
        flatten_to_2d (bool): the results have shape [boxes, 4]. Default False.
        name (str, optional): prefix of the outputs' names.

    Returns:
        tuple: boxes [H, W, boxes of a cell, 4] - left, top, right, bottom in fractions of the image's sides - and
        variances of the same shape.

    Raises:
        TypeError: an argument is not a Variable of a supported dtype, or not a list.
        ValueError: ``steps`` does not have two elements, or ``densities`` and ``fixed_sizes`` differ in length.
        EnforceNotMet: a number is not above 0.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> features = fluid.data("features", [None, 8, 4, 5], "float32")
        >>> image = fluid.data("image", [None, 3, 32, 40], "float32")
        >>> boxes, variances = fluid.layers.density_prior_box(features, image, [2, 1], [4.0, 8.0], [1.0])
        >>> boxes.shape
        (4, 5, 5, 4)
    """
    layer = "density_prior_box"
    check.operand(input, "input", layer)
    check.variable(image, "image", layer)
    check.of_type(densities, "densities", layer, (list, tuple))
    sizes, ratios = _floats(fixed_sizes, "fixed_sizes", layer), _floats(fixed_ratios, "fixed_ratios", layer)
    if len(densities or ()) != len(sizes):
        raise InvalidValue("%s: densities must have one entry for each of the %d fixed_sizes, got %r"
                           % (layer, len(sizes), densities))
    step_w, step_h = _pair(steps, "steps", layer)
    attrs = {"densities": [int(d) for d in densities or ()], "fixed_sizes": sizes, "fixed_ratios": ratios,
             "variances": variance, "clip": clip, "step_w": step_w, "step_h": step_h, "offset": offset,
             "flatten_to_2d": flatten_to_2d}
    boxes, variances = check.several(layer, {"Input": input, "Image": image}, attrs,
                                     {"Boxes": input.dtype, "Variances": input.dtype}, name=name, stop_gradient=True)
    return boxes, variances


def anchor_generator(input: Variable, anchor_sizes: float | Sequence[float] | None = None,
                     aspect_ratios: float | Sequence[float] | None = None,
                     variance: Sequence[float] = [0.1, 0.1, 0.2, 0.2],  # noqa: B006
                     stride: Sequence[float] | None = None, offset: float = 0.5,
                     name: str | None = None) -> tuple[Variable, Variable]:
    """Creates the anchors of Faster R-CNN: boxes in pixels around the cells of a feature map, one for each ratio and
    size.

    Source: Ren et al., Faster R-CNN, arXiv:1506.01497.

    Args:
        input (Variable): feature map [N, C, H, W], float32 or float64. Only its extents are used.
        anchor_sizes (float|list): sizes above 0, in pixels of the image: the width and height of an anchor with ratio
            1.
        aspect_ratios (float|list): ratios of height to width.
        variance (list): 4 numbers above 0, returned for each box. Default [0.1, 0.1, 0.2, 0.2].
        stride (list): width and height of a cell in pixels, above 0.
        offset (float): position of the centers of the anchors between the first and the last pixel of a cell. Default
            0.5.
        name (str, optional): prefix of the outputs' names.

    Returns:
        tuple: anchors [H, W, ratios * sizes, 4] - left, top, right, bottom in pixels - and variances of the same shape.

    Raises:
        TypeError: an argument is not a Variable of a supported dtype.
        ValueError: ``stride`` does not have two elements.
        EnforceNotMet: a number is not above 0.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> features = fluid.data("features", [None, 8, 4, 5], "float32")
        >>> anchors, variances = fluid.layers.anchor_generator(features, [32.0, 64.0], [0.5, 1.0], stride=[16.0, 16.0])
        >>> anchors.shape
        (4, 5, 4, 4)
    """
    check.operand(input, "input", "anchor_generator")
    cell = _pair(stride, "stride", "anchor_generator")
    sizes = [anchor_sizes] if isinstance(anchor_sizes, (int, float)) else anchor_sizes
    ratios = [aspect_ratios] if isinstance(aspect_ratios, (int, float)) else aspect_ratios
    attrs = {"anchor_sizes": _floats(sizes, "anchor_sizes", "anchor_generator"),
             "aspect_ratios": _floats(ratios, "aspect_ratios", "anchor_generator"), "variances": variance,
             "stride": cell, "offset": offset}
    outs: dict[str, DType] = {"Anchors": input.dtype, "Variances": input.dtype}
    anchors, variances = check.several("anchor_generator", {"Input": input}, attrs, outs, name=name, stop_gradient=True)
    return anchors, variances


explain(globals())
