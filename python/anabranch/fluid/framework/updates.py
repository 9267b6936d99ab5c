"""Whether a program trains."""
from __future__ import annotations

from typing import Any

from .context import OpRole

_TRAINS = OpRole.Backward | OpRole.Optimize | OpRole.RPC


def trains(program: Any) -> bool:
    """bool: whether an operator of a Program computes gradients, updates parameters or sends them, or writes a
    Parameter in another way.

    Args:
        program (Program): a program.
    """
    parameters = {parameter.name for parameter in program.all_parameters()}
    blocks = (program.desc.block(k) for k in range(program.desc.num_blocks()))
    return any((op.has_attr("op_role") and op.attr("op_role") & _TRAINS)
               or not parameters.isdisjoint(op.output_arg_names()) for block in blocks for op in block.ops())
