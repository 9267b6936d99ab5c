"""The time of the events that a program trains on."""
from __future__ import annotations

from . import _core
from .fluid.errors import InvalidValue

__all__ = ["set_event_time"]


def set_event_time(seconds: float | None) -> None:
    """Sets the time of the events that this process trains from now on, by which rows of growable tables with
    ``expire_after_s`` get older. Workers send it to their servers with each update, and a restarted server uses the
    times in its journal, so training on old events gives the same rows at any time.

    A time before the last one that a table has seen does not make its rows younger.

    Args:
        seconds (float): seconds since 1970, up to 2038. None: the wall clock, which is the default.

    Raises:
        ValueError: the number is out of range.

    Examples:
        >>> import anabranch
        >>> anabranch.set_event_time(1700000000)
        >>> anabranch.set_event_time(None)
    """
    if seconds is not None and (isinstance(seconds, bool) or not 0 < seconds < 2 ** 31):
        raise InvalidValue("set_event_time: seconds must be above 0 and below 2 ** 31, got %r" % (seconds,))
    _core.set_event_time(None if seconds is None else int(seconds))
