"""Layers that move elements along axes, and grids of coordinates."""
from __future__ import annotations

from collections.abc import Sequence

from ..explained import explain
from ..framework import Variable
from ..layer_helper import LayerHelper
from . import check
from .shapes import reshape

__all__ = ["roll", "flip", "meshgrid"]


def roll(input: Variable, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None) -> Variable:
    """Moves elements along axes. Elements that leave at one end reappear at the other.

    Args:
        input (Variable): [...], float32, float64, int32 or int64.
        shifts (int|list|tuple): number of positions by which elements move, one for each of ``dims``. Negative numbers
            move backwards.
        dims (int|list|tuple, optional): axes, in [-rank, rank). By default, the elements move in their order in memory,
            across the ends of all axes.

    Returns:
        Variable: shape and dtype of ``input``.

    Raises:
        TypeError: an argument has the wrong type or dtype.
        ValueError: the lengths of ``shifts`` and ``dims`` differ, or an axis is out of range.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.roll(fluid.data("x", [3, 4], "float32"), shifts=1, dims=0).shape
        (3, 4)
    """
    check.operand(input, "input", "roll")
    helper = LayerHelper("roll")
    shape = list(input.shape)
    shifts = [shifts] if isinstance(shifts, int) else list(shifts)
    if dims is None:
        input, dims = reshape(input, shape=[-1, 1]), [0]
    dims = [dims] if isinstance(dims, int) else list(dims)
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(type="roll", inputs={"X": input}, outputs={"Out": out}, attrs={"dims": dims, "shifts": shifts})
    return reshape(out, shape=shape, inplace=True)


def flip(input: Variable, dims: Sequence[int], name: str | None = None) -> Variable:
    """Reverses the order of elements along some axes.

    Args:
        input (Variable): [...], float32, float64, int32, int64 or bool.
        dims (list|tuple): axes, in [-rank, rank).
        name (str, optional): name of the result.

    Returns:
        Variable: shape and dtype of ``input``.

    Raises:
        TypeError: an argument has the wrong type or dtype.
        ValueError: there is no axis, or an axis is repeated or out of range.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.flip(fluid.data("x", [3, 4], "float32"), dims=[0, 1]).shape
        (3, 4)
    """
    check.operand(input, "input", "flip")
    check.of_type(dims, "dims", "flip", (list, tuple))
    helper = LayerHelper("flip", name=name)
    if name is None:
        out = helper.create_variable_for_type_inference(input.dtype)
    else:
        out = helper.create_variable(name=name, dtype=input.dtype, persistable=False)
    helper.append_op(type="flip", inputs={"X": input}, outputs={"Out": out}, attrs={"dims": list(dims)})
    return out


def meshgrid(input: Sequence[Variable], name: str | None = None) -> list[Variable]:
    """Creates the coordinates of the points of a grid: result i contains the coordinate on axis i of each point.

    Args:
        input (list): 1 to 6 Variables [n] of one dtype, float32, float64, int32 or int64: the coordinates on each axis.
        name (str, optional): prefix of the results' names.

    Returns:
        list: one Variable for each one of ``input``, with the shape [n of input[0], n of input[1], ...].

    Raises:
        TypeError: an argument has the wrong type or dtype.
        ValueError: there are more than six Variables, or one has several axes.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, y = fluid.data("x", [3], "float32"), fluid.data("y", [5], "float32")
        >>> [v.shape for v in fluid.layers.meshgrid([x, y])]
        [(3, 5), (3, 5)]
    """
    check.of_type(input, "input", "meshgrid", list)
    check.operands(input, "input", "meshgrid")
    helper = LayerHelper("meshgrid", name=name)
    outs = [helper.create_variable_for_type_inference(v.dtype) for v in input]
    helper.append_op(type="meshgrid", inputs={"X": input}, outputs={"Out": outs})
    return outs


explain(globals())
