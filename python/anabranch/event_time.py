"""The time of the events that a program trains on."""
from __future__ import annotations

from . import _core
from .fluid.errors import InvalidValue

__all__ = ["set_event_time"]


def set_event_time(seconds: float | None) -> None:
    """Sets the time of the events that this process trains on next.

    Growable tables with ``expire_after_s`` measure the ages of their rows by this time. Workers send it to their
    servers with each update, and a restarted server reads the times from its journal, so training on old events gives
    the same rows whenever it runs. Ages never decrease: a table ignores a time that is earlier than the last one it has
    seen.

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
