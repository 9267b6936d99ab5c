"""Argument checks shared by the transpilers and role makers."""
from __future__ import annotations

from typing import Any

from ..errors import InvalidType, InvalidValue


def check_whole_number(what: str, value: Any, least: int) -> None:
    """Raises TypeError unless ``value`` is an int, ValueError when it is below ``least``."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidType("%s must be an int, got %s" % (what, type(value).__name__))
    if value < least:
        raise InvalidValue("%s must be at least %d, got %d" % (what, least, value))
