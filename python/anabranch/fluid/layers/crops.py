"""Parts of tensors at a place, and grids of places."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import InvalidType, InvalidValue
from ..framework import Variable
from ..layer_helper import LayerHelper
from . import check
from .check import one_op
from .shape_args import as_variables, has_variable, known

__all__ = ["affine_grid", "crop", "crop_tensor"]


def crop(x: Variable, shape: Sequence[int] | Variable | None = None, offsets: Sequence[int] | Variable | None = None,
         name: str | None = None) -> Variable:
    """Crops a tensor: the part that starts at ``offsets``.

    Args:
        x (Variable): at most 6 axes, float32 or float64.
        shape (list|tuple|Variable): extents of the part; -1: that of ``x``. A Variable gives its own extents.
        offsets (list|tuple|Variable, optional): start of the part on each axis; a Variable is int32. Default zeros.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: the part.

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
    """An entry of shape or offsets of crop_tensor: a Variable or an int from ``low`` on."""
    if isinstance(value, Variable):
        return
    if not isinstance(value, int):
        raise InvalidType("crop_tensor: %s must hold ints or Variables, got %s" % (argument, type(value).__name__))
    if value < low or value == refused:
        raise InvalidValue("crop_tensor: %s must hold ints from %d on%s, got %r"
                           % (argument, low, "" if refused is None else " but %d" % refused, value))


def _add(values: Any, attr: str, slots: tuple[str, str], unknown: int, inputs: dict[str, Any], attrs: dict[str, Any],
         helper: LayerHelper, rank: int) -> None:
    """Puts a list or a Variable where the op takes it: attribute, slot of one tensor, slot of a list of tensors."""
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
    """Crops a tensor to the part that starts at ``offsets``, with extents that may be known only in the run.

    Args:
        x (Variable): at most 6 axes, float32, float64, int32 or int64.
        shape (list|tuple|Variable): extents of the part; -1: to the end of ``x``. Entries may be int32 Variables of
            shape [1]; the whole may be an int32 Variable.
        offsets (list|tuple|Variable, optional): start of the part on each axis, likewise. Default zeros.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: the part.

    Raises:
        TypeError: an argument has the wrong type or dtype.
        ValueError: an extent of 0 or below -1, a negative offset.

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
    """The places at which affine transformations of images read the original ones, for :func:`grid_sampler`.

    out[n, h, w] = theta[n] (x, y, 1), x and y the column w and the row h between -1 and 1.

    Args:
        theta (Variable): [N, 2, 3], float32 or float64.
        out_shape (list|tuple|Variable): [N, C, H, W] of the images that are to be made; a Variable is int32.
        name (str, optional): no effect.

    Returns:
        Variable: [N, H, W, 2]; H and W are unknown while the program is built.

    Raises:
        TypeError: ``theta`` is of another class or dtype.
        ValueError: ``out_shape`` is of another class.

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
