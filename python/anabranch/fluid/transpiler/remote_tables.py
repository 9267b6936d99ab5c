"""Lookups in tables on servers: workers fetch the rows that a batch needs."""
from __future__ import annotations

from typing import Any

from . import op_kinds
from .modes import Mode
from .placement import Placement, remote_lookups

#: Attributes that lookups must share to become one request.
_ALIKE = {op_kinds.GROWABLE_LOOKUP: ("width", "last_is_one", "has_padding", "padding_idx", "is_test")}


def fetch_rows(program: Any, placement: Placement, mode: Mode) -> None:
    """Replaces lookups in remote tables by requests, one for all lookups of a table where the order of ops allows.

    Copies for tests that were made before the tables moved to the servers are changed as well: their lookups would find
    no rows in this process.
    """
    _fetch_rows(program, placement.tables, placement, mode)
    for copy in list(program._test_programs):
        tables = {name: ops for name, ops in remote_lookups(copy).items() if name in placement.tables}
        if copy is not program and tables:
            _fetch_rows(copy, tables, placement, mode)


def _fetch_rows(program: Any, tables: dict[str, list[Any]], placement: Placement, mode: Mode) -> None:
    block = program.global_block()
    for table, ops in tables.items():
        groups: dict[Any, list[Any]] = {}
        for op in ops:
            groups.setdefault((op.type, *map(op.attr, _ALIKE.get(op.type, ("padding_idx",)))), []).append(op)
        for group in groups.values():
            if _room(block, group) is None:
                for op in group:
                    _request(block, placement, table, [op], mode)
            else:
                _request(block, placement, table, group, mode)


def _room(block: Any, ops: list[Any]) -> int | None:
    """The index at which all ids are computed and no result is read yet; None if there is no such index."""
    ids = {name for op in ops for name in op.input("Ids")}
    outs = {name for op in ops for name in op.output("Out")}
    made = [i for i, op in enumerate(block.ops) if ids.intersection(op.output_arg_names)]
    read = [i for i, op in enumerate(block.ops) if outs.intersection(op.input_arg_names)]
    index = max(made) + 1 if made else 0
    return index if not read or index <= min(read) else None


def _request(block: Any, placement: Placement, table: str, ops: list[Any], mode: Mode) -> None:
    shards = placement.shards[table]
    first = ops[0]
    ids = [block._var_recursive(op.input("Ids")[0]) for op in ops]
    outs = [block._var_recursive(op.output("Out")[0]) for op in ops]
    op_kinds.remove_ops(block, ops)
    made = [i for i, op in enumerate(block.ops) if {v.name for v in ids}.intersection(op.output_arg_names)]
    attrs = {"table_names": [shard.name for shard in shards], "height_sections": [shard.rows for shard in shards],
             "endpoints": [shard.endpoint for shard in shards], "trainer_id": mode.trainer_id}
    if first.type == op_kinds.GROWABLE_LOOKUP:
        kind = "distributed_lookup_growable"
        attrs.update({name: first.attr(name) for name in _ALIKE[first.type]})
    else:
        kind = "distributed_lookup_table"
        attrs.update(padding_idx=first.attr("padding_idx"), lookup_table_version=first.type)
    block._insert_op(max(made) + 1 if made else 0, type=kind, inputs={"Ids": ids, "W": [block.var(table)]},
                     outputs={"Outputs": outs}, attrs=attrs)
