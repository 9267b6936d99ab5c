"""Look-ups in tables that live on servers: trainers fetch the rows that a batch needs."""
from __future__ import annotations

from typing import Any

from . import op_kinds
from .modes import Mode
from .placement import Placement


def fetch_rows(program: Any, placement: Placement, mode: Mode) -> None:
    """Look-ups in remote tables become requests, one for all look-ups of a table where the order of ops lets them."""
    block = program.global_block()
    for table, ops in placement.tables.items():
        groups: dict[Any, list[Any]] = {}
        for op in ops:
            groups.setdefault((op.type, op.attr("padding_idx")), []).append(op)
        for group in groups.values():
            if _room(block, group) is None:
                for op in group:
                    _request(block, placement, table, [op], mode)
            else:
                _request(block, placement, table, group, mode)


def _room(block: Any, ops: list[Any]) -> int | None:
    """The index where all ids are there and no result is read yet; None when there is none."""
    ids = {name for op in ops for name in op.input("Ids")}
    outs = {name for op in ops for name in op.output("Out")}
    made = [i for i, op in enumerate(block.ops) if ids.intersection(op.output_arg_names)]
    read = [i for i, op in enumerate(block.ops) if outs.intersection(op.input_arg_names)]
    index = max(made) + 1 if made else 0
    return index if not read or index <= min(read) else None


def _request(block: Any, placement: Placement, table: str, ops: list[Any], mode: Mode) -> None:
    pieces = placement.pieces[table]
    kind, padding = ops[0].type, ops[0].attr("padding_idx")
    ids = [block._var_recursive(op.input("Ids")[0]) for op in ops]
    outs = [block._var_recursive(op.output("Out")[0]) for op in ops]
    op_kinds.remove_ops(block, ops)
    made = [i for i, op in enumerate(block.ops) if {v.name for v in ids}.intersection(op.output_arg_names)]
    block._insert_op(
        max(made) + 1 if made else 0, type="distributed_lookup_table",
        inputs={"Ids": ids, "W": [block.var(table)]}, outputs={"Outputs": outs},
        attrs={"table_names": [piece.name for piece in pieces], "height_sections": [piece.rows for piece in pieces],
               "endpoints": [piece.endpoint for piece in pieces], "padding_idx": padding,
               "trainer_id": mode.trainer_id, "lookup_table_version": kind})
