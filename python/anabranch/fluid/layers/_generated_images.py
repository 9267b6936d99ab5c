"""Layers that move elements of images between channels, pixels and frames, or sample images.

Written by tools/generate_layers.py from the schemas of the operators.
"""
from __future__ import annotations

from ..explained import explain
from ..framework import Variable
from . import check
from .check import one_op

__all__ = [
    "grid_sampler", "pixel_shuffle", "space_to_depth", "shuffle_channel", "temporal_shift",
]


def grid_sampler(x: Variable, grid: Variable, name: str | None = None) -> Variable:
    """Samples images at positions: out[n, c, h, w] is x[n, c] at the position grid[n, h, w], interpolated between the
    four pixels around it. Pixels outside the image count as 0.

    Jaderberg et al., Spatial transformer networks, NIPS 2015, arXiv:1506.02025.

    Args:
        x (Variable): [N, C, H, W], float32 or float64.
        grid (Variable): [N, H, W, 2], dtype of x: column and row of each position, from -1 (first) to 1 (last).
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape and dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 3, 8, 8], "float32")
        >>> grid = fluid.data("grid", [None, 8, 8, 2], "float32")
        >>> fluid.layers.grid_sampler(x, grid).shape
        (-1, 3, 8, 8)
    """
    check.operand(x, "x", "grid_sampler")
    check.operand(grid, "grid", "grid_sampler")
    return one_op("grid_sampler", {"X": x, "Grid": grid}, name=name, out="Output")


def pixel_shuffle(x: Variable, upscale_factor: int) -> Variable:
    """Moves channels into pixels: out[n, c, h r + i, w r + j] = x[n, c r^2 + i r + j, h, w] with r = upscale_factor.

    Shi et al., CVPR 2016, arXiv:1609.05158.

    Args:
        x (Variable): [N, C, H, W], float32 or float64.
        upscale_factor (int): factor r by which height and width grow.

    Returns:
        Variable: [N, C / r^2, r H, r W], dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 9, 4, 4], "float32")
        >>> fluid.layers.pixel_shuffle(x, upscale_factor=3).shape
        (-1, 1, 12, 12)
    """
    check.operand(x, "x", "pixel_shuffle")
    return one_op("pixel_shuffle", {"X": x}, {"upscale_factor": upscale_factor})


def space_to_depth(x: Variable, blocksize: int, name: str | None = None) -> Variable:
    """Moves blocks of pixels into channels. With b = blocksize, out has the elements of a tensor [N, C / b^2, b H, b
    W] in which pixel (b h + i, b w + j) of channel c is x[n, (b i + j) C / b^2 + c, h, w].

    Redmon & Farhadi, YOLO9000, CVPR 2017, arXiv:1612.08242.

    Args:
        x (Variable): [N, C, H, W], int32, int64, float32 or float64.
        blocksize (int): divisor b of height and width.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: [N, C b^2, H / b, W / b], dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4, 6, 6], "float32")
        >>> fluid.layers.space_to_depth(x, blocksize=2).shape
        (-1, 16, 3, 3)
    """
    check.operand(x, "x", "space_to_depth")
    return one_op("space_to_depth", {"X": x}, {"blocksize": blocksize}, name=name)


def shuffle_channel(x: Variable, group: int, name: str | None = None) -> Variable:
    """Interleaves the channels of g groups: out[n, m g + k] = x[n, k C / g + m] with g = group.

    Zhang et al., ShuffleNet, CVPR 2018, arXiv:1707.01083.

    Args:
        x (Variable): [N, C, H, W], float32 or float64.
        group (int): number of groups g; it must divide the number of channels.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape and dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 6, 4, 4], "float32")
        >>> fluid.layers.shuffle_channel(x, group=2).shape
        (-1, 6, 4, 4)
    """
    check.operand(x, "x", "shuffle_channel")
    return one_op("shuffle_channel", {"X": x}, {"group": group}, name=name)


def temporal_shift(x: Variable, seg_num: int, shift_ratio: float = 0.25, name: str | None = None) -> Variable:
    """Shifts channels along time: the first shift_ratio C channels of each frame come from the previous frame, and
    the same number after them from the next frame. Frames outside the segment count as 0.

    Lin et al., TSM, ICCV 2019, arXiv:1811.08383.

    Args:
        x (Variable): [N T, C, H, W], float32 or float64: N segments of T frames.
        seg_num (int): number of frames T in a segment, at least 1.
        shift_ratio (float): fraction of the channels that are shifted in each direction, above 0 and below 0.5.
            Default 0.25.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape and dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4, 3, 3], "float32")
        >>> fluid.layers.temporal_shift(x, seg_num=2).shape
        (-1, 4, 3, 3)
    """
    check.operand(x, "x", "temporal_shift")
    return one_op("temporal_shift", {"X": x}, {"seg_num": seg_num, "shift_ratio": shift_ratio}, name=name)


explain(globals())
