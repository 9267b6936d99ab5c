"""Layers that resize images and volumes."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import InvalidType, InvalidValue, Violated
from ..explained import explain
from ..framework import Variable
from ..layer_helper import LayerHelper
from . import check, windows
from .shape_args import as_variables, has_variable, known

__all__ = [
    "image_resize", "image_resize_short", "resize_bilinear", "resize_nearest", "resize_trilinear",
]

#: Resample -> the method of the op, axes of an image.
_METHODS = {"BILINEAR": ("bilinear", 2), "TRILINEAR": ("trilinear", 3), "NEAREST": ("nearest", 2)}
_SIZES = ("out_d", "out_h", "out_w")


def _stopped(variable: Variable) -> Variable:
    variable.stop_gradient = True
    return variable


def _add_shape(out_shape: Any, axes: int, helper: LayerHelper, inputs: dict[str, Any], attrs: dict[str, Any]) -> None:
    """Passes ``out_shape`` to the op as the input OutSize or SizeTensor, or as attributes."""
    if isinstance(out_shape, Variable):
        inputs["OutSize"] = _stopped(out_shape)
        return
    check.of_type(out_shape, "out_shape", "image_resize", (list, tuple, Variable))
    if len(out_shape) != axes:
        raise InvalidValue("image_resize: out_shape must have %d entries, got %d" % (axes, len(out_shape)))
    if not all(isinstance(v, Variable) or v > 0 for v in out_shape):
        raise Violated("image_resize: out_shape must hold numbers above 0, got %r" % (out_shape,))
    extents = [v if isinstance(v, Variable) else int(v) for v in out_shape]
    if has_variable(extents):
        inputs["SizeTensor"] = as_variables(extents, helper)
    attrs.update(zip(_SIZES[-axes:], known(extents)))


def _add_scale(scale: Any, inputs: dict[str, Any], attrs: dict[str, Any]) -> None:
    if isinstance(scale, Variable):
        inputs["Scale"] = _stopped(scale)
        return
    check.of_type(scale, "scale", "image_resize", (int, float, Variable))
    if scale <= 0:
        raise InvalidValue("image_resize: scale must be above 0, got %r" % (scale,))
    attrs["scale"] = float(scale)


def image_resize(input: Variable, out_shape: Sequence[Any] | Variable | None = None,
                 scale: float | Variable | None = None, name: str | None = None, resample: str = "BILINEAR",
                 actual_shape: Variable | None = None, align_corners: bool = True, align_mode: int = 1,
                 data_format: str = "NCHW") -> Variable:
    """Resizes images or volumes.

    Let n_in and n_out be an extent of the input and of the result. With ``align_corners``, pixel k of the result is
    at position k (n_in - 1) / (n_out - 1) of the input. Without it, pixel k is at position k n_in / n_out. For linear
    methods with ``align_mode`` 0, pixel k is at position (k + 0.5) n_in / n_out - 0.5.

    Args:
        input (Variable): [N, C, H, W] or [N, H, W, C], with "TRILINEAR" [N, C, D, H, W] or [N, D, H, W, C]; float32,
            float64 or uint8.
        out_shape (list|tuple|Variable, optional): new extents, [H, W] or [D, H, W]. Entries may be int32 Variables of
            shape [1]. A single int32 Variable may hold all extents.
        scale (float|Variable, optional): ratio of the new extents to those of ``input``, above 0. Used if ``out_shape``
            is not given. A Variable must be float32 of shape [1].
        name (str, optional): prefix of the output's name.
        resample (str): "BILINEAR", "TRILINEAR" or "NEAREST". Default "BILINEAR".
        actual_shape (Variable, optional): int32; replaces ``out_shape`` at run time.
        align_corners (bool): the outermost pixels of input and result coincide. Default True.
        align_mode (int): 0 or 1, as described above. Default 1.
        data_format (str): "NCHW", "NHWC", "NCDHW" or "NDHWC". Default "NCHW".

    Returns:
        Variable: the resized images.

    Raises:
        TypeError: an argument has the wrong type or dtype.
        ValueError: an argument has an invalid value, or neither ``out_shape`` nor ``scale`` is given.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.image_resize(fluid.data("x", [None, 3, 6, 9], "float32"), out_shape=[12, 12]).shape
        (-1, 3, 12, 12)
    """
    check.one_of(resample, "resample", "image_resize", sorted(_METHODS))
    method, axes = _METHODS[resample]
    check.is_bool(align_corners, "align_corners", "image_resize", InvalidType)
    check.one_of(align_mode, "align_mode", "image_resize", (0, 1))
    if out_shape is None and scale is None:
        raise InvalidValue("image_resize: out_shape or scale must be given")
    check.operand(input, "input", "image_resize", method + "_interp")
    if len(input.shape) != axes + 2:
        raise InvalidValue("image_resize: input of %s must have %d axes, got shape %s"
                           % (resample, axes + 2, tuple(input.shape)))
    check.one_of(data_format, "data_format", "image_resize", windows.LAYOUTS[axes])
    helper = LayerHelper(method + "_interp", name=name)
    inputs: dict[str, Any] = {"X": input}
    attrs: dict[str, Any] = {"out_d": -1, "out_h": -1, "out_w": -1, "interp_method": method,
                             "align_corners": align_corners, "align_mode": align_mode,
                             "data_layout": "NCHW" if data_format[1] == "C" else "NHWC"}
    if out_shape is not None:
        _add_shape(out_shape, axes, helper, inputs, attrs)
    else:
        _add_scale(scale, inputs, attrs)
    if actual_shape is not None:
        check.variable(actual_shape, "actual_shape", "image_resize")
        inputs["OutSize"] = _stopped(actual_shape)
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(type=method + "_interp", inputs=inputs, outputs={"Out": out}, attrs=attrs)
    return out


def resize_bilinear(input: Variable, out_shape: Sequence[Any] | Variable | None = None,
                    scale: float | Variable | None = None, name: str | None = None,
                    actual_shape: Variable | None = None, align_corners: bool = True, align_mode: int = 1,
                    data_format: str = "NCHW") -> Variable:
    """Resizes images by bilinear interpolation of the four nearest pixels: see :func:`image_resize`.

    Args:
        input (Variable): [N, C, H, W] or [N, H, W, C], float32, float64 or uint8.
        out_shape (list|tuple|Variable, optional): new extents, [H, W].
        scale (float|Variable, optional): ratio of the new extents to those of ``input``, above 0. Used if ``out_shape``
            is not given.
        name (str, optional): prefix of the output's name.
        actual_shape (Variable, optional): int32; replaces ``out_shape`` at run time.
        align_corners (bool): the outermost pixels of input and result coincide. Default True.
        align_mode (int): 0 or 1, as for :func:`image_resize`. Default 1.
        data_format (str): "NCHW" or "NHWC". Default "NCHW".

    Returns:
        Variable: the resized images.

    Raises:
        TypeError: an argument has the wrong type or dtype.
        ValueError: an argument has an invalid value, or neither ``out_shape`` nor ``scale`` is given.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.resize_bilinear(fluid.data("x", [None, 3, 6, 9], "float32"), scale=2.0).shape
        (-1, 3, 12, 18)
    """
    return image_resize(input, out_shape, scale, name, "BILINEAR", actual_shape, align_corners, align_mode, data_format)


def resize_trilinear(input: Variable, out_shape: Sequence[Any] | Variable | None = None,
                     scale: float | Variable | None = None, name: str | None = None,
                     actual_shape: Variable | None = None, align_corners: bool = True, align_mode: int = 1,
                     data_format: str = "NCDHW") -> Variable:
    """Resizes volumes by trilinear interpolation of the eight nearest elements: see :func:`image_resize`.

    Args:
        input (Variable): [N, C, D, H, W] or [N, D, H, W, C], float32, float64 or uint8.
        out_shape (list|tuple|Variable, optional): new extents, [D, H, W].
        scale (float|Variable, optional): ratio of the new extents to those of ``input``, above 0. Used if ``out_shape``
            is not given.
        name (str, optional): prefix of the output's name.
        actual_shape (Variable, optional): int32; replaces ``out_shape`` at run time.
        align_corners (bool): the outermost elements of input and result coincide. Default True.
        align_mode (int): 0 or 1, as for :func:`image_resize`. Default 1.
        data_format (str): "NCDHW" or "NDHWC". Default "NCDHW".

    Returns:
        Variable: the resized volumes.

    Raises:
        TypeError: an argument has the wrong type or dtype.
        ValueError: an argument has an invalid value, or neither ``out_shape`` nor ``scale`` is given.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.resize_trilinear(fluid.data("x", [None, 3, 2, 6, 9], "float32"), out_shape=[4, 6, 6]).shape
        (-1, 3, 4, 6, 6)
    """
    return image_resize(input, out_shape, scale, name, "TRILINEAR", actual_shape, align_corners, align_mode,
                        data_format)


def resize_nearest(input: Variable, out_shape: Sequence[Any] | Variable | None = None,
                   scale: float | Variable | None = None, name: str | None = None,
                   actual_shape: Variable | None = None, align_corners: bool = True,
                   data_format: str = "NCHW") -> Variable:
    """Resizes images. Each pixel of the result is the nearest pixel of ``input``: see :func:`image_resize`.

    Args:
        input (Variable): [N, C, H, W] or [N, H, W, C], float32, float64 or uint8.
        out_shape (list|tuple|Variable, optional): new extents, [H, W].
        scale (float|Variable, optional): ratio of the new extents to those of ``input``, above 0. Used if ``out_shape``
            is not given.
        name (str, optional): prefix of the output's name.
        actual_shape (Variable, optional): int32; replaces ``out_shape`` at run time.
        align_corners (bool): the outermost pixels of input and result coincide. Default True.
        data_format (str): "NCHW" or "NHWC". Default "NCHW".

    Returns:
        Variable: the resized images.

    Raises:
        TypeError: an argument has the wrong type or dtype.
        ValueError: an argument has an invalid value, or neither ``out_shape`` nor ``scale`` is given.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.resize_nearest(fluid.data("x", [None, 3, 6, 9], "float32"), out_shape=(3, 3)).shape
        (-1, 3, 3, 3)
    """
    return image_resize(input, out_shape, scale, name, "NEAREST", actual_shape, align_corners, 1, data_format)


def image_resize_short(input: Variable, out_short_len: int, resample: str = "BILINEAR") -> Variable:
    """Resizes images so that the shorter side gets a given extent. The aspect ratio does not change.

    Args:
        input (Variable): [N, C, H, W], float32, float64 or uint8.
        out_short_len (int): extent of the shorter side.
        resample (str): "BILINEAR" or "NEAREST". Default "BILINEAR".

    Returns:
        Variable: the resized images. The extent of the longer side is rounded to the nearest integer.

    Raises:
        TypeError: an argument has the wrong type or dtype.
        ValueError: ``input`` does not have 4 axes, or ``resample`` is unknown.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.image_resize_short(fluid.data("x", [None, 3, 6, 9], "float32"), out_short_len=4).shape
        (-1, 3, 4, 6)
    """
    check.operand(input, "input", "image_resize_short", "bilinear_interp")
    if len(input.shape) != 4:
        raise InvalidValue("image_resize_short: input must have 4 axes, got shape %s" % (tuple(input.shape),))
    extents = list(input.shape[2:])
    short = extents.index(min(extents))
    extents[1 - short] = int(float(extents[1 - short]) * (float(out_short_len) / float(extents[short])) + 0.5)
    extents[short] = out_short_len
    return image_resize(input, extents, resample=resample)


explain(globals())
