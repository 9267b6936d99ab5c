"""Helpers of the layers that move a window over images or volumes."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..errors import InvalidValue
from . import check

if TYPE_CHECKING:
    from ..framework import Variable
    from ..layer_helper import LayerHelper

#: Layouts by the number of axes of an image or volume.
LAYOUTS = {2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}


def channels(input: Variable, layer: str, axes: int, data_format: str) -> int:
    """Returns the number of channels, which must be known."""
    check.one_of(data_format, "data_format", layer, LAYOUTS[axes])
    if len(input.shape) != axes + 2:
        raise InvalidValue("%s: input must have %s axes, got shape %s"
                           % (layer, "four" if axes == 2 else "five", tuple(input.shape)))
    found = input.shape[data_format.index("C")]
    if found < 0:
        raise InvalidValue("%s: the number of channels must be known when the program is built, got shape %s"
                           % (layer, tuple(input.shape)))
    return found


def padding(given: int | Sequence[Any] | str, argument: str, layer: str, axes: int,
            data_format: str) -> tuple[str, list[int]]:
    """Converts any accepted form to (algorithm, [before and after on each axis] or [one number per axis])."""
    if isinstance(given, str):
        algorithm = given.upper()
        check.one_of(algorithm, argument, layer, ("SAME", "VALID"))
        return algorithm, [0] * axes
    if isinstance(given, (list, tuple)) and given and isinstance(given[0], (list, tuple)):
        pairs = [list(p) for p in given]
        first = 2 if data_format[1] == "C" else 1
        spatial, others = pairs[first:first + axes], pairs[:first] + pairs[first + axes:]
        if len(pairs) != axes + 2 or any(p != [0, 0] for p in others):
            raise InvalidValue("%s: %s must be %s pairs, with zeros for batch and channel, got %r"
                               % (layer, argument, "four" if axes == 2 else "five", given))
        given = [extent for pair in spatial for extent in pair]
    both = isinstance(given, (list, tuple)) and len(given) == 2 * axes
    numbers = check.ints(given, 2 * axes if both else axes, argument, layer)
    if both and numbers[::2] == numbers[1::2]:
        numbers = numbers[::2]
    return "EXPLICIT", numbers


def with_bias(helper: LayerHelper, out: Variable, data_format: str) -> Variable:
    """Adds a bias for each channel to ``out``, and applies the activation of the layer."""
    axis = data_format.index("C")
    return helper.append_activation(helper.append_bias_op(out, dim_start=axis, dim_end=axis + 1))
