"""Copying variables and ops from one program into another."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..framework.dtype import VarType

_SHAPED = (VarType.LOD_TENSOR, VarType.SELECTED_ROWS)


def copy_var(block: Any, var: Any, persistable: bool = True, name: str | None = None, shape: Any = None) -> Any:
    """Variable: a copy of ``var`` in ``block``, or the variable of that name if the block already has one."""
    name = name or var.name
    if block.has_var(name):
        return block.var(name)
    if var.type not in _SHAPED:
        return block.create_var(name=name, type=var.type, persistable=False)
    return block.create_var(name=name, type=var.type, dtype=var.dtype, persistable=persistable,
                            shape=var.shape if shape is None else shape, lod_level=var._var.lod_level)


def plain_attrs(op: Any) -> dict[str, Any]:
    """dict: the attributes of an op."""
    return {name: op.attr(name) for name in op.attr_names}


def copy_op(op: Any, block: Any, names: Mapping[str, str], attrs: Mapping[str, Any] | None = None) -> Any:
    """Operator: a copy at the end of ``block``, with its arguments renamed by ``names``."""
    inputs = {slot: [names.get(n, n) for n in op.input(slot)] for slot in op.input_names}
    outputs = {slot: [names.get(n, n) for n in op.output(slot)] for slot in op.output_names}
    return block.append_op(type=op.type, inputs=inputs, outputs=outputs, attrs={**plain_attrs(op), **(attrs or {})})
