"""Which kind of cluster a fleet is."""
from __future__ import annotations

__all__ = ["Mode"]


class Mode:
    """Kinds of fleets: parameter servers of this package, of pslib, or none but workers.

    >>> Mode.TRANSPILER, Mode.PSLIB, Mode.COLLECTIVE
    (1, 2, 3)
    """

    TRANSPILER = 1
    PSLIB = 2
    COLLECTIVE = 3
