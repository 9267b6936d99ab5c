"""Files of whole variables, and the pieces of them that servers have."""
from __future__ import annotations

import os
from typing import Any

import numpy

from ...... import _cluster
from .....core import CPUPlace, Scope
from .....errors import InvalidValue
from .....executor import Executor
from .....framework import Program
from .....io import load_vars, save_vars
from .....scope import global_scope, scope_guard
from .....transpiler.pieces import Piece


def _kept(program: Any, endpoint: str) -> list[tuple[str, str, Piece | None]]:
    """(whole variable, variable on this server, its piece) for all that a server saves and loads."""
    placement = program._parameters_on_pservers
    pieces = placement.on(endpoint)
    by_name = {piece.name: piece for piece in pieces}
    found: list[tuple[str, str, Piece | None]] = []
    for op in (op for block in program.blocks[1:] for op in block.ops if op.input("Param") and op.input("Grad")):
        piece = by_name[op.input("Param")[0]]
        for slot in op.input_names:
            name = (op.input(slot) or [""])[0]
            if not name or slot in ("Grad", "LearningRate"):
                continue
            var = program.global_block().var(name)
            cut = piece if tuple(var.shape) == piece.shape and piece.name != piece.param else None
            found.append((_whole(name, piece), name, cut))
    return found or [(piece.param, piece.name, piece) for piece in pieces]


def _whole(name: str, piece: Piece) -> str:
    """The name of the file: that of the variable before it was cut."""
    suffix = "." + piece.name.rsplit(".", 1)[-1]
    cut = piece.name != piece.param and name.endswith(suffix)
    return name[:-len(suffix)] if cut else name


def load_pieces(dirname: str, program: Any, endpoint: str) -> None:
    """Gives a server its part of the variables that are saved in ``dirname``.

    Args:
        dirname (str): folder of whole variables, a file each.
        program (Program): the server's.
        endpoint (str): the server.

    Raises:
        ValueError: a file of another shape.
    """
    scope = global_scope()
    for whole, name, piece in _kept(program, endpoint):
        if not os.path.exists(os.path.join(dirname, whole)):
            continue
        values = _read(dirname, whole, program.global_block().var(name), piece)
        if piece is not None:
            values = values[piece.begin:piece.begin + piece.rows]
        want = tuple(program.global_block().var(name).shape)
        if tuple(values.shape) != want:
            raise InvalidValue("%s: the file %s has shape %s, this server keeps %s of it"
                               % (dirname, whole, list(values.shape), list(want)))
        scope.var(name).get_tensor().set(values, CPUPlace())


def _read(dirname: str, whole: str, var: Any, piece: Piece | None) -> numpy.ndarray:
    holder = Program()
    shape = [-1, *var.shape[1:]] if piece is not None else list(var.shape)
    made = holder.global_block().create_var(name=whole, shape=shape, dtype=var.dtype, persistable=True)
    with scope_guard(Scope()):
        load_vars(Executor(CPUPlace()), dirname, holder, vars=[made])
        return numpy.array(global_scope().find_var(whole).get_tensor())


def pull_persistables(executor: Any, dirname: str, program: Any, transpiler: Any) -> None:
    """Saves what servers have by the cluster, and what only this worker has by itself."""
    os.makedirs(dirname, exist_ok=True)
    remote: list[str] = []
    for endpoint in transpiler.pserver_endpoints:
        for whole, _, _ in _kept(transpiler.get_pserver_program(endpoint), endpoint):
            if whole not in remote:
                remote.append(whole)
    mine = [var for var in program.list_vars()
            if var.persistable and var.name not in remote and int(var.type) in (7, 8)
            and "@GRAD" not in var.name and not var.name.startswith(("@LR_DECAY_COUNTER@", "learning_rate_"))]
    if mine:
        save_vars(executor, dirname, program, vars=mine)
    _cluster.pull_persistables(program, dirname, remote)
