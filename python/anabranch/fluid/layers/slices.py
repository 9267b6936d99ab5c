"""Slices of tensors."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import InvalidType, also
from ..explained import explain
from ..framework import Variable
from ..layer_helper import LayerHelper
from . import check
from .shape_args import as_variables, has_variable, known

__all__ = [
    "slice", "strided_slice",
]


def add_bounds(inputs: Any, attrs: Any, helper: Any, flags: Any, name: str, values: Any) -> None:
    """Passes starts, ends or strides of a slice to the op. An entry of ``flags`` becomes -1 if its bound is a
    Variable."""
    slot = name.capitalize()
    if isinstance(values, Variable):
        values.stop_gradient = True
        inputs[slot + "Tensor"] = values
        flags[:] = [-1] * len(flags)
        return
    attrs[name] = known(values)
    if has_variable(values):
        inputs[slot + "TensorList"] = as_variables(values, helper)
        for i, value in enumerate(values):
            if isinstance(value, Variable):
                flags[i] = -1


def _sliced(op, input, axes, bounds):
    check.variable(input, "input", op)
    for name, values in bounds:
        if not isinstance(values, (list, tuple, Variable)):
            raise also(InvalidType, ValueError)("%s: %s must be a list, tuple or Variable, got %s"
                                                % (op, name, type(values).__name__))
    if not isinstance(axes, (list, tuple)):
        raise InvalidType("%s: axes must be a list of ints, got %r" % (op, axes))
    helper = LayerHelper(op)
    flags = [1] * len(axes)
    inputs, attrs = {"Input": input}, {"axes": list(axes)}
    for name, values in bounds:
        add_bounds(inputs, attrs, helper, flags, name, values)
    attrs["infer_flags"] = flags
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(type=op, inputs=inputs, attrs=attrs, outputs={"Out": out})
    return out


def slice(input: Variable, axes: Sequence[Any], starts: Sequence[Any] | Variable,
          ends: Sequence[Any] | Variable) -> Variable:
    """Slices a tensor: along axes[i], takes the elements from starts[i] up to, but excluding ends[i].

    Args:
        input (Variable): [...], any dtype.
        axes (list|tuple): axes to slice.
        starts (list|tuple|Variable): first position on each axis. Negative numbers count from the end, and numbers
            beyond the extent are clipped. Entries may be Variables of shape [1].
        ends (list|tuple|Variable): end on each axis, which is excluded, in the same forms.

    Returns:
        Variable: dtype of ``input``.

    Raises:
        TypeError: an argument has the wrong type.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [3, 4, 5], "float32")
        >>> fluid.layers.slice(x, axes=[1, 2], starts=[0, -3], ends=[2, 100]).shape
        (3, 2, 3)
    """
    return _sliced("slice", input, axes, (("starts", starts), ("ends", ends)))


def strided_slice(input: Variable, axes: Sequence[Any], starts: Sequence[Any] | Variable,
                  ends: Sequence[Any] | Variable, strides: Sequence[Any] | Variable) -> Variable:
    """Like :func:`slice`, but takes every strides[i]-th element. A negative stride goes backwards.

    Args:
        input (Variable): [...], any dtype.
        axes (list|tuple): axes to slice.
        starts (list|tuple|Variable): first position on each axis.
        ends (list|tuple|Variable): end on each axis, which is excluded.
        strides (list|tuple|Variable): stride on each axis, not 0.

    Returns:
        Variable: dtype of ``input``.

    Raises:
        TypeError: an argument has the wrong type.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [3, 4, 5], "float32")
        >>> fluid.layers.strided_slice(x, [1, 2], [0, 0], [4, 5], [2, 3]).shape
        (3, 2, 2)
    """
    return _sliced("strided_slice", input, axes, (("starts", starts), ("ends", ends), ("strides", strides)))


explain(globals())
