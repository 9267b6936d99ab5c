"""The programs that layers build into, and the context managers that replace them."""
import contextlib

from ..errors import InvalidType
from .program import Program

_main = Program()
_startup = Program()
_startup._is_start_up_program_ = True


def default_main_program():
    """Program: the one that layers append to now.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> main = fluid.Program()
        >>> with fluid.program_guard(main):
        ...     fluid.default_main_program() is main
        True
    """
    return _main


def default_startup_program():
    """Program: the one that holds the initialisation of parameters now. Run it once before training."""
    return _startup


def switch_main_program(program):
    """Replaces the default main program and returns the one before."""
    global _main
    _need_program("switch_main_program", program)
    old, _main = _main, program
    return old


def switch_startup_program(program):
    """Replaces the default startup program and returns the one before."""
    global _startup
    _need_program("switch_startup_program", program)
    old, _startup = _startup, program
    return old


def _need_program(function, program):
    if not isinstance(program, Program):
        raise InvalidType("%s: a Program is expected, got %s" % (function, type(program).__name__))


@contextlib.contextmanager
def program_guard(main_program, startup_program=None):
    """Context in which layers build into these programs.

    Args:
        main_program (Program): becomes the default main program.
        startup_program (Program, optional): likewise; None keeps the one there is.

    Raises:
        TypeError: an argument that is no Program.

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


def set_global_seed(seed):
    """Sets the seed of both default programs."""
    _main.random_seed = seed
    _startup.random_seed = seed


def in_dygraph_mode():
    """bool: always False: there is only the static mode."""
    return False
