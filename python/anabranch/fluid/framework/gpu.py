"""Requests for a GPU in a build without one: a typed error, or the CPU under ``anabranch run``."""
from __future__ import annotations

from ..errors import EnforceNotMet, Unsupported
from ..user_warnings import warn

_takes_cpu = False
_has_warned = False


def take_cpu() -> None:
    """Makes later requests for a GPU use the CPU, with a single warning."""
    global _takes_cpu
    _takes_cpu = True


def ask(what: str, instead: str, kind: type[EnforceNotMet] = Unsupported) -> None:
    """Handles a request for a GPU.

    Args:
        what (str): the request as the user wrote it.
        instead (str): the equivalent on the CPU.
        kind (type): class of the error.

    Raises:
        kind: this build has no CUDA plug-in, and :func:`take_cpu` has not been called.
    """
    global _has_warned
    if not _takes_cpu:
        raise kind("%s: this build has no CUDA plug-in: use %s, or start the script with `anabranch run`, which uses "
                   "the CPU instead" % (what, instead))
    if not _has_warned:
        _has_warned = True
        warn("%s: no GPU is available, the CPU is used instead" % what)
