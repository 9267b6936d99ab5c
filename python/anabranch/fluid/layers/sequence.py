"""Layers over sequences of different lengths (tensors with LoD)."""
from __future__ import annotations

from typing import TYPE_CHECKING

from ..explained import explain
from ..layer_helper import LayerHelper
from . import check

if TYPE_CHECKING:
    from ..framework import Variable
    from ..hints import Attr

__all__ = ["sequence_pool", "sequence_first_step", "sequence_last_step", "sequence_conv", "row_conv"]


def sequence_pool(input: Variable, pool_type: str, is_test: bool = False, pad_value: float = 0.0) -> Variable:
    """Pools the rows of each sequence to one row.

    Args:
        input (Variable): [rows, ...] with sequences, float32. If there are several levels, the last one is
            used.
        pool_type (str): "average", "sum", "sqrt" (sum / square root of the length), "max", "last" or "first".
        is_test (bool): does not keep the indices that the backward pass of "max" needs. Default False.
        pad_value (float): value of the row of an empty sequence. Default 0.

    Returns:
        Variable: [sequences, ...], with one level of sequences fewer than ``input``.

    Raises:
        TypeError: ``input`` is not a Variable of float32 or float64.
        EnforceNotMet: ``pool_type`` is unknown, or ``input`` has the ``lod_level`` 0.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> words = fluid.data("words", [None, 16], "float32", lod_level=1)
        >>> fluid.layers.sequence_pool(words, "average").shape
        (-1, 16)
    """
    check.operand(input, "input", "sequence_pool")
    check.sequences(input, "input", "sequence_pool")
    helper = LayerHelper("sequence_pool")
    out = helper.create_variable_for_type_inference(input.dtype)
    where = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(type="sequence_pool", inputs={"X": input}, outputs={"Out": out, "MaxIndex": where},
                     attrs={"pooltype": pool_type.upper(), "is_test": is_test, "pad_value": pad_value})
    if pool_type == "max":
        # an integer place: no gradient flows through it
        where.stop_gradient = True
    return out


def sequence_first_step(input: Variable) -> Variable:
    """Returns the first row of each sequence.

    Args:
        input (Variable): [rows, ...] with sequences, float32.

    Returns:
        Variable: [sequences, ...].

    Examples:
        >>> import anabranch.fluid as fluid
        >>> words = fluid.data("words", [None, 16], "float32", lod_level=1)
        >>> fluid.layers.sequence_first_step(words).shape
        (-1, 16)
    """
    check.operand(input, "input", "sequence_first_step", "sequence_pool")
    check.sequences(input, "input", "sequence_first_step")
    return sequence_pool(input, pool_type="first")


def sequence_last_step(input: Variable) -> Variable:
    """Returns the last row of each sequence.

    Args:
        input (Variable): [rows, ...] with sequences, float32.

    Returns:
        Variable: [sequences, ...].

    Examples:
        >>> import anabranch.fluid as fluid
        >>> words = fluid.data("words", [None, 16], "float32", lod_level=1)
        >>> fluid.layers.sequence_last_step(words).shape
        (-1, 16)
    """
    check.operand(input, "input", "sequence_last_step", "sequence_pool")
    check.sequences(input, "input", "sequence_last_step")
    return sequence_pool(input, pool_type="last")


def sequence_conv(input: Variable, num_filters: int, filter_size: int = 3, filter_stride: int = 1, padding: bool = True,
                  padding_start: int | None = None, bias_attr: Attr = None, param_attr: Attr = None,
                  act: str | None = None, name: str | None = None) -> Variable:
    """Convolution along each sequence: row t of the result depends on ``filter_size`` rows of its sequence, starting
    with row t + padding_start.

    Args:
        input (Variable): [rows, D] with sequences, float32 or float64.
        num_filters (int): number of filters, the width of the result.
        filter_size (int): number of rows of the filter. Default 3.
        filter_stride (int): stride, which must be 1. Default 1.
        padding (bool): has no effect; rows outside of the sequence count as 0.
        padding_start (int, optional): position of the filter's first row relative to t. Default: -floor(filter_size /
            2).
        bias_attr (ParamAttr|bool, optional): attributes of the bias, [num_filters]. False means no bias.
        param_attr (ParamAttr, optional): attributes of the filter, [filter_size * D, num_filters].
        act (str, optional): activation applied to the result.
        name (str, optional): prefix of the generated names.

    Returns:
        Variable: [rows, num_filters] with the same sequences.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> words = fluid.data("words", [None, 16], "float32", lod_level=1)
        >>> fluid.layers.sequence_conv(words, num_filters=8, act="relu").shape
        (-1, 8)
    """
    check.operand(input, "input", "sequence_conv")
    helper = LayerHelper("sequence_conv", param_attr=param_attr, bias_attr=bias_attr, act=act, name=name)
    weight = helper.create_parameter(attr=helper.param_attr, shape=[filter_size * input.shape[1], num_filters],
                                     dtype=input.dtype)
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(type="sequence_conv", inputs={"X": [input], "Filter": [weight]}, outputs={"Out": out},
                     attrs={"contextStride": filter_stride, "contextLength": filter_size,
                            "contextStart": -int(filter_size // 2) if padding_start is None else padding_start})
    return helper.append_activation(helper.append_bias_op(out))


def row_conv(input: Variable, future_context_size: int, param_attr: Attr = None, act: str | None = None) -> Variable:
    """Lookahead convolution: out[t] = the sum of input[t + j] * filter[j], j = 0 ... future_context_size, by column.

    Rows after the end of a sequence count as 0. Amodei et al., Deep Speech 2, ICML 2016, section 3.6.

    Args:
        input (Variable): [rows, D] with sequences, or [batch, rows, D]; float32.
        future_context_size (int): number of later rows that are used, at least 0.
        param_attr (ParamAttr, optional): attributes of the filter, [future_context_size + 1, D].
        act (str, optional): activation applied to the result.

    Returns:
        Variable: shape of ``input``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> frames = fluid.data("frames", [None, 16], "float32", lod_level=1)
        >>> fluid.layers.row_conv(frames, future_context_size=2).shape
        (-1, 16)
    """
    check.operand(input, "input", "row_conv")
    helper = LayerHelper("row_conv", param_attr=param_attr, act=act)
    weight = helper.create_parameter(attr=helper.param_attr, shape=[future_context_size + 1, input.shape[-1]],
                                     dtype=input.dtype)
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(type="row_conv", inputs={"X": [input], "Filter": [weight]}, outputs={"Out": [out]})
    return helper.append_activation(out)


explain(globals())
