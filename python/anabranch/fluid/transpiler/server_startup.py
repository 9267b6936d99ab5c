"""How a server starts: the part of the startup program that fills what it keeps."""
from __future__ import annotations

from typing import Any

from ..framework import Program
from .copying import copy_var, plain_attrs
from .delay import backup
from .modes import Mode
from .pieces import Piece, elements
from .placement import Placement

#: Attributes of ``assign_value`` that hold the values.
_VALUES = ("fp32_values", "int32_values", "int64_values", "bool_values")


def server_startup(startup: Any, server: Any, placement: Placement, mode: Mode, endpoint: str) -> Any:
    """Program: fills the variables of a server's program as ``startup`` fills the whole ones."""
    made = Program()
    made.random_seed = startup.random_seed
    block = made.global_block()
    for var in server.global_block().vars.values():
        copy_var(block, var)
    pieces: dict[str, list[Piece]] = {}
    for piece in placement.on(endpoint):
        pieces.setdefault(piece.param, []).append(piece)
    for op in startup.global_block().ops:
        for names, piece in _targets(op, pieces, block):
            _fill(block, op, names, piece)
    if mode.dc_asgd:
        for piece in placement.on(endpoint):
            for trainer in range(mode.trainers):
                block.append_op(type="assign", inputs={"X": [piece.name]},
                                outputs={"Out": [backup(piece.name, trainer)]})
    return made


def _targets(op: Any, pieces: dict[str, list[Piece]], block: Any) -> list[Any]:
    """What an op of the startup program fills on this server: [(names, piece)]."""
    outs = op.output_arg_names
    if not outs:
        return []
    name = outs[0]
    found = []
    for param, parts in pieces.items():
        for piece in parts:
            own = "%s.%s" % (name, piece.name.rsplit(".", 1)[-1])
            if param == name:
                found.append(({name: piece.name}, piece))
            elif len(parts) > 1 and block.has_var(own):
                found.append(({name: own}, piece))
    return found or ([({}, None)] if block.has_var(name) else [])


def _fill(block: Any, op: Any, names: dict[str, str], piece: Piece | None) -> None:
    attrs = plain_attrs(op)
    outputs = {slot: [names.get(n, n) for n in op.output(slot)] for slot in op.output_names}
    target = block.var(outputs[op.output_names[0]][0])
    if op.has_attr("shape"):
        if op.type == "assign_value" and piece is not None:
            _cut_values(attrs, piece, op.attr("shape"))
        attrs["shape"] = list(target.shape)
    inputs = {slot: op.input(slot) for slot in op.input_names}
    for name in op.input_arg_names:
        copy_var(block, op.block.var(name))
    block.append_op(type=op.type, inputs=inputs, outputs=outputs, attrs=attrs)


def _cut_values(attrs: dict[str, Any], piece: Piece, whole: Any) -> None:
    width = elements(whole[1:])
    for name in _VALUES:
        if attrs.get(name):
            attrs[name] = attrs[name][piece.begin * width:(piece.begin + piece.rows) * width]
