"""Convolutions over images and volumes."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..errors import InvalidValue
from ..explained import explain
from ..initializer import Normal
from ..layer_helper import LayerHelper
from . import check, windows

if TYPE_CHECKING:
    from ..framework import Variable
    from ..hints import Attr

__all__ = ["conv2d", "conv3d"]


def _convolution(layer, axes, input, num_filters, filter_size, stride, padding, dilation, groups, param_attr, bias_attr,
                 use_cudnn, act, name, data_format):
    """Implements conv2d and conv3d."""
    check.operand(input, "input", layer)
    check.is_bool(use_cudnn, "use_cudnn", layer)
    channels = windows.channels(input, layer, axes, data_format)
    parts = 1 if groups is None else groups
    if parts <= 0 or channels % parts != 0:
        raise InvalidValue("%s: the channels must be divisible by groups, got %d channels and groups %s"
                           % (layer, channels, groups))
    depthwise = axes == 2 and channels == groups and num_filters % channels == 0 and not use_cudnn
    op = "depthwise_conv2d" if depthwise else layer
    helper = LayerHelper(op, input=input, param_attr=param_attr, bias_attr=bias_attr, act=act, name=name,
                         use_cudnn=use_cudnn)
    size = check.ints(filter_size, axes, "filter_size", layer)
    algorithm, paddings = windows.padding(padding, "padding", layer, axes, data_format)
    weight = helper.create_parameter(
        attr=helper.param_attr, shape=[num_filters, int(channels // parts)] + size, dtype=input.dtype,
        default_initializer=Normal(0.0, (2.0 / (math.prod(size) * channels)) ** 0.5, 0))
    out = helper.create_variable_for_type_inference(input.dtype)
    attrs = {"strides": check.ints(stride, axes, "stride", layer), "paddings": paddings,
             "dilations": check.ints(dilation, axes, "dilation", layer), "groups": parts, "use_cudnn": use_cudnn,
             "use_mkldnn": False, "padding_algorithm": algorithm, "data_format": data_format}
    if axes == 2:
        attrs["fuse_relu_before_depthwise_conv"] = False
    helper.append_op(type=op, inputs={"Input": input, "Filter": weight}, outputs={"Output": out}, attrs=attrs)
    return windows.with_bias(helper, out, data_format)


def conv2d(input: Variable, num_filters: int, filter_size: int | Sequence[Any], stride: int | Sequence[Any] = 1,
           padding: int | Sequence[Any] | str = 0, dilation: int | Sequence[Any] = 1, groups: int | None = None,
           param_attr: Attr = None, bias_attr: Attr = None, use_cudnn: bool = True, act: str | None = None,
           name: str | None = None, data_format: str = "NCHW") -> Variable:
    """Convolution of images: out = act(w * x + b).

    H_out = (H + pad_top + pad_bottom - (dilation * (K - 1) + 1)) / stride + 1. W_out is computed in the same way.

    Args:
        input (Variable): [N, C, H, W] or [N, H, W, C], float32 or float64.
        num_filters (int): number of output channels.
        filter_size (int|list|tuple): size of the filter: K, or [height, width].
        stride (int|list|tuple): stride of the filter. Default 1.
        padding (int|list|tuple|str): padding with zeros: one int, two ints ([height, width]), four ints ([top, bottom,
            left, right]), four pairs for the four axes, "SAME" (H_out = ceil(H / stride)) or "VALID" (no padding).
            Default 0.
        dilation (int|list|tuple): distance between the filter's elements. Default 1.
        groups (int, optional): number of groups of input and output channels. Default 1.
        param_attr (ParamAttr, optional): attributes of the filter, [num_filters, C / groups, K, K]. Default
            initializer: Gaussian with deviation sqrt(2 / (K * K * C)).
        bias_attr (ParamAttr|bool, optional): attributes of the bias, [num_filters]. False means no bias.
        use_cudnn (bool): has no effect on the CPU. Default True.
        act (str, optional): activation applied to the result.
        name (str, optional): prefix of the generated names.
        data_format (str): "NCHW" or "NHWC". Default "NCHW".

    Returns:
        Variable: [N, num_filters, H_out, W_out] or [N, H_out, W_out, num_filters].

    Raises:
        TypeError: ``input`` is not a Variable of a float dtype.
        ValueError: another argument has an invalid value, or the number of channels is unknown or not divisible by
            ``groups``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> image = fluid.data("image", [None, 3, 32, 32], "float32")
        >>> fluid.layers.conv2d(image, num_filters=8, filter_size=3, padding=1, act="relu").shape
        (-1, 8, 32, 32)
    """
    return _convolution("conv2d", 2, input, num_filters, filter_size, stride, padding, dilation, groups, param_attr,
                        bias_attr, use_cudnn, act, name, data_format)


def conv3d(input: Variable, num_filters: int, filter_size: int | Sequence[Any], stride: int | Sequence[Any] = 1,
           padding: int | Sequence[Any] | str = 0, dilation: int | Sequence[Any] = 1, groups: int | None = None,
           param_attr: Attr = None, bias_attr: Attr = None, use_cudnn: bool = True, act: str | None = None,
           name: str | None = None, data_format: str = "NCDHW") -> Variable:
    """Convolution of volumes: out = act(w * x + b).

    D_out = (D + pad_front + pad_back - (dilation * (K - 1) + 1)) / stride + 1. H_out and W_out are computed in the
    same way.

    Args:
        input (Variable): [N, C, D, H, W] or [N, D, H, W, C], float32 or float64.
        num_filters (int): number of output channels.
        filter_size (int|list|tuple): size of the filter: K, or [depth, height, width].
        stride (int|list|tuple): stride of the filter. Default 1.
        padding (int|list|tuple|str): padding with zeros: one int, three ints ([depth, height, width]), six ints
            ([front, back, top, bottom, left, right]), five pairs for the five axes, "SAME" (D_out = ceil(D / stride))
            or "VALID" (no padding). Default 0.
        dilation (int|list|tuple): distance between the filter's elements. Default 1.
        groups (int, optional): number of groups of input and output channels. Default 1.
        param_attr (ParamAttr, optional): attributes of the filter, [num_filters, C / groups, K, K, K]. Default
            initializer: Gaussian with deviation sqrt(2 / (K * K * K * C)).
        bias_attr (ParamAttr|bool, optional): attributes of the bias, [num_filters]. False means no bias.
        use_cudnn (bool): has no effect on the CPU. Default True.
        act (str, optional): activation applied to the result.
        name (str, optional): prefix of the generated names.
        data_format (str): "NCDHW" or "NDHWC". Default "NCDHW".

    Returns:
        Variable: [N, num_filters, D_out, H_out, W_out] or [N, D_out, H_out, W_out, num_filters].

    Raises:
        TypeError: ``input`` is not a Variable of a float dtype.
        ValueError: another argument has an invalid value, or the number of channels is unknown or not divisible by
            ``groups``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> scan = fluid.data("scan", [None, 1, 16, 32, 32], "float32")
        >>> fluid.layers.conv3d(scan, num_filters=8, filter_size=3, padding=1, stride=2, act="relu").shape
        (-1, 8, 8, 16, 16)
    """
    return _convolution("conv3d", 3, input, num_filters, filter_size, stride, padding, dilation, groups, param_attr,
                        bias_attr, use_cudnn, act, name, data_format)


explain(globals())
