"""Selection of one of several variables by an index. ``cond`` joins its branches with these operators."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..framework import Variable
from ..layer_helper import LayerHelper
from . import check

__all__: list[str] = []


def _checked(function, argument, variables, mask):
    check.of_type(variables, argument, function, (list, tuple))
    for variable in variables:
        check.of_type(variable, argument, function, (Variable,))
    check.variable(mask, "mask", function, ("int32",))


def select_input(inputs: Sequence[Variable], mask: Variable) -> Variable:
    """Returns the input with the index ``mask``.

    Args:
        inputs (list of Variable): variables of one dtype and kind.
        mask (Variable): [1], int32: the index.

    Returns:
        Variable: the selected one.

    Raises:
        TypeError: an argument has the wrong type.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> a, b = (fluid.layers.fill_constant([1], "float32", value) for value in (2.0, 3.0))
        >>> chosen = select_input([a, b], fluid.layers.fill_constant([1], "int32", 1))
        >>> fluid.Executor().run(fetch_list=[chosen])[0].tolist()
        [3.0]
    """
    _checked("select_input", "inputs", inputs, mask)
    first = inputs[0]
    helper = LayerHelper("select_input")
    out = helper.create_variable(dtype=first.dtype, shape=first.shape, type=first.type)
    helper.append_op(type="select_input", inputs={"X": list(inputs), "Mask": mask}, outputs={"Out": out})
    return out


def select_output(input: Variable, outputs: Sequence[Variable], mask: Variable) -> Any:
    """Copies a variable to the output with the index ``mask``. The other outputs keep their values.

    Args:
        input (Variable): variable to copy.
        outputs (list of Variable): existing variables.
        mask (Variable): [1], int32: the index.

    Returns:
        list of Variable: ``outputs``.

    Raises:
        TypeError: an argument has the wrong type.
    """
    check.of_type(input, "input", "select_output", (Variable,))
    _checked("select_output", "outputs", outputs, mask)
    LayerHelper("select_output").append_op(type="select_output", inputs={"X": input, "Mask": mask},
                                           outputs={"Out": list(outputs)})
    return outputs
