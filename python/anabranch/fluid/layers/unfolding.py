"""Layers that extract the windows of images as columns or as rows of sequences."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import InvalidValue, Violated
from ..explained import explain
from . import check

if TYPE_CHECKING:
    from ..framework import Variable

__all__ = ["unfold", "im2sequence"]


def _pair(value: int | Sequence[int], argument: str) -> list[int]:
    if isinstance(value, int):
        return [value, value]
    if not (isinstance(value, list) and len(value) == 2 and all(isinstance(v, int) for v in value)):
        raise Violated("unfold: %s must be an int or a list of 2 ints, got %r" % (argument, value))
    return value


def _paddings(value: int | Sequence[int]) -> list[int]:
    """Converts any accepted form to [top, left, bottom, right]."""
    if isinstance(value, int):
        return [value] * 4
    if not isinstance(value, list) or len(value) not in (2, 4):
        raise InvalidValue("unfold: paddings must be an int or a list of 2 or 4 ints, got %r" % (value,))
    return value * 2 if len(value) == 2 else value


def unfold(x: Variable, kernel_sizes: int | Sequence[int], strides: int | Sequence[int] = 1,
           paddings: int | Sequence[int] = 0, dilations: int | Sequence[int] = 1, name: str | None = None) -> Variable:
    """Extracts the windows of images as columns.

    out[n, (c kh + i) kw + j, l] is the element (i, j) of window l of channel c. Windows are ordered from left to right,
    then from top to bottom.

    Args:
        x (Variable): [N, C, H, W], float32 or float64.
        kernel_sizes (int|list): size of the window, [kh, kw], at least 1.
        strides (int|list): distance between windows, downwards and to the right. Default 1.
        paddings (int|list): zeros around the image: [height, width] or [top, left, bottom, right]. Default 0.
        dilations (int|list): distance between the elements of a window, downwards and to the right. Default 1.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: [N, C kh kw, L], where L is the number of windows.

    Raises:
        TypeError: ``x`` has the wrong type or dtype.
        ValueError: ``paddings`` has the wrong length.
        AssertionError: ``x`` does not have 4 axes, or a list does not have two numbers.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.unfold(fluid.data("x", [None, 3, 6, 6], "float32"), kernel_sizes=[3, 3], strides=3).shape
        (-1, 27, 4)
    """
    check.operand(x, "x", "unfold")
    if len(x.shape) != 4:
        raise Violated("unfold: x must have 4 axes, got shape %s" % (tuple(x.shape),))
    return check.one_op("unfold", {"X": x}, {
        "kernel_sizes": _pair(kernel_sizes, "kernel_sizes"), "strides": _pair(strides, "strides"),
        "paddings": _paddings(paddings), "dilations": _pair(dilations, "dilations")}, name=name, out="Y")


def _two(value: int | Sequence[int]) -> list[int]:
    return [value, value] if isinstance(value, int) else list(value)


def im2sequence(input: Variable, filter_size: int | Sequence[int] = 1, stride: int | Sequence[int] = 1,
                padding: int | Sequence[int] = 0, input_image_size: Variable | None = None,
                out_stride: int | Sequence[int] = 1, name: str | None = None) -> Variable:
    """Extracts the windows of images as rows of sequences. Each image is a sequence of its windows, from left to right,
    then from top to bottom.

    A row contains a window channel by channel, row by row.

    Args:
        input (Variable): [N, C, H, W], float32.
        filter_size (int|list): height and width of a window. Default 1.
        stride (int|list): distance between windows, downwards and to the right. Default 1.
        padding (int|list): zeros around the image: [height, width] or [top, left, bottom, right]. Default 0.
        input_image_size (Variable, optional): [N, 2], float32: original height and width of each image, before layers
            reduced it by the factor ``out_stride``. Windows outside of this size are omitted.
        out_stride (int|list): reduction factor, downwards and to the right. Used only with ``input_image_size``.
            Default 1.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: [windows, C * height * width of a window], a sequence for each image.

    Raises:
        TypeError: ``input`` has the wrong type or dtype.
        EnforceNotMet: ``input`` does not have 4 axes, or a list has the wrong length.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> images = fluid.data("images", [None, 3, 32, 100], "float32")
        >>> fluid.layers.im2sequence(images, filter_size=[32, 4], stride=[1, 4]).shape
        (-1, 384)
    """
    check.operand(input, "input", "im2sequence")
    padding = _two(padding)
    attrs = {"kernels": _two(filter_size), "strides": _two(stride),
             "paddings": padding * 2 if len(padding) == 2 else padding}
    inputs = {"X": input}
    if input_image_size is not None:
        inputs["Y"] = input_image_size
        attrs["out_stride"] = _two(out_stride)
    return check.one_op("im2sequence", inputs, attrs, name=name)


explain(globals())
