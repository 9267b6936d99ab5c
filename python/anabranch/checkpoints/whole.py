"""Saved variables of a cluster, in files of ``save_persistables`` or in a checkpoint. Each server loads its part."""
from __future__ import annotations

import os
import sys
from typing import Any

import numpy

from .. import _core
from ..fluid.errors import InvalidArgument, InvalidValue, NotFound, ShapeMismatch
from ..fluid.framework import Program
from ..fluid.io.tables import load_table
from ..fluid.io.variables import load_vars
from ..fluid.scope import global_scope, scope_guard
from . import folders, links
from .links import VALUES


class _Files:
    """A file for each variable."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def has(self, name: str) -> bool:
        """bool: whether there is a variable with this name."""
        return os.path.exists(os.path.join(self._folder, name))

    def value(self, name: str, var: Any) -> numpy.ndarray:
        """numpy.ndarray: the whole value of a variable."""
        holder = Program()
        made = holder.global_block().create_var(name=name, dtype=var.dtype, persistable=True,
                                                shape=[-1] * len(var.shape))
        with scope_guard(_core.Scope()):
            load_vars(None, self._folder, holder, vars=[made])
            return numpy.array(global_scope().find_var(name).get_tensor())

    def load_table(self, name: str, value: Any, like: Any, own_name: str, server: int, servers: int) -> None:
        """Gives ``value`` the part of a growable table that belongs to a server."""
        path = os.path.join(self._folder, name)
        _core.check_file_of(self._folder, path)
        load_table(value, like, own_name, path, None, server, servers)


class _Checkpoint:
    """A checkpoint, whose links have been verified."""

    def __init__(self, folder: str, status: dict[str, Any]) -> None:
        self._chains = links.chains(folder, status) if "chain" in status else {}
        self._folder, self._tables = folder, set(status["variables"]["tables"])
        self._values = _core.Scope()
        names = status["variables"]["dense"]
        if names:
            _core.load_vars(self._values, names, folder, VALUES)
        self._names = set(names)

    def has(self, name: str) -> bool:
        """bool: whether there is a variable with this name."""
        return name in self._names or name in self._tables

    def value(self, name: str, var: Any) -> numpy.ndarray:
        """numpy.ndarray: the whole value of a variable."""
        return numpy.array(self._values.find_var(name).get_tensor())

    def load_table(self, name: str, value: Any, like: Any, own_name: str, server: int, servers: int) -> None:
        """Gives ``value`` the part of a growable table that belongs to a server."""
        load_table(value, like, own_name, os.path.join(self._folder, "%s.%s" % (VALUES, name)), self._chains.get(name),
                   server, servers)


def saved_in(folder: str) -> Any:
    """The variables of a folder: a checkpoint, the latest whole one of a folder of checkpoints, or single files.

    Raises:
        ValueError: none of the checkpoints is whole.
    """
    if os.path.exists(os.path.join(folder, folders.STATUS)):
        return _Checkpoint(folder, folders.read(folder))
    found = folders.numbers(folder)
    errors = []
    for number in reversed(found):
        try:
            at = folders.path(folder, number)
            return _Checkpoint(at, folders.read(at))
        except (InvalidValue, InvalidArgument, ShapeMismatch, NotFound) as e:
            errors.append(str(e).split("\n")[0])
            sys.stderr.write("%s: incomplete or damaged checkpoint, trying the previous one: %s\n"
                             % (folder, errors[-1]))
    if errors:
        raise InvalidValue("%s has no complete checkpoint; %s" % (folder, "; ".join(errors)))
    return _Files(folder)
