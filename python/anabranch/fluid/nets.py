"""Small networks made of several layers."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import _on_demand
from . import layers
from .errors import InvalidType, InvalidValue, Violated
from .explained import explain
from .layers import check

if TYPE_CHECKING:
    from .framework import Variable
    from .hints import Attr

__all__ = ["simple_img_conv_pool", "sequence_conv_pool", "glu", "scaled_dot_product_attention", "img_conv_group"]


def simple_img_conv_pool(input: Variable, num_filters: int, filter_size: int | Sequence[Any],
                         pool_size: int | Sequence[Any], pool_stride: int | Sequence[Any],
                         pool_padding: int | Sequence[Any] = 0, pool_type: str = "max", global_pooling: bool = False,
                         conv_stride: Any = 1, conv_padding: Any = 0, conv_dilation: Any = 1, conv_groups: Any = 1,
                         param_attr: Attr = None, bias_attr: Attr = None, act: str | None = None,
                         use_cudnn: bool = True) -> Variable:
    """A convolution followed by a pooling layer.

    Args:
        input (Variable): [N, C, H, W].
        num_filters (int): number of output channels.
        filter_size (int|list|tuple): filter size of the convolution.
        pool_size (int|list|tuple): window size of the pooling.
        pool_stride (int|list|tuple): stride of the pooling.
        pool_padding (int|list|tuple): padding of the pooling. Default 0.
        pool_type (str): "max" or "avg". Default "max".
        global_pooling (bool): the pooling covers the whole image. Default False.
        conv_stride, conv_padding, conv_dilation, conv_groups: settings of the convolution. Default 1, 0, 1 and 1.
        param_attr (ParamAttr, optional): attributes of the filter.
        bias_attr (ParamAttr|bool, optional): attributes of the bias. False means no bias.
        act (str, optional): activation of the convolution.
        use_cudnn (bool): has no effect on the CPU. Default True.

    Returns:
        Variable: [N, num_filters, H_out, W_out].

    Examples:
        >>> import anabranch.fluid as fluid
        >>> image = fluid.data("image", [None, 1, 28, 28], "float32")
        >>> fluid.nets.simple_img_conv_pool(image, num_filters=20, filter_size=5, pool_size=2, pool_stride=2,
        ...                                 act="relu").shape
        (-1, 20, 12, 12)
    """
    conv = layers.conv2d(input=input, num_filters=num_filters, filter_size=filter_size, stride=conv_stride,
                         padding=conv_padding, dilation=conv_dilation, groups=conv_groups, param_attr=param_attr,
                         bias_attr=bias_attr, act=act, use_cudnn=use_cudnn)
    return layers.pool2d(input=conv, pool_size=pool_size, pool_type=pool_type, pool_stride=pool_stride,
                         pool_padding=pool_padding, global_pooling=global_pooling, use_cudnn=use_cudnn)


def img_conv_group(input: Variable, conv_num_filter: Sequence[Any], pool_size: int | Sequence[Any],
                   conv_padding: int | Sequence[Any] = 1, conv_filter_size: int | Sequence[Any] = 3,
                   conv_act: str | None = None, param_attr: Attr = None,
                   conv_with_batchnorm: bool | Sequence[Any] = False,
                   conv_batchnorm_drop_rate: float | Sequence[Any] = 0.0, pool_stride: int | Sequence[Any] = 1,
                   pool_type: str = "max", use_cudnn: bool = True) -> Variable:
    """Several convolutions, optionally with batch norm and dropout, followed by one pooling layer, as in a stage of a
    VGG net.

    Args:
        input (Variable): [N, C, H, W].
        conv_num_filter (list|tuple): number of output channels of each convolution.
        pool_size (int|list|tuple): window size of the pooling.
        conv_padding (int|list|tuple): padding of all convolutions, or a list with one entry for each. Default 1.
        conv_filter_size (int|list|tuple): filter size, in the same forms. Default 3.
        conv_act (str, optional): activation of each convolution, after its batch norm.
        param_attr (ParamAttr|list, optional): attributes of the filters.
        conv_with_batchnorm (bool|list): batch norm follows the convolution. Default False.
        conv_batchnorm_drop_rate (float|list): rate of the dropout after batch norm. 0 means no dropout. Default 0.
        pool_stride (int|list|tuple): stride of the pooling. Default 1.
        pool_type (str): "max" or "avg". Default "max".
        use_cudnn (bool): has no effect on the CPU. Default True.

    Returns:
        Variable: [N, conv_num_filter[-1], H_out, W_out].

    Raises:
        AssertionError: ``conv_num_filter`` is not a list, or another list has a different length.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> image = fluid.data("image", [None, 3, 32, 32], "float32")
        >>> fluid.nets.img_conv_group(image, [8, 8], pool_size=2, pool_stride=2, conv_act="relu",
        ...                           conv_with_batchnorm=True).shape
        (-1, 8, 16, 16)
    """
    if not isinstance(conv_num_filter, (list, tuple)):
        raise Violated("img_conv_group: conv_num_filter must be a list, got %s" % type(conv_num_filter).__name__)
    count = len(conv_num_filter)

    def each(argument, value):
        if not isinstance(value, (list, tuple)):
            return [value] * count
        if len(value) != count:
            raise Violated("img_conv_group: %s must have an entry for each of the %d convolutions, got %d"
                           % (argument, count, len(value)))
        return value

    settings = zip(conv_num_filter, each("conv_filter_size", conv_filter_size), each("conv_padding", conv_padding),
                   each("param_attr", param_attr), each("conv_with_batchnorm", conv_with_batchnorm),
                   each("conv_batchnorm_drop_rate", conv_batchnorm_drop_rate))
    out = input
    for filters, size, padding, attr, normed, drop_rate in settings:
        out = layers.conv2d(input=out, num_filters=filters, filter_size=size, padding=padding, param_attr=attr,
                            act=None if normed else conv_act, use_cudnn=use_cudnn)
        if normed:
            out = layers.batch_norm(input=out, act=conv_act)
            if abs(drop_rate) > 1e-5:
                out = layers.dropout(x=out, dropout_prob=drop_rate)
    return layers.pool2d(input=out, pool_size=pool_size, pool_type=pool_type, pool_stride=pool_stride,
                         use_cudnn=use_cudnn)


def sequence_conv_pool(input: Variable, num_filters: int, filter_size: int, param_attr: Attr = None,
                       act: str | None = "sigmoid", pool_type: str = "max", bias_attr: Attr = None) -> Variable:
    """A convolution along each sequence, followed by pooling to one row per sequence.

    Args:
        input (Variable): [rows, D] with sequences.
        num_filters (int): number of filters, the width of the result.
        filter_size (int): number of rows of the filter.
        param_attr (ParamAttr, optional): attributes of the filter.
        act (str): activation of the convolution. Default "sigmoid".
        pool_type (str): type of the pooling, as for ``layers.sequence_pool``. Default "max".
        bias_attr (ParamAttr|bool, optional): attributes of the bias. False means no bias.

    Returns:
        Variable: [sequences, num_filters].

    Examples:
        >>> import anabranch.fluid as fluid
        >>> words = fluid.data("words", [None, 16], "float32", lod_level=1)
        >>> fluid.nets.sequence_conv_pool(words, num_filters=8, filter_size=3, act="tanh").shape
        (-1, 8)
    """
    check.variable(input, "input", "sequence_conv_pool", check.WIDE_FLOATS)
    conv = layers.sequence_conv(input=input, num_filters=num_filters, filter_size=filter_size, param_attr=param_attr,
                                bias_attr=bias_attr, act=act)
    return layers.sequence_pool(input=conv, pool_type=pool_type)


def glu(input: Variable, dim: int = -1) -> Variable:
    """Gated linear unit: splits the input into halves a and b; out = a * sigmoid(b).

    Dauphin, Fan, Auli and Grangier, Language modeling with gated convolutional networks, ICML 2017.

    Args:
        input (Variable): [...], with an even extent along ``dim``.
        dim (int): axis to split. Default -1.

    Returns:
        Variable: shape of ``input``, with half the extent along ``dim``.

    Raises:
        AssertionError: the extent is odd.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.nets.glu(fluid.data("x", [None, 6], "float32")).shape
        (-1, 3)
    """
    check.variable(input, "input", "glu", check.FLOATS)
    a, b = layers.split(input, num_or_sections=2, dim=dim)
    return layers.elementwise_mul(x=a, y=layers.sigmoid(x=b))


def scaled_dot_product_attention(queries: Variable, keys: Variable, values: Variable, num_heads: int = 1,
                                 dropout_rate: float = 0.0) -> Variable:
    """Multi-head attention: out = softmax(q k' / sqrt(d)) v in each head.

    Vaswani and others, Attention is all you need, NIPS 2017.

    Args:
        queries (Variable): [N, L_q, D], float32 or float64.
        keys (Variable): [N, L_k, D].
        values (Variable): [N, L_k, D_v].
        num_heads (int): number of heads, a divisor of D and D_v. If it is above 1, each input first passes a fully
            connected layer. Default 1.
        dropout_rate (float): dropout rate of the attention weights. Default 0.

    Returns:
        Variable: [N, L_q, D_v].

    Raises:
        ValueError: an input does not have three axes, sizes do not match, or a width is not divisible by the number of
            heads.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> q, k = fluid.data("q", [3, 5, 8], "float32"), fluid.data("k", [3, 6, 8], "float32")
        >>> fluid.nets.scaled_dot_product_attention(q, k, k, num_heads=2).shape
        (3, 5, 8)
    """
    layer = "scaled_dot_product_attention"
    for argument, value in (("queries", queries), ("keys", keys), ("values", values)):
        check.variable(value, argument, layer, check.WIDE_FLOATS)
    if not queries.dtype == keys.dtype == values.dtype:
        raise InvalidType("%s: queries, keys and values must have the same dtype, got %s, %s and %s"
                          % (layer, queries.dtype, keys.dtype, values.dtype))
    shapes = (queries.shape, keys.shape, values.shape)
    if any(len(s) != 3 for s in shapes):
        raise InvalidValue("%s: queries, keys and values must have three axes, got %s, %s and %s" % ((layer,) + shapes))
    if queries.shape[-1] != keys.shape[-1]:
        raise InvalidValue("%s: queries and keys must have one width, got %s and %s" % (layer, shapes[0], shapes[1]))
    if keys.shape[-2] != values.shape[-2]:
        raise InvalidValue("%s: keys and values must have the same length, got %s and %s"
                           % (layer, shapes[1], shapes[2]))
    if keys.shape[-1] % num_heads or values.shape[-1] % num_heads:
        raise InvalidValue("%s: the widths %d and %d must be divisible by num_heads, got %d"
                           % (layer, keys.shape[-1], values.shape[-1], num_heads))
    if num_heads > 1:
        queries, keys, values = (layers.fc(input=v, size=v.shape[-1], num_flatten_dims=2)
                                 for v in (queries, keys, values))
    q, k, v = (_split_heads(value, num_heads) for value in (queries, keys, values))
    width = k.shape[-1] if num_heads > 1 else keys.shape[-1]
    scores = layers.matmul(x=layers.scale(x=q, scale=width ** -0.5), y=k, transpose_y=True)
    weights = layers.reshape(x=layers.reshape(x=scores, shape=[-1, scores.shape[-1]], act="softmax"),
                             shape=scores.shape)
    if dropout_rate:
        weights = layers.dropout(weights, dropout_prob=dropout_rate, is_test=False)
    return _join_heads(layers.matmul(weights, v), num_heads)


def _split_heads(x, heads):
    if heads == 1:
        return x
    width = x.shape[-1]
    cut = layers.reshape(x=x, shape=list(x.shape[:-1]) + [heads, width // heads])
    return layers.transpose(x=cut, perm=[0, 2, 1, 3])


def _join_heads(x, heads):
    if heads == 1:
        return x
    back = layers.transpose(x, perm=[0, 2, 1, 3])
    return layers.reshape(x=back, shape=list(back.shape[:2]) + [back.shape[2] * back.shape[3]])


explain(globals())
_on_demand.give(__name__, {})
