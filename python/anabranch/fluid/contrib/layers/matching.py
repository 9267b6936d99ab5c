"""Matching of sequences, images of different sizes, and trees."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ... import arguments
from ...explained import preparation
from ...layer_helper import LayerHelper
from ...layers import check

if TYPE_CHECKING:
    from ...framework import Variable
    from ...hints import Attr, DType

__all__ = ["match_matrix_tensor", "sequence_topk_avg_pooling", "tree_conv", "var_conv_2d"]


def _pair(value: int | Sequence[int]) -> list[int]:
    return [value, value] if isinstance(value, int) else list(value)


def match_matrix_tensor(x: Variable, y: Variable, channel_num: int, act: str | None = None, param_attr: Attr = None,
                        dtype: DType = "float32", name: str | None = None) -> tuple[Variable, Variable]:
    """Computes the similarity of each row of ``x`` and each row of ``y``: x W y, for several matrices W.

    Args:
        x (Variable): [rows, D] with sequences, float32 or float64.
        y (Variable): [rows, E], with the same number of sequences.
        channel_num (int): number of matrices.
        act (str, optional): activation applied to the result.
        param_attr (ParamAttr, optional): attributes of W, [D, channel_num, E].
        dtype (str): dtype of W. Default "float32".
        name (str, optional): prefix of the generated names.

    Returns:
        tuple: the similarities and the product x W. The similarities have the shape [numbers, 1] and contain
        ``channel_num`` matrices (rows of ``x`` by rows of ``y``) for each sequence.

    Raises:
        TypeError: an argument has the wrong type or dtype.
        EnforceNotMet: ``x`` or ``y`` has the ``lod_level`` 0.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, y = (fluid.data(n, [None, 16], "float32", lod_level=1) for n in "xy")
        >>> fluid.contrib.layers.match_matrix_tensor(x, y, channel_num=3)[0].shape
        (-1, 1)
    """
    check.operand(x, "x", "match_matrix_tensor")
    check.operand(y, "y", "match_matrix_tensor")
    check.sequences(x, "x", "match_matrix_tensor")
    check.sequences(y, "y", "match_matrix_tensor")
    helper = LayerHelper("match_matrix_tensor", param_attr=param_attr, act=act, name=name)
    weight = helper.create_parameter(attr=helper.param_attr, shape=[x.shape[1], channel_num, y.shape[1]], dtype=dtype)
    out = helper.create_variable_for_type_inference(dtype)
    products = helper.create_variable_for_type_inference(dtype, stop_gradient=True)
    helper.append_op(type="match_matrix_tensor", inputs={"X": x, "Y": y, "W": weight},
                     outputs={"Out": out, "Tmp": products}, attrs={"dim_t": channel_num})
    return helper.append_activation(out), products


def sequence_topk_avg_pooling(input: Variable, row: Variable, col: Variable, topks: Sequence[int],
                              channel_num: int) -> Variable:
    """Computes the mean of the k largest numbers in each row of images, which may have different sizes. The mean is
    the sum of these numbers, divided by k.

    Args:
        input (Variable): [numbers, 1], float32 or float64, with a sequence (channels by rows by columns) for each
            image.
        row (Variable): Variable whose sequences have the heights of the images as lengths.
        col (Variable): Variable whose sequences have the widths of the images as lengths.
        topks (list): the values of k.
        channel_num (int): number of channels of an image.

    Returns:
        Variable: [rows, channel_num * len(topks)] with the sequences of ``row``.

    Raises:
        TypeError: an argument has the wrong type or dtype.
        EnforceNotMet: at run time, the sequences do not match.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, row, col = (fluid.data(n, [None, 1], "float32", lod_level=1) for n in ("x", "row", "col"))
        >>> fluid.contrib.layers.sequence_topk_avg_pooling(x, row, col, topks=[1, 3, 5], channel_num=5).shape
        (-1, 15)
    """
    check.operand(input, "input", "sequence_topk_avg_pooling")
    check.variable(row, "row", "sequence_topk_avg_pooling")
    check.variable(col, "col", "sequence_topk_avg_pooling")
    helper = LayerHelper("sequence_topk_avg_pooling")
    out = helper.create_variable_for_type_inference(input.dtype)
    places = helper.create_variable_for_type_inference("int32", stop_gradient=True)
    helper.append_op(type="sequence_topk_avg_pooling", inputs={"X": input, "ROW": row, "COLUMN": col},
                     outputs={"Out": out, "pos": places}, attrs={"topks": list(topks), "channel_num": channel_num})
    return out


def var_conv_2d(input: Variable, row: Variable, col: Variable, input_channel: int, output_channel: int,
                filter_size: int | Sequence[int], stride: int | Sequence[int] = 1, param_attr: Attr = None,
                act: str | None = None, dtype: DType = "float32", name: str | None = None) -> Variable:
    """Convolution of images of different sizes. Windows are centered, and the images are padded with zeros.

    Args:
        input (Variable): [numbers, 1], float32 or float64, with a sequence (channels by rows by columns) for each
            image.
        row (Variable): Variable whose sequences have the heights of the images as lengths.
        col (Variable): Variable whose sequences have the widths of the images as lengths.
        input_channel (int): number of channels of an image.
        output_channel (int): number of channels of the result.
        filter_size (int|list): height and width of a window.
        stride (int|list): distance between windows, downwards and to the right. Default 1.
        param_attr (ParamAttr, optional): attributes of the filter, [output_channel, input_channel * height * width].
        act (str, optional): activation applied to the result.
        dtype (str): dtype of the filter. Default "float32".
        name (str, optional): prefix of the generated names.

    Returns:
        Variable: [numbers, 1], with a sequence for each image.

    Raises:
        TypeError: an argument has the wrong type or dtype.
        EnforceNotMet: at run time, the sequences do not match.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, row, col = (fluid.data(n, [None, 1], "float32", lod_level=1) for n in ("x", "row", "col"))
        >>> fluid.contrib.layers.var_conv_2d(x, row, col, input_channel=3, output_channel=5, filter_size=[2, 3]).shape
        (-1, 1)
    """
    check.operand(input, "input", "var_conv_2d")
    check.variable(row, "row", "var_conv_2d")
    check.variable(col, "col", "var_conv_2d")
    helper = LayerHelper("var_conv_2d", param_attr=param_attr, act=act, name=name)
    (height, width), (down, right) = _pair(filter_size), _pair(stride)
    weight = helper.create_parameter(attr=helper.param_attr, dtype=dtype,
                                     shape=[output_channel, input_channel * height * width])
    out = helper.create_variable_for_type_inference(dtype)
    columns = helper.create_variable_for_type_inference(dtype, stop_gradient=True)
    helper.append_op(type="var_conv_2d", inputs={"X": input, "ROW": row, "COLUMN": col, "W": weight},
                     outputs={"Out": out, "Col": columns},
                     attrs={"InputChannel": input_channel, "OutputChannel": output_channel, "StrideH": down,
                            "StrideW": right, "KernelH": height, "KernelW": width})
    return helper.append_activation(out)


def tree_conv(nodes_vector: Variable, edge_set: Variable, output_size: int, num_filters: int = 1, max_depth: int = 2,
              act: str | None = "tanh", param_attr: Attr = None, bias_attr: Attr = None,
              name: str | None = None) -> Variable:
    """Convolution over trees. A window consists of a node and its descendants.

    The rows of a window are weighted by the depth and position of their nodes: top = 1 - depth / max_depth, left =
    (1 - top) (position - 1) / (siblings - 1), right = (1 - top) (1 - left), each with its own weights. Mou et al.,
    AAAI 2016.

    Args:
        nodes_vector (Variable): [batch, nodes, D], float32 or float64.
        edge_set (Variable): [batch, edges, 2], int32: parent and child, with nodes numbered from 1. An edge with a 0
            ends the list.
        output_size (int): number of outputs of a filter.
        num_filters (int): number of filters. Default 1.
        max_depth (int): number of levels of a window, at least 2. Default 2.
        act (str, optional): activation applied to the result. Default "tanh".
        param_attr (ParamAttr, optional): attributes of the filters, [D, 3, output_size, num_filters].
        bias_attr (ParamAttr|bool, optional): attributes of the bias. False means no bias.
        name (str, optional): prefix of the generated names.

    Returns:
        Variable: [batch, nodes, output_size, num_filters].

    Raises:
        TypeError: an argument has the wrong type or dtype.
        EnforceNotMet: at run time, the edges do not form a tree.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> nodes, edges = fluid.data("nodes", [None, 10, 5], "float32"), fluid.data("edges", [None, 9, 2], "int32")
        >>> fluid.contrib.layers.tree_conv(nodes, edges, output_size=6).shape
        (-1, 10, 6, 1)
    """
    check.operand(nodes_vector, "nodes_vector", "tree_conv")
    check.variable(edge_set, "edge_set", "tree_conv", ("int32",))
    helper = LayerHelper("tree_conv", param_attr=param_attr, bias_attr=bias_attr, act=act, name=name)
    filters = helper.create_parameter(attr=helper.param_attr, dtype=nodes_vector.dtype,
                                      shape=[nodes_vector.shape[2], 3, output_size, num_filters])
    out = helper.create_variable_for_type_inference(nodes_vector.dtype)
    helper.append_op(type="tree_conv", inputs={"NodesVector": nodes_vector, "EdgeSet": edge_set, "Filter": filters},
                     outputs={"Out": out}, attrs={"max_depth": max_depth})
    return helper.append_activation(helper.append_bias_op(out) if helper.bias_attr else out)


arguments.explain(globals(), preparation)
