"""Layers that change the shape of a tensor or the order of its axes."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..errors import InvalidValue, Violated
from ..explained import explain
from ..framework import Variable
from ..layer_helper import LayerHelper
from . import check
from .shape_args import as_variables, has_variable, known

if TYPE_CHECKING:
    from ..hints import Shape

__all__ = [
    "reshape", "transpose", "squeeze", "unsqueeze", "flatten",
]


def _with_shadow(op, inputs, attrs, x, name=None, act=None, layer=None, out=None):
    """Appends an op that also writes XShape, the shape of its input for the backward pass."""
    helper = LayerHelper(layer or op, name=name, act=act)
    out = helper.create_variable_for_type_inference(x.dtype) if out is None else out
    shadow = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op(type=op, inputs=inputs, attrs=attrs, outputs={"Out": out, "XShape": shadow})
    return helper.append_activation(out) if act is not None else out


def reshape(x: Variable, shape: Shape, actual_shape: Variable | None = None, act: str | None = None,
            inplace: bool = False, name: str | None = None) -> Variable:
    """Changes the shape and keeps the elements.

    Args:
        x (Variable): [...], any dtype.
        shape (list|tuple|Variable): the new extents. One extent may be -1 and is computed from the others; a 0 copies
            the extent of ``x`` on the same axis. Entries may be Variables of shape [1]. A single int32 Variable may
            hold all extents.
        actual_shape (Variable, optional): int32; replaces ``shape`` at run time.
        act (str, optional): activation applied to the result.
        inplace (bool): returns ``x`` itself with the new shape. Default False.
        name (str, optional): prefix of the generated names.

    Returns:
        Variable: dtype of ``x``.

    Raises:
        TypeError: an argument has the wrong type.
        AssertionError: ``shape`` has more than one -1, another negative extent, or a 0 for an axis that ``x`` does not
            have.
        EnforceNotMet: the number of elements differs.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4, 6], "float32")
        >>> fluid.layers.reshape(x, [-1, 24]).shape, fluid.layers.reshape(x, [0, 0, 3, 2]).shape
        ((-1, 24), (-1, 4, 3, 2))
    """
    check.variable(x, "x", "reshape")
    check.of_type(shape, "shape", "reshape", (list, tuple, Variable))
    check.of_type(actual_shape, "actual_shape", "reshape", (Variable, type(None)))
    helper = LayerHelper("reshape2", act=act, name=name)
    inputs, attrs = {"X": x}, {}
    if isinstance(shape, Variable):
        shape.stop_gradient = True
        inputs["Shape"] = shape
    else:
        if not shape:
            raise Violated("reshape: shape must have at least one entry")
        _check_reshape(x, shape)
        attrs["shape"] = known(shape)
        if has_variable(shape):
            inputs["ShapeTensor"] = as_variables(shape, helper)
        elif isinstance(actual_shape, Variable):
            actual_shape.stop_gradient = True
            inputs["Shape"] = actual_shape
    out = x if inplace else helper.create_variable_for_type_inference(x.dtype)
    shadow = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op(type="reshape2", inputs=inputs, attrs=attrs, outputs={"Out": out, "XShape": shadow})
    return helper.append_activation(out)


def _check_reshape(x, shape):
    computed = None
    for i, extent in enumerate(shape):
        if isinstance(extent, Variable):
            continue
        if extent == -1:
            if computed is not None:
                raise Violated("reshape: only one extent may be -1, got shape[%d] and shape[%d]" % (computed, i))
            computed = i
        elif extent == 0:
            if i >= len(x.shape):
                raise Violated("reshape: shape[%d] must not be 0, because x has no axis %d (shape %s)"
                               % (i, i, tuple(x.shape)))
        elif extent < 0:
            raise Violated("reshape: extents must not be negative, except for one -1, got shape[%d] = %s" % (i, extent))


def transpose(x: Variable, perm: Sequence[Any], name: str | None = None) -> Variable:
    """Permutes the axes: axis i of the result is axis perm[i] of ``x``.

    Args:
        x (Variable): [...], any number type.
        perm (list): each axis of ``x`` once, in the new order.
        name (str, optional): prefix of the generated names.

    Returns:
        Variable: dtype of ``x``.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: ``perm`` has the wrong length or contains an axis that ``x`` does not have.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.transpose(fluid.data("x", [2, 3, 4], "float32"), perm=[2, 0, 1]).shape
        (4, 2, 3)
    """
    check.variable(x, "x", "transpose", ("float16", "float32", "float64", "int32", "int64"))
    check.of_type(perm, "perm", "transpose", list)
    if len(perm) != len(x.shape):
        raise InvalidValue("transpose: perm must have one entry per axis of x, %d, got %d"
                           % (len(x.shape), len(perm)))
    for i, axis in enumerate(perm):
        if axis >= len(x.shape):
            raise InvalidValue("transpose: perm[%d] must be an axis of x, below %d, got %d" % (i, len(x.shape), axis))
    return _with_shadow("transpose2", {"X": [x]}, {"axis": perm}, x, name, layer="transpose")


def squeeze(input: Variable, axes: Sequence[Any], name: str | None = None) -> Variable:
    """Removes axes of extent 1.

    Args:
        input (Variable): [...], any number type.
        axes (list): axes to remove. An empty list removes all axes of extent 1. Negative axes count from the last one.
        name (str, optional): prefix of the generated names.

    Returns:
        Variable: dtype of ``input``.

    Raises:
        TypeError: an argument has the wrong type.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.squeeze(fluid.data("x", [None, 1, 4], "float32"), axes=[1]).shape
        (-1, 4)
    """
    check.variable(input, "input", "squeeze")
    check.of_type(axes, "axes", "squeeze", (list, tuple))
    return _with_shadow("squeeze2", {"X": input}, {"axes": list(axes)}, input, name, layer="squeeze")


def unsqueeze(input: Variable, axes: int | Sequence[Any] | Variable, name: str | None = None) -> Variable:
    """Inserts axes of extent 1.

    Args:
        input (Variable): [...], any number type.
        axes (int|list|tuple|Variable): positions of the new axes, inserted one after another: each position counts the
            axes inserted before it.
        name (str, optional): prefix of the generated names.

    Returns:
        Variable: dtype of ``input``.

    Raises:
        TypeError: an argument has the wrong type.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.unsqueeze(fluid.data("x", [None, 4], "float32"), axes=[1]).shape
        (-1, 1, 4)
    """
    check.variable(input, "input", "unsqueeze")
    check.of_type(axes, "axes", "unsqueeze", (int, list, tuple, Variable))
    helper = LayerHelper("unsqueeze2", name=name)
    inputs, attrs = {"X": input}, {}
    if isinstance(axes, int):
        axes = [axes]
    if isinstance(axes, Variable):
        axes.stop_gradient = True
        inputs["AxesTensor"] = axes
    elif has_variable(axes):
        inputs["AxesTensorList"] = as_variables(axes, helper)
    else:
        attrs["axes"] = list(axes)
    out = helper.create_variable_for_type_inference(input.dtype)
    shadow = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(type="unsqueeze2", inputs=inputs, attrs=attrs, outputs={"Out": out, "XShape": shadow})
    return out


def flatten(x: Variable, axis: int = 1, name: str | None = None) -> Variable:
    """Reshapes a tensor to a matrix: the first ``axis`` axes become the rows, the others the columns.

    Args:
        x (Variable): [...], float32, float64, int8, int32 or int64.
        axis (int): in [0, number of axes]. Default 1.
        name (str, optional): prefix of the generated names.

    Returns:
        Variable: two axes, dtype of ``x``.

    Raises:
        ValueError: ``axis`` is out of range.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.flatten(fluid.data("x", [2, 3, 4], "float32"), axis=2).shape
        (6, 4)
    """
    check.variable(x, "x", "flatten", ("float32", "float64", "int8", "int32", "int64"))
    if not isinstance(axis, int) or axis > len(x.shape) or axis < 0:
        raise InvalidValue("flatten: axis must be an int in [0, %d], got %r" % (len(x.shape), axis))
    return _with_shadow("flatten2", {"X": x}, {"axis": axis}, x, name, layer="flatten")


explain(globals())
