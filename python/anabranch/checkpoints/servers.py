"""Checkpoints of variables on parameter servers: the first worker writes them, growable tables as chains of links."""
from __future__ import annotations

import os
import sys
import time
from typing import Any

import numpy as np

from .. import _cluster, _core
from ..fluid.errors import InvalidValue, Unavailable
from ..fluid.io.remote import pull_into, shards_of, workers_own
from ..fluid.remote import trainer_of
from ..fluid.scope import global_scope
from . import folders, links
from .deltas import Position, since_of
from .links import VALUES

#: Seconds that a checkpoint waits for the snapshot of a server, and seconds until a message reports the wait.
_PATIENCE_S, _TELL_S = 180.0, 5.0


def save(root: str, program: Any, whole: bool, keep: int) -> str:
    """Writes the next checkpoint of the variables of a worker's program.

    Args:
        root (str): folder of the checkpoints.
        program (Program): program of the worker.
        whole (bool): writes all rows of growable tables. Otherwise only those that have changed, if the servers know.
        keep (int): number of checkpoints to keep, in addition to the checkpoints that these need.

    Returns:
        str: folder of the checkpoint.
    """
    trainer, remote = trainer_of(program), program._parameters_on_pservers.variables()
    tables = {name: shards_of(v) for name, v in remote.items() if v.growable}
    run, last = _position(root, {name: _cluster.recorded_since(trainer, at) for name, at in tables.items()})
    whole = whole or last is None or last.outgrown()
    number, writing = folders.begin(root)
    try:
        cuts = {name: _cut(trainer, at, name, whole) for name, at in tables.items()}
        dense = _write_dense(writing, trainer, program, remote)
        sums, known, sizes = links.write(writing, cuts, None if last is None else last.sums, whole, last is not None,
                                         run, number, None if last is None else last.number)
        now = Position.after(last, number, sums, whole, sizes)
        status = {"step": number, "time": time.time(), "variables": {"dense": dense, "tables": sorted(tables)},
                  "chain": now.status(run, -1 if last is None else last.number, whole)}
        folder = folders.end(root, number, writing, status, known)
    except BaseException:
        folders.drop(writing)
        raise
    for name, cut in cuts.items():
        cut.end(since_of(sums[name]))
    folders.keep(root, keep)
    return folder


def _cut(trainer, shards, name, whole):
    """The rows of a table at this moment. A server that writes a snapshot of the table ends that first."""
    begun, told = time.monotonic(), False
    while True:
        try:
            return _core.ServerLinks(trainer, shards, name, whole)
        except Unavailable as e:
            waited = time.monotonic() - begun
            if "two saves" not in str(e) or waited > _PATIENCE_S:
                raise
            if waited > _TELL_S and not told:
                told = True
                sys.stderr.write("a server writes a snapshot of table %s: the checkpoint waits for up to %.0f s\n"
                                 % (name, _PATIENCE_S))
        time.sleep(0.1)


def _position(root, since):
    """(run, position) of the latest checkpoint since which all servers have recorded changes; position None: there is
    no such one."""
    for number in reversed(folders.numbers(root)):
        try:
            status = folders.read(folders.path(root, number))
        except InvalidValue:
            continue
        position = Position.of(number, status)
        if position is None or set(position.sums) != set(since):
            continue
        if since and all(set(found) == {since_of(position.sums[name])} for name, found in since.items()):
            return status["chain"]["run"], position
    return os.urandom(16).hex(), None


def _write_dense(folder, trainer, program, remote):
    """Writes all variables that are not growable tables to one file. Returns their names."""
    scope = _core.Scope()
    for name, variable in remote.items():
        if not variable.growable:
            pull_into(scope, trainer, name, variable)
    for var in workers_own(program):
        held = global_scope().find_var(var.name)
        if held is not None and held._is_initialized():
            scope.var(var.name).get_tensor().set(np.array(held.get_tensor()), _core.CPUPlace())
    names = sorted(scope.local_var_names())
    if names:
        with _core.FileSet() as files:
            _core.save_vars(scope, names, folder, VALUES, files)
    return names
