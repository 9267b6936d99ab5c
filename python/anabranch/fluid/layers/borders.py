"""Layers that repeat tensors along their axes or add borders to images."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import Violated
from ..explained import explain
from ..framework import Variable
from ..layer_helper import LayerHelper
from . import check
from .check import one_op
from .shape_args import as_variables, has_variable, known

__all__ = [
    "expand", "pad2d",
]


def expand(x: Variable, expand_times: Sequence[Any] | Variable, name: str | None = None) -> Variable:
    """Repeats a tensor along each axis.

    Args:
        x (Variable): at most 6 axes, bool, float32, float64, int32 or int64.
        expand_times (list|tuple|Variable): number of repetitions along each axis, at least 1. Entries may be Variables
            of shape [1].
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: dtype of ``x``.

    Raises:
        TypeError: an argument has the wrong type.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.expand(fluid.data("x", [2, 3], "float32"), expand_times=[1, 2]).shape
        (2, 6)
    """
    check.variable(x, "x", "expand", ("bool", "float32", "float64", "int32", "int64"))
    check.of_type(expand_times, "expand_times", "expand", (list, tuple, Variable))
    helper = LayerHelper("expand", name=name)
    inputs: dict[str, Any] = {"X": [x]}
    attrs: dict[str, Any] = {}
    if isinstance(expand_times, Variable):
        expand_times.stop_gradient = True
        inputs["ExpandTimes"] = expand_times
    else:
        if any(isinstance(v, int) and v <= 0 for v in expand_times):
            raise Violated("expand: expand_times must hold positive ints, got %r" % (expand_times,))
        attrs["expand_times"] = known(expand_times)
        if has_variable(expand_times):
            inputs["expand_times_tensor"] = as_variables(expand_times, helper)
    out = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op(type="expand", inputs=inputs, outputs={"Out": out}, attrs=attrs)
    return out


def pad2d(input: Variable, paddings: Sequence[Any] | Variable = [0, 0, 0, 0], mode: str = "constant",  # noqa: B006
          pad_value: float = 0.0, data_format: str = "NCHW", name: str | None = None) -> Variable:
    """Adds a border to images.

    Args:
        input (Variable): [N, C, H, W] or [N, H, W, C], float32 or float64.
        paddings (list|tuple|Variable): [top, bottom, left, right]. Default zeros.
        mode (str): "constant", "reflect" (mirrored without the edge) or "edge" (repeated). Default "constant".
        pad_value (float): value of a constant border. Default 0.
        data_format (str): "NCHW" or "NHWC". Default "NCHW".
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: dtype of ``input``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.pad2d(fluid.data("x", [None, 3, 8, 8], "float32"), [1, 2, 0, 1], mode="edge").shape
        (-1, 3, 11, 9)
    """
    check.operand(input, "input", "pad2d")
    inputs: dict[str, Any] = {"X": input}
    attrs: dict[str, Any] = {"mode": mode, "pad_value": float(pad_value), "data_format": data_format}
    if isinstance(paddings, Variable):
        inputs["Paddings"] = paddings
    else:
        attrs["paddings"] = list(paddings)
    return one_op("pad2d", inputs, attrs, name=name)


explain(globals())
