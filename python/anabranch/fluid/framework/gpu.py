"""What a program gets that asks for a GPU: a typed error, or the CPU under ``anabranch run``."""
from __future__ import annotations

import warnings

from ..errors import EnforceNotMet, Unsupported

_takes_cpu = False
_has_warned = False


def take_cpu() -> None:
    """From now on the CPU is taken where a GPU is asked for, with one warning in all."""
    global _takes_cpu
    _takes_cpu = True


def ask(what: str, instead: str, kind: type[EnforceNotMet] = Unsupported) -> None:
    """Answers a wish for a GPU.

    Args:
        what (str): as the user wrote it.
        instead (str): what does the same on the CPU.
        kind (type): class of the error.

    Raises:
        kind: this build has no CUDA plug-in, and :func:`take_cpu` has not been called.
    """
    global _has_warned
    if not _takes_cpu:
        raise kind("%s: this build has no CUDA plug-in; use %s, or start the script with `anabranch run`, which takes "
                   "the CPU instead" % (what, instead))
    if not _has_warned:
        _has_warned = True
        warnings.warn("%s: there is no GPU here, the CPU is used instead" % what, stacklevel=3)
