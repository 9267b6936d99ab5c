"""Checks before the next run of a program: rare events leave one here, so that steady runs check nothing."""
from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from .. import _core
from .framework import Program

Check = Callable[[Any, Any], None]

#: Checks by their keys; the executor looks whether there are any, and only then calls :func:`tell`.
WAITING: dict[Hashable, tuple[Check, bool]] = {}


def wait(key: Hashable, check: Check, once: bool = True) -> None:
    """Has the next run checked.

    Args:
        key: replaces the earlier check with the same key.
        check (callable): called with the Program and the Scope of a run before it starts.
        once (bool): whether the first run takes the check away. Default True.
    """
    WAITING[key] = check, once


def forget(key: Hashable) -> None:
    """Takes a check away."""
    WAITING.pop(key, None)


def tell(program: Any, scope: Any, may_train: bool = True) -> None:
    """Called before a run while checks are waiting.

    Args:
        program (Program|CompiledProgram): the program of the run.
        scope (Scope): its scope.
        may_train (bool): False: the run leaves out what trains. Nothing is checked, and no check waits for the first
            run any longer. Default True.
    """
    program = getattr(program, "_program", program)
    if not isinstance(program, Program) or not isinstance(scope, _core.Scope):
        return      # the run says so
    for key, (check, once) in list(WAITING.items()):
        if once:
            forget(key)
        if may_train:
            check(program, scope)
