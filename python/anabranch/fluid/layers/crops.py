"""Crops of tensors, and grids of sampling positions."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import InvalidType, InvalidValue
from ..explained import explain
from ..framework import Variable
from ..layer_helper import LayerHelper
from . import check
from .check import one_op
from .shape_args import as_variables, has_variable, known

__all__ = ["affine_grid", "crop", "crop_tensor"]


def crop(x: Variable, shape: Sequence[int] | Variable | None = None, offsets: Sequence[int] | Variable | None = None,
         name: str | None = None) -> Variable:
    """Crops a tensor to the part that starts at ``offsets``.

    Args:
        x (Variable): at most 6 axes, float32.
        shape (list|tuple|Variable): extents of the result. -1: the extent of ``x``. The shape of a Variable is
            used, not its values.
        offsets (list|tuple|Variable, optional): start of the part on each axis. A Variable must be int32. Default:
            zeros.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: the cropped tensor.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.crop(fluid.data("x", [4, 6], "float32"), shape=[2, 3], offsets=[1, 2]).shape
        (2, 3)
    """
    check.operand(x, "x", "crop")
    check.of_type(shape, "shape", "crop", (list, tuple, Variable))
    inputs: dict[str, Any] = {"X": x}
    attrs: dict[str, Any] = {}
    if isinstance(shape, Variable):
        inputs["Y"] = shape
    else:
        attrs["shape"] = list(shape or ())
    if isinstance(offsets, Variable):
        inputs["Offsets"] = offsets
    else:
        attrs["offsets"] = [0] * len(x.shape) if offsets is None else list(offsets)
    return one_op("crop", inputs, attrs, name=name)


def _entry(value: Any, argument: str, low: int, refused: int | None = None) -> None:
    """Checks an entry of shape or offsets of crop_tensor: a Variable, or an int of at least ``low``."""
    if isinstance(value, Variable):
        return
    if not isinstance(value, int):
        raise InvalidType("crop_tensor: %s must hold ints or Variables, got %s" % (argument, type(value).__name__))
    if value < low or value == refused:
        raise InvalidValue("crop_tensor: %s must hold ints from %d on%s, got %r"
                           % (argument, low, "" if refused is None else " but %d" % refused, value))


def _add(values: Any, attr: str, slots: tuple[str, str], unknown: int, inputs: dict[str, Any], attrs: dict[str, Any],
         helper: LayerHelper, rank: int) -> None:
    """Passes a list or a Variable to the op as an attribute, as one tensor or as a list of tensors."""
    if isinstance(values, Variable):
        values.stop_gradient = True
        inputs[slots[0]] = values
        if attr == "offsets":
            attrs[attr] = [-1] * rank
        return
    attrs[attr] = known(values, unknown)
    if has_variable(values):
        inputs[slots[1]] = as_variables(values, helper)


def crop_tensor(x: Variable, shape: Sequence[Any] | Variable | None = None,
                offsets: Sequence[Any] | Variable | None = None, name: str | None = None) -> Variable:
    """Crops a tensor to the part that starts at ``offsets``. Unlike in :func:`crop`, single extents may be Variables.

    Args:
        x (Variable): at most 6 axes, float32, float64, int32 or int64.
        shape (list|tuple|Variable): extents of the result. -1: up to the end of ``x``. Entries may be int32 Variables
            of shape [1]. A single int32 Variable may hold all extents.
        offsets (list|tuple|Variable, optional): start of the part on each axis, in the same forms. Default: zeros.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: the cropped tensor.

    Raises:
        TypeError: an argument has the wrong type or dtype.
        ValueError: an extent is 0 or below -1, or an offset is negative.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.crop_tensor(fluid.data("x", [4, 6], "float32"), shape=[2, -1], offsets=[1, 2]).shape
        (2, 4)
    """
    check.operand(x, "x", "crop_tensor")
    check.of_type(shape, "shape", "crop_tensor", (list, tuple, Variable))
    check.of_type(offsets, "offsets", "crop_tensor", (list, tuple, Variable, type(None)))
    begin: Any = [0] * len(x.shape) if offsets is None else offsets
    for value in () if isinstance(begin, Variable) else begin:
        _entry(value, "offsets", 0)
    for value in () if isinstance(shape, Variable) else shape or ():
        _entry(value, "shape", -1, refused=0)
    helper = LayerHelper("crop_tensor", name=name)
    out = helper.create_variable_for_type_inference(x.dtype)
    inputs: dict[str, Any] = {"X": x}
    attrs: dict[str, Any] = {}
    _add(begin, "offsets", ("Offsets", "OffsetsTensor"), -1, inputs, attrs, helper, len(x.shape))
    _add(shape, "shape", ("Shape", "ShapeTensor"), 0, inputs, attrs, helper, len(x.shape))
    helper.append_op(type="crop_tensor", inputs=inputs, outputs={"Out": out}, attrs=attrs)
    return out


def affine_grid(theta: Variable, out_shape: Sequence[int] | Variable, name: str | None = None) -> Variable:
    """Computes the positions at which affine transformations sample images, for :func:`grid_sampler`.

    out[n, h, w] = theta[n] (x, y, 1), where x and y are the column w and the row h, scaled to [-1, 1].

    Args:
        theta (Variable): [N, 2, 3], float32 or float64.
        out_shape (list|tuple|Variable): shape [N, C, H, W] of the transformed images. A Variable must be int32.
        name (str, optional): has no effect.

    Returns:
        Variable: [N, H, W, 2]; H and W are unknown while the program is built.

    Raises:
        TypeError: ``theta`` has the wrong type or dtype.
        ValueError: ``out_shape`` has the wrong type.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.affine_grid(fluid.data("theta", [None, 2, 3], "float32"), out_shape=[4, 3, 8, 8]).shape
        (-1, -1, -1, 2)
    """
    check.operand(theta, "theta", "affine_grid")
    if isinstance(out_shape, Variable):
        return one_op("affine_grid", {"Theta": theta, "OutputShape": out_shape}, out="Output")
    if not isinstance(out_shape, (list, tuple)):
        raise InvalidValue("affine_grid: out_shape must be a list, a tuple or a Variable, got %r" % (out_shape,))
    return one_op("affine_grid", {"Theta": theta}, {"output_shape": list(out_shape)}, out="Output")


explain(globals())
