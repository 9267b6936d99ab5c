"""Variables kept on servers: which server has which of their rows, under which name."""
from __future__ import annotations

from typing import Any, NamedTuple

from . import op_kinds
from .shards import Shard


class RemotePart(NamedTuple):
    """Rows of a variable on one server."""

    endpoint: str
    name: str                # on the server
    begin: int               # first row
    shape: tuple[int, ...]


class RemoteVariable(NamedTuple):
    """A parameter, or state of its update. State that is not split is on each server with a shard, and is one part."""

    name: str
    shape: tuple[int, ...]
    dtype: Any
    parts: list[RemotePart]  # in order of their rows

    @property
    def growable(self) -> bool:
        """bool: whether it is a growable table. The part on each server has the keys that hash to this server."""
        return self.shape[:1] == (-1,)


class KeptVariable(NamedTuple):
    """The part of a variable that one server keeps."""

    whole: str            # name of the variable
    name: str             # on this server
    shard: Shard | None   # its rows; None where the server has all


def kept_by(program: Any, endpoint: str) -> list[KeptVariable]:
    """list of KeptVariable: the variables that a server saves and loads, parameters and optimizer state, in order.

    Args:
        program (Program): the server's.
        endpoint (str): the server.
    """
    shards = {shard.name: shard for shard in program._parameters_on_pservers.placement.on(endpoint)}
    found = []
    for block in program.blocks[1:]:
        for op in block.ops:
            if not (op.input("Param") and op.input("Grad")):
                continue
            shard = shards[op.input("Param")[0]]
            for name in [n for slot in op.input_names if slot not in ("Grad", "LearningRate") for n in op.input(slot)]:
                cut = shard.name != shard.param and tuple(program.global_block().var(name).shape) == shard.shape
                found.append(KeptVariable(_whole(name, shard), name, shard if cut else None))
    # Servers that add differences run no update ops, except for growable tables.
    known = {kept.name for kept in found}
    found += [KeptVariable(shard.param, shard.name, shard if shard.name != shard.param else None)
              for shard in shards.values() if shard.name not in known]
    return found + _counter(program)


def _counter(program: Any) -> list[KeptVariable]:
    """The step counter of a server's schedule."""
    number = program.global_block().ops[0].attr("lr_decay_block_id")
    written = [n for op in program.block(number).ops for n in op.output_arg_names] if number > 0 else []
    return [KeptVariable(n, n, None) for n in written
            if n == op_kinds.COUNTER and program.global_block().var(n).persistable][:1]


def _whole(name: str, shard: Shard) -> str:
    """The name of the variable before it was split."""
    if name == shard.name:
        return shard.param
    suffix = "." + shard.name.rsplit(".", 1)[-1]
    return name[:-len(suffix)] if shard.name != shard.param and name.endswith(suffix) else name


class RemoteModel:
    """The variables on servers, stored as ``program._parameters_on_pservers`` of a transpiled program.

    Args:
        transpiler (DistributeTranspiler): after ``transpile``.
    """

    def __init__(self, transpiler: Any) -> None:
        self.placement = transpiler._placement
        self._transpiler = transpiler
        self._found: dict[str, RemoteVariable] | None = None

    def variables(self) -> dict[str, RemoteVariable]:
        """dict: name of the whole variable -> RemoteVariable."""
        if self._found is None:
            self._found = self._look()
        return self._found

    def _look(self) -> dict[str, RemoteVariable]:
        parts: dict[str, list[RemotePart]] = {}
        dtypes = {}
        for endpoint in self.placement.endpoints:
            program = self._transpiler.get_pserver_program(endpoint)
            for kept in kept_by(program, endpoint):
                var = program.global_block().var(kept.name)
                dtypes[kept.whole] = var.dtype
                known = parts.setdefault(kept.whole, [])
                if kept.shard is not None or not known:
                    begin = kept.shard.begin if kept.shard is not None else 0
                    known.append(RemotePart(endpoint, kept.name, begin, tuple(var.shape)))
        found = {}
        for name, mine in parts.items():
            mine.sort(key=lambda part: part.begin)
            rows = -1 if mine[0].shape[:1] == (-1,) else mine[-1].begin + mine[-1].shape[0]
            found[name] = RemoteVariable(name, (rows, *mine[0].shape[1:]), dtypes[name], mine)
        return found
