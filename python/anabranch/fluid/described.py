"""Objects whose repr shows their class and arguments."""
from __future__ import annotations

import inspect
from typing import Any

_ABSENT = object()
_LONGEST = 60


class Described:
    """The repr of a subclass shows the class and the arguments that differ from their defaults.

    The value of an argument is read from the attribute with its name, with or without a leading underscore.

    >>> class Ball(Described):
    ...     def __init__(self, radius, color="red"):
    ...         self.radius, self._color = radius, color
    >>> Ball(3), Ball(3, "blue")
    (Ball(radius=3), Ball(radius=3, color='blue'))
    """

    def __repr__(self) -> str:
        shown = []
        for argument in inspect.signature(type(self)).parameters.values():
            value = getattr(self, "_" + argument.name, _ABSENT)
            value = getattr(self, argument.name, _ABSENT) if value is _ABSENT else value
            if value is not _ABSENT and value is not None and not _is_default(value, argument.default):
                shown.append("%s=%s" % (argument.name, _short(value)))
        return "%s(%s)" % (type(self).__name__, ", ".join(shown))


def _is_default(value: Any, default: Any) -> bool:
    if value is default or (default is None and isinstance(value, (list, dict, set, tuple)) and not value):
        return True
    # `==` of Variables appends an op
    return isinstance(value, (bool, int, float, str, tuple, list)) and type(value) is type(default) and value == default


def _short(value: Any) -> str:
    """Shows a value in one short line. Objects with a name are shown by it."""
    if isinstance(value, (list, tuple)):
        text = "[%s]" % ", ".join(_short(v) for v in value)
    elif hasattr(value, "shape") and hasattr(value, "name"):
        text = value.name
    else:
        text = repr(value)
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else text[:_LONGEST - 4] + " ..."
