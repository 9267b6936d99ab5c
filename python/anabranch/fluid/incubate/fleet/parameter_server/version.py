"""The kind of parameter servers, for programs that support several."""
from __future__ import annotations

from ..base.mode import Mode as Mode


def is_transpiler() -> bool:
    """bool: always True, as parameter servers are those of the transpiler.

    >>> is_transpiler()
    True
    """
    return True
