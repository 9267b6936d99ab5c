"""Helpers of the layers that collect a block of operators."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from ..errors import InvalidType
from ..framework import Program


class BlockGuard:
    """Context in which layers append to a new block of a program.

    Args:
        main_program (Program): the program.

    Raises:
        TypeError: ``main_program`` is not a Program.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> program = fluid.Program()
        >>> with BlockGuard(program):
        ...     program.current_block().idx
        1
    """

    def __init__(self, main_program: Program) -> None:
        if not isinstance(main_program, Program):
            raise InvalidType("BlockGuard: main_program must be a Program, got %s" % type(main_program).__name__)
        self.main_program = main_program

    def __enter__(self) -> None:
        self.main_program._create_block()

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> bool:
        self.main_program._rollback()
        return exc_type is None


@contextlib.contextmanager
def collected(program: Any, append: Any) -> Iterator[Any]:
    """Context manager in which layers append to a new block. At its end, ``append(inside, outside)`` is called in the
    outer block.

    An exception inside the context restores the program.
    """
    program._create_block()
    try:
        yield
    except BaseException:
        program._rollback()
        raise
    inside = program.current_block()
    program._rollback()
    append(inside, program.current_block())


def outer_names(inside: Any) -> tuple[list[str], list[str]]:
    """Returns the names that the operators of a block read before they write them, and the names that they write, each
    name once.

    The gradient of a variable is added once for each occurrence in a list.
    """
    reads: dict[str, None] = {}
    writes: dict[str, None] = {}
    for op in inside.ops:
        for name in op.input_arg_names:
            if name not in writes:
                reads.setdefault(name)
        for name in op.output_arg_names:
            writes.setdefault(name)
    return list(reads), list(writes)


def seen_from(outside: Any, names: list[str]) -> list[Any]:
    """Returns the variables with these names that are visible in the outer block."""
    found = [outside._find_var_recursive(name) for name in names]
    return [v for v in found if v is not None]
