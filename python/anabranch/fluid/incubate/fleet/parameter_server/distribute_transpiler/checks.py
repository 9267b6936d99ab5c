"""Checks of arguments of the fleet's methods that save."""
from __future__ import annotations

from typing import Any

from .....errors import InvalidType
from .....executor import Executor
from .....framework import Program
from .....parallel_executor import ParallelExecutor


def check_executor(what: str, executor: Any) -> None:
    """Raises TypeError unless it is an Executor."""
    if isinstance(executor, ParallelExecutor) or not isinstance(executor, Executor):
        raise InvalidType("fleet.%s: executor must be an Executor, got %s" % (what, type(executor).__name__))


def check_program(what: str, program: Any) -> None:
    """Raises TypeError unless it is a Program or None."""
    if program is not None and not isinstance(program, Program):
        raise InvalidType("fleet.%s: main_program must be a Program, got %s" % (what, type(program).__name__))
