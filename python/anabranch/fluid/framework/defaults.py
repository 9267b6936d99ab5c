"""The programs that layers build into, and the context managers that replace them."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator

from .. import arguments
from ..errors import InvalidType
from .context import _programs
from .program import Program

_programs.update(main=Program(), startup=Program())
_programs["startup"]._is_start_up_program_ = True


def default_main_program() -> Program:
    """Program: the program to which layers append.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> main = fluid.Program()
        >>> with fluid.program_guard(main):
        ...     fluid.default_main_program() is main
        True
    """
    return _programs["main"]


def default_startup_program() -> Program:
    """Program: the program to which layers add the initialization of parameters. Run it once before training."""
    return _programs["startup"]


def switch_main_program(program: Program) -> Program:
    """Replaces the default main program and returns the previous one."""
    return _switch("switch_main_program", "main", program)


def switch_startup_program(program: Program) -> Program:
    """Replaces the default startup program and returns the previous one."""
    return _switch("switch_startup_program", "startup", program)


def _switch(function, which, program):
    _need_program(function, program)
    old, _programs[which] = _programs[which], program
    return old


def _need_program(function, program):
    if not isinstance(program, Program):
        raise InvalidType("%s: the program must be a Program, got %s" % (function, type(program).__name__))


@contextlib.contextmanager
def program_guard(main_program: Program, startup_program: Program | None = None) -> Iterator[None]:
    """Context manager in which layers append to these programs.

    Args:
        main_program (Program): becomes the default main program.
        startup_program (Program, optional): becomes the default startup program; None keeps the current one.

    Raises:
        TypeError: an argument is not a Program.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> with fluid.program_guard(fluid.Program(), fluid.Program()):
        ...     x = fluid.data("x", [None, 4])
    """
    _need_program("program_guard", main_program)
    if startup_program is not None:
        _need_program("program_guard", startup_program)
    old_main = switch_main_program(main_program)
    old_startup = None
    if startup_program is not None:
        startup_program._is_start_up_program_ = True
        old_startup = switch_startup_program(startup_program)
    try:
        yield
    finally:
        switch_main_program(old_main)
        if old_startup is not None:
            switch_startup_program(old_startup)


def in_dygraph_mode() -> bool:
    """bool: always False, since there is only the static mode."""
    return False


arguments.explain(globals())
