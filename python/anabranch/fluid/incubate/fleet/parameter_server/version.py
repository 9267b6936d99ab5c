"""Which parameter servers a program of both kinds gets."""
from __future__ import annotations

from ..base.mode import Mode as Mode


def is_transpiler() -> bool:
    """bool: True: parameter servers are those of the transpiler.

    >>> is_transpiler()
    True
    """
    return True
