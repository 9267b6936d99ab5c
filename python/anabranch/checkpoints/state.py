"""State of a training run inside the engine: variables, random numbers of ops, state of each replica."""
from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .. import _core, fluid
from .._terminal import counted
from ..fluid.compiler import CompiledProgram
from ..fluid.errors import InvalidType, InvalidValue, NotAllowed, Unsupported
from ..fluid.framework import Program
from ..fluid.framework.dtype import VarType
from ..fluid.framework.updates import trains
from ..fluid.io.state_file import dump_state, load_state
from ..fluid.io.tables import split
from ..fluid.io.variables import is_persistable, read_vars, write_vars
from ..fluid.remote import serves, trainers_of
from ..fluid.user_warnings import warn
from . import constants
from .links import VALUES

_REPLICAS = "replicas"


def _adds_up_with_others(program, inner):
    build = getattr(program, "_build_strategy", None)
    return bool(inner._trainers_endpoints) or (build is not None and build.num_trainers > 1) or any(
        op.has_attr("ring_id") for op in inner.global_block().ops)


def _listed(what, names):
    shown = sorted(names)[:5]
    return what + ", ".join(shown) + (", ..." if len(names) > len(shown) else "") if names else ""


class Trained:
    """The programs of a run in one scope.

    Args:
        programs: a Program or CompiledProgram, or several of them.
        executor (Executor): executor of the programs.
        scope (Scope): scope of their variables.
    """

    def __init__(self, programs: Any, executor: Any, scope: Any) -> None:
        given = programs if isinstance(programs, Sequence) else [programs]
        if not isinstance(executor, fluid.Executor):
            raise InvalidType("Checkpoints: executor must be an Executor, got %s" % type(executor).__name__)
        for program in given:
            if not isinstance(program, (Program, CompiledProgram)):
                raise InvalidType("Checkpoints: program must be a Program, a CompiledProgram or a list of them, got %s"
                                  % type(program).__name__)
            inner: Any = getattr(program, "_program", program)
            if serves(inner) or trainers_of(inner):
                raise Unsupported("Checkpoints: a program whose variables are on parameter servers is not supported; "
                                  "the servers keep them: see FLAGS_ps_state_dir and fleet.save_persistables")
            if _adds_up_with_others(program, inner):
                raise Unsupported("Checkpoints: a program that sums gradients with other processes is not supported, "
                                  "because each would resume at its own step; see fleet.save_check_point")
        self._given, self._executor, self.scope = list(given), executor, scope

    def engines(self) -> list[Any]:
        """The engine's object of each program, as ``Executor.run`` would use it."""
        return [program._compile(self.scope, self._executor.place)._engine if isinstance(program, CompiledProgram)
                else self._executor._bind(program, self.scope).engine for program in self._given]

    @contextlib.contextmanager
    def saved_by_a_run(self) -> Iterator[None]:
        """Marks the programs, so that training that this run does not count gets a warning."""
        for program in self._inner():
            program._saved_by_runs += 1
        try:
            yield
        finally:
            for program in self._inner():
                program._saved_by_runs -= 1

    def _variables(self):
        found = {}
        for program in self._inner():
            for variable in program.list_vars():
                if is_persistable(variable):
                    found[variable.name] = variable
        return [found[name] for name in sorted(found)]

    def names(self) -> dict[str, list[str]]:
        """dict: names of the variables in the common file, and of those in separate files."""
        dense, tables = split(self._variables())
        return {"dense": [v.name for v in dense], "tables": [v.name for v in tables]}

    def tables(self) -> dict[str, Any]:
        """dict: name -> growable table in the scope."""
        found = {}
        for name in self.names()["tables"]:
            value = self.scope.find_var(name)
            table = None if value is None else _core.growable_table(value)
            if table is None:
                raise NotAllowed("Checkpoints: the scope has no growable table %s: run the startup program" % name)
            found[name] = table
        return found

    def write(self, folder: str, with_tables: bool = True) -> tuple[list[Any], Any]:
        """Writes the files of a checkpoint, which the caller commits, with or without those of growable tables.

        Returns:
            tuple: entries of the status, and the FileSet.
        """
        variables = self._variables()
        if not with_tables:
            variables = split(variables)[0]
        files = _core.FileSet()
        with fluid.scope_guard(self.scope):
            if variables:
                write_vars(variables, folder, VALUES, files=files)
        engines = self.engines()
        copies = {"%d %d %s" % (k, replica, name): np.array(value)
                  for k, engine in enumerate(engines) for name, replica, value in engine.replica_states()}
        if copies:
            files.add(os.path.join(folder, _REPLICAS), dump_state(copies))
        return [list(engine.random_state()) for engine in engines], files

    def constants(self) -> dict[str, Any]:
        """dict: name -> value of each constant (see ``constants.py``) in the scope."""
        return constants.values(self._inner(), self.scope)

    def set_constants(self, values: dict[str, Any]) -> None:
        """Replaces the values of constants."""
        for name, value in values.items():
            self.scope.var(name).get_tensor().set(value, fluid.CPUPlace())

    def _inner(self):
        return [getattr(program, "_program", program) for program in self._given]

    def warn_of_no_training(self) -> None:
        """Warns if no program trains, so that checkpoints lack the state of the optimizer."""
        if not any(trains(program) for program in self._inner()):
            warn("Checkpoints: the program trains nothing, so its checkpoints lack the state of the optimizer: pass "
                 "the program on which minimize was called, not one that was cloned for tests")

    def check(self, folder: str, status: dict[str, Any]) -> None:
        """Raises InvalidValue unless the variables of the programs are those of a checkpoint, with their shapes."""
        saved, own = status.get("variables"), self.names()
        if saved is None or (saved["dense"] == own["dense"] and set(own["tables"]) <= set(saved["tables"])):
            return
        here, there = ({name for kind in ("dense", "tables") for name in names[kind]} for names in (own, saved))
        raise InvalidValue(
            "Checkpoints: %s has the variables of another program%s%s. If the model or its optimizer has changed, "
            "start a run in a new folder, after anabranch.warm_start(program, %r)"
            % (folder, _listed("; the program has also ", here - there), _listed("; the checkpoint has also ",
               there - here), os.path.dirname(folder)))

    def read(self, folder: str, states: list[Any], chains: dict[str, Any]) -> None:
        """Restores the state that :meth:`write` has written. ``chains``: name -> TableChain of tables."""
        if len(states) != len(self._given):
            raise InvalidValue("%s was saved by a run of %s, but this run has %d"
                               % (folder, counted(len(states), "program"), len(self._given)))
        variables = self._variables()
        with fluid.scope_guard(self.scope):
            if variables:
                read_vars([v for v in variables if v.type != VarType.RAW], folder, VALUES, chains)
        engines = self.engines()
        for engine, (seed, runs) in zip(engines, states):
            engine.set_random_state(seed, runs)
        name = os.path.join(folder, _REPLICAS)
        if not os.path.exists(name):
            return
        with open(name, "rb") as file:
            copies = load_state(file.read(), name)
        for key, array in copies.items():
            number, replica, variable = key.split(" ", 2)
            engine = engines[int(number)]
            if int(replica) < engine.replicas():
                tensor = fluid.LoDTensor()
                tensor.set(array, fluid.CPUPlace())
                engine.set_replica_states([(variable, int(replica), tensor)])
