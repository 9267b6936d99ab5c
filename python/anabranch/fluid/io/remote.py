"""Files of variables on parameter servers."""
from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy

from ... import _cluster, _core
from ..errors import InvalidType, InvalidValue
from ..framework import Program, VarType
from ..framework.variable import is_growable
from ..remote import trainer_of
from ..scope import global_scope, scope_guard
from ..transpiler.remote_variables import KeptVariable, kept_by
from . import variables


def is_remote(program: Any) -> bool:
    """bool: whether the variables that a program saves are on servers."""
    return isinstance(program, Program) and program._is_distributed and program._parameters_on_pservers is not None


def save_remote(executor: Any, dirname: Any, program: Any, filename: Any) -> None:
    """Saves the servers' variables through the cluster, and this worker's own variables directly, one file each.

    Raises:
        TypeError: ``dirname`` is not a str.
        ValueError: ``filename`` is given.
    """
    if not isinstance(dirname, str):
        raise InvalidType("save_persistables: dirname must be a str, got %s" % type(dirname).__name__)
    if filename is not None:
        raise InvalidValue("save_persistables: filename must be None for variables on servers, got %r" % (filename,))
    os.makedirs(dirname, exist_ok=True)
    mine = workers_own(program)
    if mine:
        variables.save_vars(executor, dirname, program, vars=mine)
    pull_persistables(program, dirname, program._parameters_on_pservers.variables())


def pull_persistables(program: Any, dirname: str, remote: Mapping[str, Any]) -> None:
    """Writes the variables of the servers to one file each, in the form of ``fluid.io.save_vars``.

    Args:
        program (Program): the trainer's program.
        dirname (str): folder, which must exist.
        remote (dict): name -> ``RemoteVariable``: shape, dtype, and the parts with their servers and names there.
    """
    trainer = trainer_of(program)
    for name, variable in remote.items():
        if variable.growable:
            _cluster.save_table(trainer, shards_of(variable), os.path.join(dirname, name))
            continue
        holder, scope = Program(), _core.Scope()
        made = holder.global_block().create_var(name=name, dtype=variable.dtype, shape=variable.shape, persistable=True)
        pull_into(scope, trainer, name, variable)
        with scope_guard(scope):
            variables.write_vars([made], dirname, None)


def shards_of(variable: Any) -> list[tuple[str, str]]:
    """list of tuple: (server, name there) of each part of a RemoteVariable."""
    return [(part.endpoint, part.name) for part in variable.parts]


def pull_into(scope: Any, trainer: int, name: str, variable: Any) -> None:
    """Puts the current value of a RemoteVariable, which is not a growable table, into a scope."""
    parts = [_cluster.pull(trainer, *shard) for shard in shards_of(variable)]
    scope.var(name).get_tensor().set(parts[0] if len(parts) == 1 else numpy.concatenate(parts), _core.CPUPlace())


def load_mine(executor: Any, dirname: str, program: Any) -> None:
    """Loads the variables that no server has, such as moving averages, from the files of :func:`save_remote`."""
    found = [var for var in workers_own(program) if os.path.exists(os.path.join(dirname, var.name))]
    if found:
        variables.load_vars(executor, dirname, program, vars=found)


def workers_own(program: Any) -> list[Any]:
    """Variables that only the worker keeps."""
    remote = program._parameters_on_pservers.variables()
    return [var for var in program.list_vars()
            if var.persistable and var.name not in remote and var.type == VarType.LOD_TENSOR
            and "@GRAD" not in var.name and not var.name.startswith("@LR_DECAY_COUNTER@")]


def load_shards(dirname: str, program: Any, endpoint: str) -> list[str]:
    """Loads a server's shards of the variables in ``dirname``, which any number of servers may have saved.

    Args:
        dirname (str): folder of whole variables, one file each; or a checkpoint of ``fleet.save_persistables`` with a
            ``mode``, or a folder of such checkpoints, whose latest complete one is used.
        program (Program): the server's.
        endpoint (str): the server.

    Returns:
        list of str: variables of the server without a file, which are unchanged.

    Raises:
        ValueError: a file has the wrong shape; no variable is changed.
    """
    from ...checkpoints.whole import saved_in  # imports this package
    values, tables, missing = {}, _core.Scope(), []
    servers = program._endpoints
    saved = saved_in(dirname)
    for kept in kept_by(program, endpoint):
        var = program.global_block().var(kept.name)
        if not saved.has(kept.whole):
            missing.append(kept.name)
        elif is_growable(var):
            saved.load_table(kept.whole, tables.var(kept.name), global_scope().find_var(kept.name), kept.name,
                             servers.index(endpoint), len(servers))
        else:
            values[kept.name] = _rows(dirname, kept, saved.value(kept.whole, var), var)
    for name, value in values.items():
        global_scope().var(name).get_tensor().set(value, _core.CPUPlace())
    for name in tables.local_var_names():
        global_scope().var(name)._assign(tables.var(name))
    return missing


def _rows(dirname: str, kept: KeptVariable, whole: numpy.ndarray, var: Any) -> numpy.ndarray:
    shape, begin, found = tuple(var.shape), 0, whole
    if kept.shard is not None:
        begin = kept.shard.begin
        found = whole[begin:begin + kept.shard.rows]
    if tuple(found.shape) != shape:
        raise InvalidValue("%s: the file %s has shape %s, but this server needs rows of shape %s that start at row %d"
                           % (dirname, kept.whole, list(whole.shape), list(shape), begin))
    return found
