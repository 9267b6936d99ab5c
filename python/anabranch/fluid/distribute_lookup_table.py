"""Searches for the embedding table that servers keep. The names of ``fluid.distribute_lookup_table``."""
from __future__ import annotations

from typing import Any

from .errors import NotAllowed

__all__ = ["find_distributed_lookup_table", "find_distributed_lookup_table_inputs",
           "find_distributed_lookup_table_outputs"]

_LOOKUP = "lookup_table"


def _variables(program: Any, table_name: str, slot: str, names_of: Any) -> list[Any]:
    block = program.current_block()
    return [block.vars[name] for op in block.ops
            if op.type == _LOOKUP and op.input("W")[0] == table_name for name in names_of(op, slot)]


def find_distributed_lookup_table_inputs(program: Any, table_name: str) -> list[Any]:
    """list of Variable: the ids of all lookups in a table."""
    return _variables(program, table_name, "Ids", lambda op, slot: op.input(slot))


def find_distributed_lookup_table_outputs(program: Any, table_name: str) -> list[Any]:
    """list of Variable: the results of all lookups in a table."""
    return _variables(program, table_name, "Out", lambda op, slot: op.output(slot))


def find_distributed_lookup_table(program: Any) -> str | None:
    """The name of the table of ``embedding(is_distributed=True)``.

    Args:
        program (Program): the training program.

    Returns:
        str|None: the name, None if there is no such table.

    Raises:
        RuntimeError: there are several, or another lookup in the table is not distributed.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> ids = fluid.data("ids", [None, 1], "int64")
        >>> _ = fluid.layers.embedding(ids, [10, 4], is_distributed=True, param_attr="table")
        >>> find_distributed_lookup_table(fluid.default_main_program())
        'table'
    """
    lookups = [op for op in program.global_block().ops if op.type == _LOOKUP]
    tables = {op.input("W")[0] for op in lookups if op.attr("is_distributed")}
    if len(tables) > 1:
        raise NotAllowed("all distributed lookups must use one table, got %s" % ", ".join(sorted(tables)))
    if any(op.input("W")[0] in tables and not op.attr("is_distributed") for op in lookups):
        raise NotAllowed("all lookups in the table %s must be distributed" % ", ".join(tables))
    return next(iter(tables), None)
