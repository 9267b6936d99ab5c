"""Layers that pool regions of interest into bins."""
from __future__ import annotations

from typing import TYPE_CHECKING

from ..explained import explain
from . import check
from .check import one_op

if TYPE_CHECKING:
    from ..framework import Variable

__all__ = ["roi_pool", "roi_align", "psroi_pool", "prroi_pool", "roi_perspective_transform"]


def roi_pool(input: Variable, rois: Variable, pooled_height: int = 1, pooled_width: int = 1,
             spatial_scale: float = 1.0, rois_lod: Variable | None = None) -> Variable:
    """Computes the maximum of the pixels in each bin of a region.

    The sides of a region are multiplied by ``spatial_scale`` and rounded to pixels of ``input``. The region is then
    divided into ``pooled_height`` x ``pooled_width`` bins. The result of a bin without pixels is 0. Source: Girshick,
    Fast R-CNN, arXiv:1504.08083.

    Args:
        input (Variable): feature maps [N, C, H, W], float32 or float64.
        rois (Variable): [R, 4], dtype of ``input``: left, top, right, bottom in pixels of the image, with a sequence
            for each image.
        pooled_height (int): number of rows of bins. Default 1.
        pooled_width (int): number of columns of bins. Default 1.
        spatial_scale (float): number of pixels of ``input`` per pixel of the image. Default 1.0.
        rois_lod (Variable, optional): [N + 1], int64: offsets of the sequences, if ``rois`` has none.

    Returns:
        Variable: [R, C, pooled_height, pooled_width].

    Raises:
        TypeError: an argument is not a Variable of a supported dtype.
        EnforceNotMet: shapes do not match, or the sequences do not match at run time.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> maps, rois = fluid.data("maps", [None, 8, 9, 9], "float32"), fluid.data("rois", [None, 4], "float32", 1)
        >>> fluid.layers.roi_pool(maps, rois, 3, 2, 0.25).shape
        (-1, 8, 3, 2)
    """
    check.operand(input, "input", "roi_pool")
    check.operand(rois, "rois", "roi_pool")
    attrs = {"pooled_height": pooled_height, "pooled_width": pooled_width, "spatial_scale": spatial_scale}
    out, _ = check.several("roi_pool", {"X": input, "ROIs": rois, "RoisLod": rois_lod}, attrs,
                           {"Out": input.dtype, "Argmax": "int32"})
    return out


def roi_align(input: Variable, rois: Variable, pooled_height: int = 1, pooled_width: int = 1,
              spatial_scale: float = 1.0, sampling_ratio: int = -1, name: str | None = None,
              rois_lod: Variable | None = None) -> Variable:
    """Computes the mean of samples in each bin of a region. Each sample is interpolated from the four nearest pixels.

    No coordinate is rounded: a region is multiplied by ``spatial_scale`` and divided into ``pooled_height`` x
    ``pooled_width`` bins. Each bin has ``sampling_ratio`` x ``sampling_ratio`` evenly spaced samples. Source: He et
    al., Mask R-CNN, arXiv:1703.06870.

    Args:
        input (Variable): feature maps [N, C, H, W], float32 or float64.
        rois (Variable): [R, 4], dtype of ``input``: left, top, right, bottom in pixels of the image, with a sequence
            for each image.
        pooled_height (int): number of rows of bins. Default 1.
        pooled_width (int): number of columns of bins. Default 1.
        spatial_scale (float): number of pixels of ``input`` per pixel of the image. Default 1.0.
        sampling_ratio (int): number of samples of a bin along each axis. 0 or below: the extent of the bin in pixels,
            rounded up. Default -1.
        name (str, optional): prefix of the output's name.
        rois_lod (Variable, optional): [N + 1], int64: offsets of the sequences, if ``rois`` has none.

    Returns:
        Variable: [R, C, pooled_height, pooled_width].

    Raises:
        TypeError: an argument is not a Variable of a supported dtype.
        EnforceNotMet: shapes do not match, or the sequences do not match at run time.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> maps, rois = fluid.data("maps", [None, 8, 9, 9], "float32"), fluid.data("rois", [None, 4], "float32", 1)
        >>> fluid.layers.roi_align(maps, rois, 7, 7, 0.25, sampling_ratio=2).shape
        (-1, 8, 7, 7)
    """
    check.operand(input, "input", "roi_align")
    check.operand(rois, "rois", "roi_align")
    attrs = {"pooled_height": pooled_height, "pooled_width": pooled_width, "spatial_scale": spatial_scale,
             "sampling_ratio": sampling_ratio}
    return one_op("roi_align", {"X": input, "ROIs": rois, "RoisLod": rois_lod}, attrs, name=name)


def psroi_pool(input: Variable, rois: Variable, output_channels: int, spatial_scale: float, pooled_height: int,
               pooled_width: int, name: str | None = None) -> Variable:
    """Computes the mean of the pixels in each bin of a region, with separate channels for each bin.

    Bin (i, j) of output channel c reads channel (c * pooled_height + i) * pooled_width + j of ``input``. The result of
    a bin without pixels is 0. Source: Dai et al., R-FCN, arXiv:1605.06409.

    Args:
        input (Variable): [N, output_channels * pooled_height * pooled_width, H, W], float32 or float64.
        rois (Variable): [R, 4], dtype of ``input``: left, top, right, bottom in pixels of the image, with a sequence
            for each image.
        output_channels (int): number of channels of the result.
        spatial_scale (float): number of pixels of ``input`` per pixel of the image.
        pooled_height (int): number of rows of bins.
        pooled_width (int): number of columns of bins.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: [R, output_channels, pooled_height, pooled_width].

    Raises:
        TypeError: an argument has the wrong type or dtype.
        EnforceNotMet: shapes do not match, or the sequences do not match at run time.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> maps, rois = fluid.data("maps", [None, 12, 9, 9], "float32"), fluid.data("rois", [None, 4], "float32", 1)
        >>> fluid.layers.psroi_pool(maps, rois, 2, 0.25, 3, 2).shape
        (-1, 2, 3, 2)
    """
    check.operand(input, "input", "psroi_pool")
    check.operand(rois, "rois", "psroi_pool")
    check.of_type(output_channels, "output_channels", "psroi_pool", int)
    check.of_type(spatial_scale, "spatial_scale", "psroi_pool", float)
    check.of_type(pooled_height, "pooled_height", "psroi_pool", int)
    check.of_type(pooled_width, "pooled_width", "psroi_pool", int)
    attrs = {"output_channels": output_channels, "spatial_scale": spatial_scale, "pooled_height": pooled_height,
             "pooled_width": pooled_width}
    return one_op("psroi_pool", {"X": input, "ROIs": rois}, attrs, name=name)


def prroi_pool(input: Variable, rois: Variable, spatial_scale: float = 1.0, pooled_height: int = 1,
               pooled_width: int = 1, batch_roi_nums: Variable | None = None, name: str | None = None) -> Variable:
    """Computes the exact mean over each bin of a region. Between pixels, the values are interpolated bilinearly.

    The layer also has a gradient with respect to ``rois``. Values outside of the image are 0, and the result of a bin
    without an area is 0. Source: Jiang et al., arXiv:1807.11590.

    Args:
        input (Variable): feature maps [N, C, H, W], float32 or float64.
        rois (Variable): [R, 4], dtype of ``input``: left, top, right, bottom in pixels of the image, with a sequence
            for each image.
        spatial_scale (float): number of pixels of ``input`` per pixel of the image. Default 1.0.
        pooled_height (int): number of rows of bins. Default 1.
        pooled_width (int): number of columns of bins. Default 1.
        batch_roi_nums (Variable, optional): [N], int64: number of regions of each image, if ``rois`` has no sequences.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: [R, C, pooled_height, pooled_width].

    Raises:
        TypeError: an argument has the wrong type or dtype.
        EnforceNotMet: shapes do not match, or the sequences do not match at run time.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> maps, rois = fluid.data("maps", [None, 8, 9, 9], "float32"), fluid.data("rois", [None, 4], "float32", 1)
        >>> fluid.layers.prroi_pool(maps, rois, 0.25, 3, 2).shape
        (-1, 8, 3, 2)
    """
    check.operand(input, "input", "prroi_pool")
    check.operand(rois, "rois", "prroi_pool")
    check.of_type(spatial_scale, "spatial_scale", "prroi_pool", float)
    check.of_type(pooled_height, "pooled_height", "prroi_pool", int)
    check.of_type(pooled_width, "pooled_width", "prroi_pool", int)
    attrs = {"spatial_scale": spatial_scale, "pooled_height": pooled_height, "pooled_width": pooled_width}
    return one_op("prroi_pool", {"X": input, "ROIs": rois, "BatchRoINums": batch_roi_nums}, attrs, name=name)


def roi_perspective_transform(input: Variable, rois: Variable, transformed_height: int, transformed_width: int,
                              spatial_scale: float = 1.0,
                              name: str | None = None) -> tuple[Variable, Variable, Variable]:
    """Transforms quadrangles of images, such as lines of text, to rectangles.

    Each pixel of a rectangle is interpolated from the four nearest pixels of ``input``. It is 0 outside of the
    quadrangle and of the image. Source: Sun et al., TextNet, arXiv:1812.09900.

    Args:
        input (Variable): feature maps [N, C, H, W], float32.
        rois (Variable): [R, 8], dtype of ``input``: x and y of the four corners, clockwise from the top left, in pixels
            of the image, with a sequence for each image.
        transformed_height (int): number of rows of the rectangles.
        transformed_width (int): number of columns of the rectangles. Narrow quadrangles do not fill all of them.
        spatial_scale (float): number of pixels of ``input`` per pixel of the image. Default 1.0.
        name (str, optional): prefix of the outputs' names.

    Returns:
        tuple: the rectangles [R, C, transformed_height, transformed_width]; masks [R, 1, transformed_height,
        transformed_width], int32, 1 inside the region; and matrices [R, 9] that map (column, row, 1) of a rectangle to
        (x * w, y * w, w) of ``input``.

    Raises:
        TypeError: an argument has the wrong type or dtype.
        EnforceNotMet: shapes do not match, or the sequences do not match at run time.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> maps, rois = fluid.data("maps", [None, 8, 9, 9], "float32"), fluid.data("rois", [None, 8], "float32", 1)
        >>> out, mask, matrix = fluid.layers.roi_perspective_transform(maps, rois, 4, 12)
        >>> out.shape, mask.shape, matrix.shape
        ((-1, 8, 4, 12), (-1, 1, 4, 12), (-1, 9))
    """
    check.operand(input, "input", "roi_perspective_transform")
    check.operand(rois, "rois", "roi_perspective_transform")
    check.of_type(transformed_height, "transformed_height", "roi_perspective_transform", int)
    check.of_type(transformed_width, "transformed_width", "roi_perspective_transform", int)
    check.of_type(spatial_scale, "spatial_scale", "roi_perspective_transform", float)
    attrs = {"transformed_height": transformed_height, "transformed_width": transformed_width,
             "spatial_scale": spatial_scale}
    out, mask, matrix, _, _ = check.several(
        "roi_perspective_transform", {"X": input, "ROIs": rois}, attrs,
        {"Out": input.dtype, "Mask": "int32", "TransformMatrix": input.dtype, "Out2InIdx": "int32",
         "Out2InWeights": input.dtype}, name=name)
    return out, mask, matrix


explain(globals())
