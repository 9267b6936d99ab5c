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
    targets = _targets(server, placement.on(endpoint))
    for op in startup.global_block().ops:
        for name in op.output_arg_names[:1]:
            for own, piece in targets.get(name, ()):
                _fill(block, op, {name: own}, piece)
    if mode.dc_asgd:
        for piece in placement.on(endpoint):
            for trainer in range(mode.trainers):
                block.append_op(type="assign", inputs={"X": [piece.name]},
                                outputs={"Out": [backup(piece.name, trainer)]})
    return made


def _targets(server: Any, pieces: list[Piece]) -> dict[str, list[tuple[str, Piece | None]]]:
    """Variable of the whole program -> what stands for it on this server: [(name, piece)]."""
    by_name = {piece.name: piece for piece in pieces}
    found: dict[str, list[tuple[str, Piece | None]]] = {}
    for name in server.global_block().vars:
        piece = by_name.get(name)
        whole, _, last = name.rpartition(".")
        if piece is not None:
            found.setdefault(piece.param, []).append((name, piece))
        elif last.startswith("block") and last[5:].isdigit():  # state of one of several pieces
            found.setdefault(whole, []).append((name, None))
        else:
            found.setdefault(name, []).append((name, None))
    return found


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
