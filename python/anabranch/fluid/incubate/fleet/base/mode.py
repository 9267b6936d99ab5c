"""The kinds of fleets."""
from __future__ import annotations

__all__ = ["Mode"]


class Mode:
    """Kinds of fleets: parameter servers of this package, those of pslib, or workers only.

    >>> Mode.TRANSPILER, Mode.PSLIB, Mode.COLLECTIVE
    (1, 2, 3)
    """

    TRANSPILER = 1
    PSLIB = 2
    COLLECTIVE = 3
