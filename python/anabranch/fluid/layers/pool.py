"""Pooling over images and volumes."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..errors import InvalidType, InvalidValue
from ..explained import explain
from ..layer_helper import LayerHelper
from . import check, windows

if TYPE_CHECKING:
    from ..framework import Variable

__all__ = ["pool2d", "pool3d", "adaptive_pool2d", "adaptive_pool3d"]


def _pool(layer, axes, input, pool_size, pool_type, pool_stride, pool_padding, global_pooling, use_cudnn, ceil_mode,
          name, exclusive, data_format):
    """Implements pool2d and pool3d."""
    check.one_of(pool_type, "pool_type", layer, ("max", "avg"))
    if global_pooling is False and pool_size == -1:
        raise InvalidValue("%s: pool_size must be given unless global_pooling is True" % layer)
    check.is_bool(use_cudnn, "use_cudnn", layer, InvalidType)
    check.one_of(data_format, "data_format", layer, windows.LAYOUTS[axes])
    if isinstance(pool_padding, str) and pool_padding.upper() == "VALID" and ceil_mode:
        raise InvalidValue("%s: ceil_mode must be False with pool_padding \"VALID\"" % layer)
    check.variable(input, "input", layer)
    algorithm, paddings = windows.padding(pool_padding, "pool_padding", layer, axes, data_format)
    helper = LayerHelper(layer, name=name)
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(
        type=layer, inputs={"X": input}, outputs={"Out": out},
        attrs={"pooling_type": pool_type, "ksize": check.ints(pool_size, axes, "pool_size", layer),
               "global_pooling": global_pooling, "strides": check.ints(pool_stride, axes, "pool_stride", layer),
               "paddings": paddings, "padding_algorithm": algorithm, "use_cudnn": use_cudnn, "ceil_mode": ceil_mode,
               "use_mkldnn": False, "exclusive": exclusive, "data_format": data_format})
    return out


def pool2d(input: Variable, pool_size: int | Sequence[Any] = -1, pool_type: str = "max",
           pool_stride: int | Sequence[Any] = 1, pool_padding: int | Sequence[Any] | str = 0,
           global_pooling: bool = False, use_cudnn: bool = True, ceil_mode: bool = False, name: str | None = None,
           exclusive: bool = True, data_format: str = "NCHW") -> Variable:
    """Computes the maximum or average over windows of images.

    H_out = floor((H + pad_top + pad_bottom - size) / stride) + 1, or ceil with ``ceil_mode``. W_out is computed in
    the same way.

    Args:
        input (Variable): [N, C, H, W] or [N, H, W, C], float32 or float64.
        pool_size (int|list|tuple): size of the window. Not needed with ``global_pooling``.
        pool_type (str): "max" or "avg". Default "max".
        pool_stride (int|list|tuple): stride of the windows. Default 1.
        pool_padding (int|list|tuple|str): padding, as for :func:`conv2d`. Default 0.
        global_pooling (bool): the window is the whole image. Default False.
        use_cudnn (bool): has no effect on the CPU. Default True.
        ceil_mode (bool): rounds the size of the result up. Default False.
        name (str, optional): prefix of the output's name.
        exclusive (bool): padding does not count in an average. Default True.
        data_format (str): "NCHW" or "NHWC". Default "NCHW".

    Returns:
        Variable: [N, C, H_out, W_out] or [N, H_out, W_out, C].

    Raises:
        TypeError: ``use_cudnn`` is not a bool.
        ValueError: another argument has an invalid value.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> image = fluid.data("image", [None, 3, 32, 32], "float32")
        >>> fluid.layers.pool2d(image, pool_size=2, pool_stride=2).shape
        (-1, 3, 16, 16)
    """
    return _pool("pool2d", 2, input, pool_size, pool_type, pool_stride, pool_padding, global_pooling, use_cudnn,
                 ceil_mode, name, exclusive, data_format)


def pool3d(input: Variable, pool_size: int | Sequence[Any] = -1, pool_type: str = "max",
           pool_stride: int | Sequence[Any] = 1, pool_padding: int | Sequence[Any] | str = 0,
           global_pooling: bool = False, use_cudnn: bool = True, ceil_mode: bool = False, name: str | None = None,
           exclusive: bool = True, data_format: str = "NCDHW") -> Variable:
    """Computes the maximum or average over windows of volumes.

    D_out = floor((D + pad_front + pad_back - size) / stride) + 1, or ceil with ``ceil_mode``. H_out and W_out are
    computed in the same way.

    Args:
        input (Variable): [N, C, D, H, W] or [N, D, H, W, C], float32 or float64.
        pool_size (int|list|tuple): size of the window. Not needed with ``global_pooling``.
        pool_type (str): "max" or "avg". Default "max".
        pool_stride (int|list|tuple): stride of the windows. Default 1.
        pool_padding (int|list|tuple|str): padding, as for :func:`conv3d`. Default 0.
        global_pooling (bool): the window is the whole volume. Default False.
        use_cudnn (bool): has no effect on the CPU. Default True.
        ceil_mode (bool): rounds the size of the result up. Default False.
        name (str, optional): prefix of the output's name.
        exclusive (bool): padding does not count in an average. Default True.
        data_format (str): "NCDHW" or "NDHWC". Default "NCDHW".

    Returns:
        Variable: [N, C, D_out, H_out, W_out] or [N, D_out, H_out, W_out, C].

    Raises:
        TypeError: ``use_cudnn`` is not a bool.
        ValueError: another argument has an invalid value.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> scan = fluid.data("scan", [None, 1, 16, 32, 32], "float32")
        >>> fluid.layers.pool3d(scan, pool_size=2, pool_stride=2).shape
        (-1, 1, 8, 16, 16)
    """
    return _pool("pool3d", 3, input, pool_size, pool_type, pool_stride, pool_padding, global_pooling, use_cudnn,
                 ceil_mode, name, exclusive, data_format)


def adaptive_pool2d(input: Variable, pool_size: int | Sequence[Any], pool_type: str = "max",
                    require_index: bool = False, name: str | None = None) -> Any:
    """Computes the maximum or average over windows of images. You choose the size of the result instead of the size
    of the windows.

    Row i of the result covers the input's rows from floor(i H / H_out) to ceil((i + 1) H / H_out). The same formula
    holds for columns.

    Args:
        input (Variable): [N, C, H, W], float32 or float64.
        pool_size (int|list|tuple): size of the result, [H_out, W_out].
        pool_type (str): "max" or "avg". Default "max".
        require_index (bool): also returns the positions of the maxima. Default False.
        name (str, optional): prefix of the generated names.

    Returns:
        Variable: [N, C, H_out, W_out]; with ``require_index``, a tuple of the result and the positions.

    Raises:
        ValueError: ``pool_type`` is unknown, or ``require_index`` is used with "avg".

    Examples:
        >>> import anabranch.fluid as fluid
        >>> image = fluid.data("image", [None, 3, 7, 7], "float32")
        >>> fluid.layers.adaptive_pool2d(image, pool_size=[2, 3], pool_type="avg").shape
        (-1, 3, 2, 3)
    """
    return _adaptive("adaptive_pool2d", 2, input, pool_size, pool_type, require_index, name)


def adaptive_pool3d(input: Variable, pool_size: int | Sequence[Any], pool_type: str = "max",
                    require_index: bool = False, name: str | None = None) -> Any:
    """Computes the maximum or average over windows of volumes. You choose the size of the result instead of the size
    of the windows.

    Slice i of the result covers the input's slices from floor(i D / D_out) to ceil((i + 1) D / D_out). The same
    formula holds for rows and columns.

    Args:
        input (Variable): [N, C, D, H, W], float32 or float64.
        pool_size (int|list|tuple): size of the result, [D_out, H_out, W_out].
        pool_type (str): "max" or "avg". Default "max".
        require_index (bool): also returns the positions of the maxima. Default False.
        name (str, optional): prefix of the generated names.

    Returns:
        Variable: [N, C, D_out, H_out, W_out]; with ``require_index``, a tuple of the result and the positions.

    Raises:
        ValueError: ``pool_type`` is unknown, or ``require_index`` is used with "avg".

    Examples:
        >>> import anabranch.fluid as fluid
        >>> scan = fluid.data("scan", [None, 1, 8, 9, 7], "float32")
        >>> fluid.layers.adaptive_pool3d(scan, pool_size=[2, 3, 2], pool_type="avg").shape
        (-1, 1, 2, 3, 2)
    """
    return _adaptive("adaptive_pool3d", 3, input, pool_size, pool_type, require_index, name)


def _adaptive(layer, axes, input, pool_size, pool_type, require_index, name):
    """Implements adaptive_pool2d and adaptive_pool3d."""
    check.operand(input, "input", layer, "pool%dd" % axes)
    check.one_of(pool_type, "pool_type", layer, ("max", "avg"))
    if pool_type == "avg" and require_index:
        raise InvalidValue("%s: pool_type must be \"max\" with require_index" % layer)
    op = ("max_pool%dd_with_index" if pool_type == "max" else "pool%dd") % axes
    helper = LayerHelper(op, name=name)
    out = helper.create_variable_for_type_inference(input.dtype)
    outputs, mask = {"Out": out}, None
    attrs: dict[str, Any] = {"ksize": check.ints(pool_size, axes, "pool_size", layer), "adaptive": True}
    if pool_type == "max":
        mask = helper.create_variable_for_type_inference(input.dtype)
        outputs["Mask"] = mask
    else:
        attrs["pooling_type"] = pool_type
    helper.append_op(type=op, inputs={"X": input}, outputs=outputs, attrs=attrs)
    return (out, mask) if require_index else out


explain(globals())
