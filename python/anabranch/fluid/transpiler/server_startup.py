"""The startup program of a server, which initializes the variables that it keeps."""
from __future__ import annotations

from typing import Any

from ..framework import Program
from ..growable_table import MAKER
from .copying import copy_var, plain_attrs
from .delay import backup
from .modes import Mode
from .placement import Placement
from .shards import Shard, elements

#: Attributes of ``assign_value`` that hold the values.
_VALUES = ("fp32_values", "int32_values", "int64_values", "bool_values")


def server_startup(startup: Any, server: Any, placement: Placement, mode: Mode, endpoint: str) -> Any:
    """Program: initializes the variables of a server's program as ``startup`` initializes the whole ones."""
    made = Program()
    made.random_seed = startup.random_seed
    block = made.global_block()
    for var in server.global_block().vars.values():
        copy_var(block, var)
    targets = _targets(server, placement.on(endpoint))
    for op in startup.global_block().ops:
        for name in op.output_arg_names[:1]:
            for own, shard in targets.get(name, ()):
                more = _of_table(server, own, len(placement.endpoints)) if op.type == MAKER else {}
                _fill(block, op, {name: own}, shard, more)
    if mode.dc_asgd:
        for shard in placement.on(endpoint):
            for trainer in range(mode.trainers):
                block.append_op(type="assign", inputs={"X": [shard.name]},
                                outputs={"Out": [backup(shard.name, trainer)]})
    return made


def _targets(server: Any, shards: list[Shard]) -> dict[str, list[tuple[str, Shard | None]]]:
    """Variable of the whole program -> its counterparts on this server: [(name, shard)]."""
    by_name = {shard.name: shard for shard in shards}
    found: dict[str, list[tuple[str, Shard | None]]] = {}
    for name in server.global_block().vars:
        shard = by_name.get(name)
        whole, _, last = name.rpartition(".")
        if shard is not None:
            found.setdefault(shard.param, []).append((name, shard))
        elif last.startswith("block") and last[5:].isdigit():  # state of one of several shards
            found.setdefault(whole, []).append((name, None))
        else:
            found.setdefault(name, []).append((name, None))
    return found


def _of_table(server: Any, name: str, servers: int) -> dict[str, Any]:
    """Attributes of the op that makes a server's part of a growable table. Where the server adds differences (GEO),
    workers have the moments, and are told what the rules change."""
    given: dict[str, Any] = {"servers": servers}
    if server.global_block().has_var(name + ".delta"):
        given.update(rule="", moments=0, moment_start=0.0, tells=True)
    return given


def _fill(block: Any, op: Any, names: dict[str, str], shard: Shard | None, more: dict[str, Any]) -> None:
    attrs = {**plain_attrs(op), **more}
    outputs = {slot: [names.get(n, n) for n in op.output(slot)] for slot in op.output_names}
    target = block.var(outputs[op.output_names[0]][0])
    if op.has_attr("shape"):
        if op.type == "assign_value" and shard is not None:
            _cut_values(attrs, shard, op.attr("shape"))
        attrs["shape"] = list(target.shape)
    inputs = {slot: op.input(slot) for slot in op.input_names}
    for name in op.input_arg_names:
        copy_var(block, op.block.var(name))
    block.append_op(type=op.type, inputs=inputs, outputs=outputs, attrs=attrs)


def _cut_values(attrs: dict[str, Any], shard: Shard, whole: Any) -> None:
    width = elements(whole[1:])
    for name in _VALUES:
        if attrs.get(name):
            attrs[name] = attrs[name][shard.begin * width:(shard.begin + shard.rows) * width]
