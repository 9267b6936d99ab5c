"""Files of variables that lie on servers."""
from __future__ import annotations

import os
from typing import Any

import numpy

from ... import _cluster, _core
from ..core import CPUPlace, Scope
from ..errors import InvalidType, InvalidValue
from ..framework import Program, VarType
from ..framework.variable import is_growable
from ..scope import global_scope, scope_guard
from ..transpiler.remote_variables import KeptVariable, kept_by
from . import variables


def is_remote(program: Any) -> bool:
    """bool: whether what a program saves lies on servers."""
    return isinstance(program, Program) and program._is_distributed and program._parameters_on_pservers is not None


def save_remote(executor: Any, dirname: Any, program: Any, filename: Any) -> None:
    """Saves what servers have by the cluster, and what only this worker has by itself, one file a variable.

    Raises:
        TypeError: ``dirname`` is no text. ValueError: one file for all is asked for.
    """
    if not isinstance(dirname, str):
        raise InvalidType("save_persistables: dirname must be a str, got %s" % type(dirname).__name__)
    if filename is not None:
        raise InvalidValue("save_persistables: filename must be None where variables lie on servers")
    os.makedirs(dirname, exist_ok=True)
    mine = _mine(program)
    if mine:
        variables.save_vars(executor, dirname, program, vars=mine)
    _cluster.pull_persistables(program, dirname, program._parameters_on_pservers.variables())


def load_mine(executor: Any, dirname: str, program: Any) -> None:
    """Gives a worker what :func:`save_remote` has saved of another one that no server has: moving averages, rates."""
    found = [var for var in _mine(program) if os.path.exists(os.path.join(dirname, var.name))]
    if found:
        variables.load_vars(executor, dirname, program, vars=found)


def _mine(program: Any) -> list[Any]:
    """What a worker keeps by itself."""
    remote = program._parameters_on_pservers.variables()
    return [var for var in program.list_vars()
            if var.persistable and var.name not in remote and var.type == VarType.LOD_TENSOR
            and "@GRAD" not in var.name and not var.name.startswith("@LR_DECAY_COUNTER@")]


def load_pieces(dirname: str, program: Any, endpoint: str) -> list[str]:
    """Gives a server its part of the variables that are saved in ``dirname``, however many servers had them.

    Args:
        dirname (str): folder of whole variables, a file each.
        program (Program): the server's.
        endpoint (str): the server.

    Returns:
        list of str: variables of the server without a file, which stay as they are.

    Raises:
        ValueError: a file of another shape; nothing is changed then.
    """
    values, tables, missing = {}, Scope(), []
    servers = program._endpoints
    for kept in kept_by(program, endpoint):
        var, path = program.global_block().var(kept.name), os.path.join(dirname, kept.whole)
        if not os.path.exists(path):
            missing.append(kept.name)
        elif is_growable(var):
            _core.check_file_of(dirname, path)
            _core.load_growable_table(tables.var(kept.name), global_scope().find_var(kept.name), kept.name, path,
                                      servers.index(endpoint), len(servers))
        else:
            values[kept.name] = _rows(dirname, kept, var)
    for name, value in values.items():
        global_scope().var(name).get_tensor().set(value, CPUPlace())
    for name in tables.local_var_names():
        global_scope().var(name)._assign(tables.var(name))
    return missing


def _rows(dirname: str, kept: KeptVariable, var: Any) -> numpy.ndarray:
    whole = _read(dirname, kept, var)
    want, begin, found = tuple(var.shape), 0, whole
    if kept.piece is not None:
        begin = kept.piece.begin
        found = whole[begin:begin + kept.piece.rows]
    if tuple(found.shape) != want:
        raise InvalidValue("%s: the file %s has shape %s, this server keeps %s of it from row %d on"
                           % (dirname, kept.whole, list(whole.shape), list(want), begin))
    return found


def _read(dirname: str, kept: KeptVariable, var: Any) -> numpy.ndarray:
    holder = Program()
    made = holder.global_block().create_var(name=kept.whole, dtype=var.dtype, persistable=True,
                                            shape=[-1] * len(var.shape))
    with scope_guard(Scope()):
        variables.load_vars(None, dirname, holder, vars=[made])
        return numpy.array(global_scope().find_var(kept.whole).get_tensor())
