"""Convolutions and pooling over images."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..errors import InvalidType, InvalidValue
from ..initializer import Normal
from ..layer_helper import LayerHelper
from . import check

if TYPE_CHECKING:
    from ..framework import Variable
    from ..hints import Attr

__all__ = ["conv2d", "conv2d_transpose", "pool2d", "adaptive_pool2d"]


def _channels(input, layer, data_format):
    check.one_of(data_format, "data_format", layer, ("NCHW", "NHWC"))
    if len(input.shape) != 4:
        raise InvalidValue("%s: input must have four axes, got shape %s" % (layer, tuple(input.shape)))
    channels = input.shape[1 if data_format == "NCHW" else 3]
    if channels < 0:
        raise InvalidValue("%s: the number of channels must be known when the program is built, got shape %s"
                           % (layer, tuple(input.shape)))
    return channels


def _padding(padding, argument, layer, data_format):
    """(algorithm, [top, bottom, left, right] or [height, width]) of any accepted form."""
    if isinstance(padding, str):
        algorithm = padding.upper()
        check.one_of(algorithm, argument, layer, ("SAME", "VALID"))
        return algorithm, [0, 0]
    if isinstance(padding, (list, tuple)) and padding and isinstance(padding[0], (list, tuple)):
        pairs = [list(p) for p in padding]
        spatial, others = (pairs[2:], pairs[:2]) if data_format == "NCHW" else (pairs[1:3], [pairs[0], pairs[-1]])
        if len(pairs) != 4 or any(p != [0, 0] for p in others):
            raise InvalidValue("%s: %s must be four pairs, with zeros for batch and channel, got %r"
                               % (layer, argument, padding))
        padding = [extent for pair in spatial for extent in pair]
    if isinstance(padding, (list, tuple)) and len(padding) == 4:
        padding = check.ints(padding, 4, argument, layer)
    else:
        padding = check.ints(padding, 2, argument, layer)
    if len(padding) == 4 and padding[0] == padding[1] and padding[2] == padding[3]:
        padding = [padding[0], padding[2]]
    return "EXPLICIT", padding


def conv2d(input: Variable, num_filters: int, filter_size: int | Sequence[Any], stride: int | Sequence[Any] = 1,
           padding: int | Sequence[Any] | str = 0, dilation: int | Sequence[Any] = 1, groups: int | None = None,
           param_attr: Attr = None, bias_attr: Attr = None, use_cudnn: bool = True, act: str | None = None,
           name: str | None = None, data_format: str = "NCHW") -> Variable:
    """Convolution of images: out = act(w * x + b).

    H_out = (H + pad_top + pad_bottom - (dilation * (K - 1) + 1)) / stride + 1, likewise for W.

    Args:
        input (Variable): [N, C, H, W] or [N, H, W, C], float32 or float64.
        num_filters (int): output channels.
        filter_size (int|list|tuple): K, or [height, width].
        stride (int|list|tuple): Default 1.
        padding (int|list|tuple|str): one, two ([height, width]) or four ([top, bottom, left, right]) ints, four pairs
            for the four axes, "SAME" (H_out = ceil(H / stride)) or "VALID" (none). Default 0.
        dilation (int|list|tuple): distance of the filter's elements. Default 1.
        groups (int, optional): input and output channels are cut in so many parts; 1 by default.
        param_attr (ParamAttr, optional): of the filter, [num_filters, C / groups, K, K], by default Gaussian with
            deviation sqrt(2 / (K * K * C)).
        bias_attr (ParamAttr|bool, optional): of the bias, [num_filters]; False: none.
        use_cudnn (bool): no effect on the CPU. Default True.
        act (str, optional): activation of the result.
        name (str, optional): prefix of the names.
        data_format (str): "NCHW" or "NHWC". Default the first.

    Returns:
        Variable: [N, num_filters, H_out, W_out] or [N, H_out, W_out, num_filters].

    Raises:
        TypeError: ``input`` is no Variable of a float dtype.
        ValueError: a bad value of another argument; unknown channels, or not divisible by ``groups``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> image = fluid.data("image", [None, 3, 32, 32], "float32")
        >>> fluid.layers.conv2d(image, num_filters=8, filter_size=3, padding=1, act="relu").shape
        (-1, 8, 32, 32)
    """
    check.operand(input, "input", "conv2d")
    check.is_bool(use_cudnn, "use_cudnn", "conv2d")
    channels = _channels(input, "conv2d", data_format)
    parts = 1 if groups is None else groups
    if parts <= 0 or channels % parts != 0:
        raise InvalidValue("conv2d: the channels must be divisible by groups, got %d channels and groups %s"
                           % (channels, groups))
    depthwise = channels == groups and num_filters % channels == 0 and not use_cudnn
    op = "depthwise_conv2d" if depthwise else "conv2d"
    helper = LayerHelper(op, input=input, param_attr=param_attr, bias_attr=bias_attr, act=act, name=name,
                         use_cudnn=use_cudnn)
    size = check.ints(filter_size, 2, "filter_size", "conv2d")
    algorithm, paddings = _padding(padding, "padding", "conv2d", data_format)
    weight = helper.create_parameter(
        attr=helper.param_attr, shape=[num_filters, int(channels // parts)] + size, dtype=input.dtype,
        default_initializer=Normal(0.0, (2.0 / (size[0] * size[1] * channels)) ** 0.5, 0))
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(
        type=op, inputs={"Input": input, "Filter": weight}, outputs={"Output": out},
        attrs={"strides": check.ints(stride, 2, "stride", "conv2d"), "paddings": paddings,
               "dilations": check.ints(dilation, 2, "dilation", "conv2d"), "groups": parts, "use_cudnn": use_cudnn,
               "use_mkldnn": False, "fuse_relu_before_depthwise_conv": False, "padding_algorithm": algorithm,
               "data_format": data_format})
    first, last = (1, 2) if data_format == "NCHW" else (3, 4)
    return helper.append_activation(helper.append_bias_op(out, dim_start=first, dim_end=last))


def _transposed_size(input, output_size, stride, paddings, dilation, data_format):
    """The filter that gives ``output_size``."""
    height, width = input.shape[2:4] if data_format == "NCHW" else input.shape[1:3]
    pads = (paddings[0] + paddings[1], paddings[2] + paddings[3]) if len(paddings) == 4 else \
        (2 * paddings[0], 2 * paddings[1])
    return [(output_size[i] - (extent - 1) * stride[i] + pads[i] - 1) // dilation[i] + 1
            for i, extent in enumerate((height, width))]


def conv2d_transpose(input: Variable, num_filters: int, output_size: int | Sequence[Any] | None = None,
                     filter_size: int | Sequence[Any] | None = None, padding: int | Sequence[Any] | str = 0,
                     stride: int | Sequence[Any] = 1, dilation: int | Sequence[Any] = 1, groups: int | None = None,
                     param_attr: Attr = None, bias_attr: Attr = None, use_cudnn: bool = True, act: str | None = None,
                     name: str | None = None, data_format: str = "NCHW") -> Variable:
    """The transpose of a convolution, which enlarges images: what a convolution's gradient is of its input.

    H_out = (H - 1) * stride - pad_top - pad_bottom + dilation * (K - 1) + 1, or up to stride - 1 more as
    ``output_size`` says; likewise for W.

    Args:
        input (Variable): [N, C, H, W] or [N, H, W, C], float32 or float64.
        num_filters (int): output channels.
        output_size (int|list|tuple, optional): [H_out, W_out].
        filter_size (int|list|tuple, optional): K; from ``output_size`` by default.
        padding (int|list|tuple|str): as for :func:`conv2d`. Default 0.
        stride (int|list|tuple): Default 1.
        dilation (int|list|tuple): Default 1.
        groups (int, optional): 1 by default.
        param_attr (ParamAttr, optional): of the filter, [C, num_filters / groups, K, K].
        bias_attr (ParamAttr|bool, optional): of the bias, [num_filters]; False: none.
        use_cudnn (bool): no effect on the CPU. Default True.
        act (str, optional): activation of the result.
        name (str, optional): prefix of the names.
        data_format (str): "NCHW" or "NHWC". Default the first.

    Returns:
        Variable: [N, num_filters, H_out, W_out] or [N, H_out, W_out, num_filters].

    Raises:
        TypeError: ``input`` is no Variable.
        ValueError: neither ``filter_size`` nor ``output_size``; a bad value of another argument.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> image = fluid.data("image", [None, 3, 8, 8], "float32")
        >>> fluid.layers.conv2d_transpose(image, num_filters=2, filter_size=2, stride=2).shape
        (-1, 2, 16, 16)
    """
    layer = "conv2d_transpose"
    check.is_bool(use_cudnn, "use_cudnn", layer)
    check.variable(input, "input", layer)
    channels = _channels(input, layer, data_format)
    depthwise = channels == groups and num_filters == channels and not use_cudnn
    op = "depthwise_conv2d_transpose" if depthwise else layer
    helper = LayerHelper(op, input=input, param_attr=param_attr, bias_attr=bias_attr, act=act, name=name,
                         use_cudnn=use_cudnn)
    stride, dilation = check.ints(stride, 2, "stride", layer), check.ints(dilation, 2, "dilation", layer)
    algorithm, paddings = _padding(padding, "padding", layer, data_format)
    output_size = [] if output_size is None else check.ints(output_size, 2, "output_size", layer)
    if filter_size is not None:
        size = check.ints(filter_size, 2, "filter_size", layer)
    elif output_size:
        size = _transposed_size(input, output_size, stride, paddings, dilation, data_format)
    else:
        raise InvalidValue("conv2d_transpose: filter_size or output_size is needed")
    parts = 1 if groups is None else groups
    if parts <= 0:
        raise InvalidValue("conv2d_transpose: groups must be positive, got %s" % parts)
    weight = helper.create_parameter(attr=helper.param_attr, shape=[channels, num_filters // parts] + size,
                                     dtype=input.dtype)
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(
        type=op, inputs={"Input": [input], "Filter": [weight]}, outputs={"Output": out},
        attrs={"output_size": output_size, "strides": stride, "paddings": paddings, "padding_algorithm": algorithm,
               "dilations": dilation, "groups": parts, "use_cudnn": use_cudnn, "data_format": data_format})
    first, last = (1, 2) if data_format == "NCHW" else (3, 4)
    return helper.append_activation(helper.append_bias_op(out, dim_start=first, dim_end=last))


def pool2d(input: Variable, pool_size: int | Sequence[Any] = -1, pool_type: str = "max",
           pool_stride: int | Sequence[Any] = 1, pool_padding: int | Sequence[Any] | str = 0,
           global_pooling: bool = False, use_cudnn: bool = True, ceil_mode: bool = False, name: str | None = None,
           exclusive: bool = True, data_format: str = "NCHW") -> Variable:
    """The maximum or average over windows of images.

    H_out = floor or ceil of (H + pad_top + pad_bottom - size) / stride, + 1; likewise for W.

    Args:
        input (Variable): [N, C, H, W] or [N, H, W, C], float32 or float64.
        pool_size (int|list|tuple): of the window; not needed with ``global_pooling``.
        pool_type (str): "max" or "avg". Default "max".
        pool_stride (int|list|tuple): Default 1.
        pool_padding (int|list|tuple|str): as for :func:`conv2d`. Default 0.
        global_pooling (bool): the window is the whole image. Default False.
        use_cudnn (bool): no effect on the CPU. Default True.
        ceil_mode (bool): round the size of the result up. Default False.
        name (str, optional): prefix of the output's name.
        exclusive (bool): padding does not count in an average. Default True.
        data_format (str): "NCHW" or "NHWC". Default the first.

    Returns:
        Variable: [N, C, H_out, W_out] or [N, H_out, W_out, C].

    Raises:
        TypeError: ``use_cudnn`` is no bool.
        ValueError: a bad value of another argument.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> image = fluid.data("image", [None, 3, 32, 32], "float32")
        >>> fluid.layers.pool2d(image, pool_size=2, pool_stride=2).shape
        (-1, 3, 16, 16)
    """
    layer = "pool2d"
    check.one_of(pool_type, "pool_type", layer, ("max", "avg"))
    if global_pooling is False and pool_size == -1:
        raise InvalidValue("pool2d: pool_size is needed unless global_pooling is True")
    check.is_bool(use_cudnn, "use_cudnn", layer, InvalidType)
    check.one_of(data_format, "data_format", layer, ("NCHW", "NHWC"))
    if isinstance(pool_padding, str) and pool_padding.upper() == "VALID" and ceil_mode:
        raise InvalidValue("pool2d: ceil_mode is False with pool_padding \"VALID\"")
    check.variable(input, "input", layer)
    algorithm, paddings = _padding(pool_padding, "pool_padding", layer, data_format)
    helper = LayerHelper("pool2d", name=name)
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(
        type="pool2d", inputs={"X": input}, outputs={"Out": out},
        attrs={"pooling_type": pool_type, "ksize": check.ints(pool_size, 2, "pool_size", layer),
               "global_pooling": global_pooling, "strides": check.ints(pool_stride, 2, "pool_stride", layer),
               "paddings": paddings, "padding_algorithm": algorithm, "use_cudnn": use_cudnn, "ceil_mode": ceil_mode,
               "use_mkldnn": False, "exclusive": exclusive, "data_format": data_format})
    return out


def adaptive_pool2d(input: Variable, pool_size: int | Sequence[Any], pool_type: str = "max",
                    require_index: bool = False, name: str | None = None) -> Any:
    """The maximum or average over windows whose size follows from that of the result.

    Row i of the result covers the input's rows from floor(i H / H_out) to ceil((i + 1) H / H_out); likewise columns.

    Args:
        input (Variable): [N, C, H, W], float32 or float64.
        pool_size (int|list|tuple): [H_out, W_out].
        pool_type (str): "max" or "avg". Default "max".
        require_index (bool): also return where each maximum was. Default False.
        name (str, optional): prefix of the names.

    Returns:
        Variable: [N, C, H_out, W_out]; with ``require_index`` a tuple of it and the places.

    Raises:
        ValueError: another ``pool_type``; ``require_index`` with "avg".

    Examples:
        >>> import anabranch.fluid as fluid
        >>> image = fluid.data("image", [None, 3, 7, 7], "float32")
        >>> fluid.layers.adaptive_pool2d(image, pool_size=[2, 3], pool_type="avg").shape
        (-1, 3, 2, 3)
    """
    layer = "adaptive_pool2d"
    check.operand(input, "input", layer, "pool2d")
    check.one_of(pool_type, "pool_type", layer, ("max", "avg"))
    if pool_type == "avg" and require_index:
        raise InvalidValue("adaptive_pool2d: require_index needs pool_type \"max\"")
    op = "max_pool2d_with_index" if pool_type == "max" else "pool2d"
    helper = LayerHelper(op, name=name)
    out = helper.create_variable_for_type_inference(input.dtype)
    outputs, mask = {"Out": out}, None
    if pool_type == "max":
        mask = helper.create_variable_for_type_inference(input.dtype)
        outputs["Mask"] = mask
    helper.append_op(type=op, inputs={"X": input}, outputs=outputs,
                     attrs={"pooling_type": pool_type, "ksize": check.ints(pool_size, 2, "pool_size", layer),
                            "adaptive": True})
    return (out, mask) if require_index else out
