"""Transposed convolutions over images and volumes."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..errors import InvalidType, InvalidValue
from ..explained import explain
from ..layer_helper import LayerHelper
from . import check, windows

if TYPE_CHECKING:
    from ..framework import Variable
    from ..hints import Attr

__all__ = ["conv2d_transpose", "conv3d_transpose"]


def _transposed_size(input, output_size, stride, paddings, dilation, data_format):
    """Returns the filter size that gives ``output_size``."""
    axes = len(output_size)
    first = 2 if data_format[1] == "C" else 1
    extents = input.shape[first:first + axes]
    pads = [a + b for a, b in zip(paddings[::2], paddings[1::2])] if len(paddings) == 2 * axes else \
        [2 * p for p in paddings]
    return [(output_size[i] - (extent - 1) * stride[i] + pads[i] - 1) // dilation[i] + 1
            for i, extent in enumerate(extents)]


def _transposed(layer, axes, input, num_filters, output_size, filter_size, padding, stride, dilation, groups,
                param_attr, bias_attr, use_cudnn, act, name, data_format):
    """Implements conv2d_transpose and conv3d_transpose."""
    check.is_bool(use_cudnn, "use_cudnn", layer)
    check.variable(input, "input", layer)
    channels = windows.channels(input, layer, axes, data_format)
    depthwise = axes == 2 and channels == groups and num_filters == channels and not use_cudnn
    op = "depthwise_conv2d_transpose" if depthwise else layer
    helper = LayerHelper(op, input=input, param_attr=param_attr, bias_attr=bias_attr, act=act, name=name,
                         use_cudnn=use_cudnn)
    stride, dilation = check.ints(stride, axes, "stride", layer), check.ints(dilation, axes, "dilation", layer)
    algorithm, paddings = windows.padding(padding, "padding", layer, axes, data_format)
    output_size = [] if output_size is None else check.ints(output_size, axes, "output_size", layer)
    if filter_size is not None:
        size = check.ints(filter_size, axes, "filter_size", layer)
    elif output_size:
        size = _transposed_size(input, output_size, stride, paddings, dilation, data_format)
    else:
        raise InvalidValue("%s: filter_size or output_size must be given" % layer)
    parts = 1 if groups is None else groups
    if parts <= 0:
        raise InvalidValue("%s: groups must be positive, got %s" % (layer, parts))
    if isinstance(num_filters, float) and not num_filters.is_integer():
        raise InvalidType("%s: num_filters must be a whole number, got %r" % (layer, num_filters))
    weight = helper.create_parameter(attr=helper.param_attr, shape=[channels, num_filters // parts] + size,
                                     dtype=input.dtype)
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(
        type=op, inputs={"Input": [input], "Filter": [weight]}, outputs={"Output": out},
        attrs={"output_size": output_size, "strides": stride, "paddings": paddings, "padding_algorithm": algorithm,
               "dilations": dilation, "groups": parts, "use_cudnn": use_cudnn,
               "data_format": data_format.replace("D", "")})  # as Fluid writes it, also of volumes
    return windows.with_bias(helper, out, data_format)


def conv2d_transpose(input: Variable, num_filters: int, output_size: int | Sequence[Any] | None = None,
                     filter_size: int | Sequence[Any] | None = None, padding: int | Sequence[Any] | str = 0,
                     stride: int | Sequence[Any] = 1, dilation: int | Sequence[Any] = 1, groups: int | None = None,
                     param_attr: Attr = None, bias_attr: Attr = None, use_cudnn: bool = True, act: str | None = None,
                     name: str | None = None, data_format: str = "NCHW") -> Variable:
    """Transposed convolution, which enlarges images. It computes the gradient of :func:`conv2d` with respect to the
    input.

    H_out = (H - 1) * stride - pad_top - pad_bottom + dilation * (K - 1) + 1; ``output_size`` may add up to stride - 1.
    W_out is computed in the same way.

    Args:
        input (Variable): [N, C, H, W] or [N, H, W, C], float32 or float64.
        num_filters (int): number of output channels.
        output_size (int|list|tuple, optional): size of the output, [H_out, W_out].
        filter_size (int|list|tuple, optional): K. Default: computed from ``output_size``.
        padding (int|list|tuple|str): as for :func:`conv2d`. Default 0.
        stride (int|list|tuple): stride of the convolution. Default 1.
        dilation (int|list|tuple): distance between the filter's elements. Default 1.
        groups (int, optional): number of groups of input and output channels. Default 1.
        param_attr (ParamAttr, optional): attributes of the filter, [C, num_filters / groups, K, K].
        bias_attr (ParamAttr|bool, optional): attributes of the bias, [num_filters]. False means no bias.
        use_cudnn (bool): has no effect on the CPU. Default True.
        act (str, optional): activation applied to the result.
        name (str, optional): prefix of the generated names.
        data_format (str): "NCHW" or "NHWC". Default "NCHW".

    Returns:
        Variable: [N, num_filters, H_out, W_out] or [N, H_out, W_out, num_filters].

    Raises:
        TypeError: ``input`` is not a Variable.
        ValueError: neither ``filter_size`` nor ``output_size`` is given, or another argument has an invalid value.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> image = fluid.data("image", [None, 3, 8, 8], "float32")
        >>> fluid.layers.conv2d_transpose(image, num_filters=2, filter_size=2, stride=2).shape
        (-1, 2, 16, 16)
    """
    return _transposed("conv2d_transpose", 2, input, num_filters, output_size, filter_size, padding, stride, dilation,
                       groups, param_attr, bias_attr, use_cudnn, act, name, data_format)


def conv3d_transpose(input: Variable, num_filters: int, output_size: int | Sequence[Any] | None = None,
                     filter_size: int | Sequence[Any] | None = None, padding: int | Sequence[Any] | str = 0,
                     stride: int | Sequence[Any] = 1, dilation: int | Sequence[Any] = 1, groups: int | None = None,
                     param_attr: Attr = None, bias_attr: Attr = None, use_cudnn: bool = True, act: str | None = None,
                     name: str | None = None, data_format: str = "NCDHW") -> Variable:
    """Transposed convolution, which enlarges volumes. It computes the gradient of :func:`conv3d` with respect to the
    input.

    D_out = (D - 1) * stride - pad_front - pad_back + dilation * (K - 1) + 1; ``output_size`` may add up to stride - 1.
    H_out and W_out are computed in the same way.

    Args:
        input (Variable): [N, C, D, H, W] or [N, D, H, W, C], float32 or float64.
        num_filters (int): number of output channels.
        output_size (int|list|tuple, optional): size of the output, [D_out, H_out, W_out].
        filter_size (int|list|tuple, optional): K. Default: computed from ``output_size``.
        padding (int|list|tuple|str): as for :func:`conv3d`. Default 0.
        stride (int|list|tuple): stride of the convolution. Default 1.
        dilation (int|list|tuple): distance between the filter's elements. Default 1.
        groups (int, optional): number of groups of input and output channels. Default 1.
        param_attr (ParamAttr, optional): attributes of the filter, [C, num_filters / groups, K, K, K].
        bias_attr (ParamAttr|bool, optional): attributes of the bias, [num_filters]. False means no bias.
        use_cudnn (bool): has no effect on the CPU. Default True.
        act (str, optional): activation applied to the result.
        name (str, optional): prefix of the generated names.
        data_format (str): "NCDHW" or "NDHWC". Default "NCDHW".

    Returns:
        Variable: [N, num_filters, D_out, H_out, W_out] or [N, D_out, H_out, W_out, num_filters].

    Raises:
        TypeError: ``input`` is not a Variable.
        ValueError: neither ``filter_size`` nor ``output_size`` is given, or another argument has an invalid value.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> scan = fluid.data("scan", [None, 3, 4, 8, 8], "float32")
        >>> fluid.layers.conv3d_transpose(scan, num_filters=2, filter_size=2, stride=2).shape
        (-1, 2, 8, 16, 16)
    """
    return _transposed("conv3d_transpose", 3, input, num_filters, output_size, filter_size, padding, stride, dilation,
                       groups, param_attr, bias_attr, use_cudnn, act, name, data_format)


explain(globals())
