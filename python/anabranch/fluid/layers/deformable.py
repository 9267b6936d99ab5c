"""Deformable convolutions and pooling."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import InvalidValue
from ..explained import explain
from ..initializer import Normal
from ..layer_helper import LayerHelper
from . import check

if TYPE_CHECKING:
    from ..framework import Variable
    from ..hints import Attr

__all__ = ["deformable_conv", "deformable_roi_pooling"]


def deformable_conv(input: Variable, offset: Variable, mask: Variable | None, num_filters: int,
                    filter_size: int | Sequence[int], stride: int | Sequence[int] = 1,
                    padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, groups: int | None = None,
                    deformable_groups: int | None = None, im2col_step: int | None = None, param_attr: Attr = None,
                    bias_attr: Attr = None, modulated: bool = True, name: str | None = None) -> Variable:
    """Deformable convolution of images: ``offset`` moves the position that each tap of the filter reads. Values between
    pixels are interpolated.

    out(o, p) = bias(o) + the sum over channels c and taps k of w(o, c, k) * input(c, p + position of k + offset(k, p))
    * mask(k, p). Sources: Dai et al., arXiv:1703.06211; Zhu et al., arXiv:1811.11168.

    Args:
        input (Variable): [N, C, H, W], float32 or float64.
        offset (Variable): [N, 2 * deformable_groups * K * K, H_out, W_out], dtype of ``input``: for each tap, its
            displacement downwards and to the right in pixels.
        mask (Variable): [N, deformable_groups * K * K, H_out, W_out], dtype of ``input``: factor of each tap. None if
            ``modulated`` is False.
        num_filters (int): number of output channels.
        filter_size (int|list|tuple): size of the filter: K, or [height, width].
        stride (int|list|tuple): stride of the filter. Default 1.
        padding (int|list|tuple): padding with zeros. Default 0.
        dilation (int|list|tuple): distance between the filter's taps. Default 1.
        groups (int, optional): number of groups of input and output channels. Default 1.
        deformable_groups (int, optional): number of groups of input channels, each with its own offsets. Default 1.
        im2col_step (int, optional): ignored. In Fluid, the number of images that are processed at once.
        param_attr (ParamAttr, optional): attributes of the filter, [num_filters, C / groups, K, K]. Default
            initializer: Gaussian with deviation sqrt(2 / (K * K * C)).
        bias_attr (ParamAttr|bool, optional): attributes of the bias, [num_filters]. False means no bias.
        modulated (bool): uses ``mask``. Default True.
        name (str, optional): prefix of the generated names.

    Returns:
        Variable: [N, num_filters, H_out, W_out].

    Raises:
        TypeError: an argument is not a Variable of a supported dtype.
        ValueError: another argument has an invalid value, or the number of channels is not divisible by ``groups``.
        EnforceNotMet: ``offset`` or ``mask`` has the wrong shape.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> image = fluid.data("image", [None, 4, 8, 8], "float32")
        >>> offset, mask = fluid.data("o", [None, 18, 8, 8], "float32"), fluid.data("m", [None, 9, 8, 8], "float32")
        >>> fluid.layers.deformable_conv(image, offset, mask, num_filters=6, filter_size=3, padding=1).shape
        (-1, 6, 8, 8)
    """
    op = "deformable_conv" if modulated else "deformable_conv_v1"
    check.operand(input, "input", "deformable_conv")
    check.operand(offset, "offset", "deformable_conv")
    if modulated or mask is not None:
        check.variable(mask, "mask", "deformable_conv", check.of_kernels("deformable_conv"))
    check.of_type(num_filters, "num_filters", "deformable_conv", int)
    channels, parts = input.shape[1], 1 if groups is None else groups
    if channels <= 0 or channels % parts != 0:
        raise InvalidValue("deformable_conv: groups (%r) must divide the channels of input, got shape %s"
                           % (groups, list(input.shape)))
    taps = check.ints(filter_size, 2, "filter_size", "deformable_conv")
    helper = LayerHelper("deformable_conv", name=name, param_attr=param_attr, bias_attr=bias_attr)
    weight = helper.create_parameter(
        attr=helper.param_attr, shape=[num_filters, channels // parts, *taps], dtype=input.dtype,
        default_initializer=Normal(0.0, (2.0 / (taps[0] * taps[1] * channels)) ** 0.5, 0))
    out = helper.create_variable_for_type_inference(input.dtype)
    inputs = {"Input": input, "Offset": offset, "Filter": weight}
    if modulated:
        inputs["Mask"] = mask
    helper.append_op(type=op, inputs=inputs, outputs={"Output": out}, attrs={
        "strides": check.ints(stride, 2, "stride", "deformable_conv"),
        "paddings": check.ints(padding, 2, "padding", "deformable_conv"),
        "dilations": check.ints(dilation, 2, "dilation", "deformable_conv"),
        "groups": parts, "deformable_groups": 1 if deformable_groups is None else deformable_groups,
        "im2col_step": 64 if im2col_step is None else im2col_step})
    return helper.append_bias_op(out, dim_start=1, dim_end=2)


def deformable_roi_pooling(input: Variable, rois: Variable, trans: Variable, no_trans: bool = False,
                           spatial_scale: float = 1.0, group_size: Sequence[int] = [1, 1],  # noqa: B006
                           pooled_height: int = 1, pooled_width: int = 1, part_size: Sequence[int] | None = None,
                           sample_per_part: int = 1, trans_std: float = 0.1, position_sensitive: bool = False,
                           name: str | None = None) -> Variable:
    """Pools regions into bins. Each bin is the mean of samples, and ``trans`` moves the bins.

    Source: Dai et al., arXiv:1703.06211.

    Args:
        input (Variable): feature maps [N, C, H, W], float32 or float64.
        rois (Variable): [R, 4], dtype of ``input``: left, top, right, bottom in pixels of the image, with a sequence
            for each image.
        trans (Variable): [R, 2 classes, height and width of part_size], dtype of ``input``: displacement of the bins of
            each class of channels to the right and downwards, as a fraction of the region.
        no_trans (bool): ignores ``trans``. Default False.
        spatial_scale (float): number of pixels of ``input`` per pixel of the image. Default 1.0.
        group_size (list|tuple): rows and columns of the grid of channel groups. A bin reads the group at its position
            in the grid. Default [1, 1].
        pooled_height (int): number of rows of bins. Default 1.
        pooled_width (int): number of columns of bins. Default 1.
        part_size (list|tuple, optional): rows and columns of ``trans``. Default: [pooled_height, pooled_width].
        sample_per_part (int): number of samples of a bin along each axis. Default 1.
        trans_std (float): factor of ``trans``. Default 0.1.
        position_sensitive (bool): each bin has separate channels: C = channels of the result * pooled_height *
            pooled_width. Default False.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: [R, C, pooled_height, pooled_width]; with ``position_sensitive``
        [R, C / (pooled_height * pooled_width), pooled_height, pooled_width].

    Raises:
        TypeError: an argument is not a Variable of a supported dtype, or ``group_size`` or ``part_size`` has the wrong
            type.
        ValueError: ``group_size`` or ``part_size`` has the wrong length.
        EnforceNotMet: shapes do not match, or the sequences do not match at run time.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> maps, rois = fluid.data("maps", [None, 8, 9, 9], "float32"), fluid.data("rois", [None, 4], "float32", 1)
        >>> trans = fluid.data("trans", [None, 2, 3, 3], "float32")
        >>> fluid.layers.deformable_roi_pooling(maps, rois, trans, pooled_height=3, pooled_width=3).shape
        (-1, 8, 3, 3)
    """
    layer, op = "deformable_roi_pooling", "deformable_psroi_pooling"
    for argument, value in (("input", input), ("rois", rois), ("trans", trans)):
        check.operand(value, argument, layer, op)
    check.of_type(group_size, "group_size", layer, (list, tuple))
    check.of_type(part_size, "part_size", layer, (list, tuple, type(None)))
    if len(group_size) != 2 or (part_size is not None and len(part_size) != 2):
        raise InvalidValue("%s: group_size and part_size must have 2 numbers each, got %r and %r"
                           % (layer, group_size, part_size))
    channels = input.shape[1] // (pooled_height * pooled_width) if position_sensitive else input.shape[1]
    part_size = [pooled_height, pooled_width] if part_size is None else part_size
    attrs = {"no_trans": no_trans, "spatial_scale": spatial_scale, "output_dim": channels,
             "group_size": list(group_size), "pooled_height": pooled_height, "pooled_width": pooled_width,
             "part_size": list(part_size), "sample_per_part": sample_per_part, "trans_std": trans_std}
    out, _ = check.several(op, {"Input": input, "ROIs": rois, "Trans": trans}, attrs,
                           {"Output": input.dtype, "TopCount": "int32"}, name=name)
    return out


explain(globals())
