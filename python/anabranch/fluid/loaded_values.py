"""Warnings about loaded values that are lost: a startup program that runs after them replaces them without a word."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from . import before_run
from .framework import Parameter, Program
from .user_warnings import advise

#: Scope -> names that have been loaded into it.
_NAMES: dict[int, set[str]] = {}


def note(scope: Any, variables: Iterable[Any], source: str) -> None:
    """Called after values have been loaded.

    Args:
        scope (Scope): where they are now.
        variables (iterable of Variable): the variables that have got them.
        source (str): file, folder or prefix.
    """
    listed = list(variables)
    names = {v.name for v in listed if isinstance(v, Parameter)} or {v.name for v in listed}
    if names:
        _NAMES.setdefault(scope.id, set()).update(names)
        before_run.wait(("loaded", scope.id), _Check(scope.id, names, source))


def forget(scope: Any) -> None:
    """Called where values are loaded that a program may replace without a warning."""
    before_run.forget(("loaded", scope.id))


def were_loaded(scope: Any, names: Iterable[str]) -> bool:
    """bool: whether one of these variables has been loaded into the scope."""
    return not _NAMES.get(scope.id, set()).isdisjoint(names)


def initialized(program: Program) -> set[str]:
    """set of str: the variables that a program sets without reading anything, as startup programs do."""
    return {name for op in program.desc.block(0).ops() if not op.input_arg_names() for name in op.output_arg_names()}


class _Check:
    """Looks at the first run after a load. Later ones may start again on purpose, with values that have been used."""

    def __init__(self, scope: int, names: set[str], source: str) -> None:
        self._scope, self._names, self._source = scope, names, source

    def __call__(self, program: Program, scope: Any) -> None:
        lost = sorted(self._names & initialized(program)) if scope.id == self._scope else []
        if lost:
            advise("Executor.run: this program initializes %s%s, whose values were loaded from %s and are lost: run "
                   "the startup program first, and load afterwards"
                   % (", ".join(lost[:3]), ", ..." if len(lost) > 3 else "", self._source))
