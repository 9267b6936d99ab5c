"""Exception classes.

Every error of the engine is an :class:`EnforceNotMet`; the kinds below are also the built-in class that fits, so that
``except ValueError`` and ``except fluid.core.EnforceNotMet`` both work. Programs written for Fluid compare
``type(e).__name__``: an error of the engine shows there as ``EnforceNotMet``, an error of an argument as the built-in
class it also is. Tracebacks and ``kind`` give the precise class.

>>> issubclass(InvalidArgument, (EnforceNotMet,)) and issubclass(InvalidArgument, ValueError)
True
>>> InvalidArgument.__name__, InvalidArgument.__qualname__
('EnforceNotMet', 'InvalidArgument')
"""
from __future__ import annotations

from typing import Any


class EnforceNotMet(Exception):
    """Base of every error raised by this package."""

    kind = "Internal"


class EOFException(EnforceNotMet):
    """A reader inside the program has no more data: reset it before the next pass."""

    kind = "EndOfData"


# ---- errors of the engine; `kind` is the name of the C++ ErrorKind


class InvalidArgument(EnforceNotMet, ValueError):
    """A value that the operation does not take."""

    kind = "InvalidArgument"


class ShapeMismatch(EnforceNotMet, ValueError):
    """Shapes that do not fit together."""

    kind = "ShapeMismatch"


class NotFound(EnforceNotMet, LookupError):
    """A variable, file or operator that does not exist."""

    kind = "NotFound"


class Unsupported(EnforceNotMet, NotImplementedError):
    """Something that this build does not do."""

    kind = "Unsupported"


class ResourceExhausted(EnforceNotMet, MemoryError):
    """Out of memory, disk or another resource."""

    kind = "ResourceExhausted"


class Unavailable(EnforceNotMet, RuntimeError):
    """A file, peer or device that cannot be used now."""

    kind = "Unavailable"


class Internal(EnforceNotMet, RuntimeError):
    """A fault of the engine itself; please report it."""

    kind = "Internal"


# ---- mistakes that the Python layer finds


class InvalidValue(EnforceNotMet, ValueError):
    """An argument of the right type with a bad value."""

    kind = "InvalidArgument"


class InvalidType(EnforceNotMet, TypeError):
    """An argument of the wrong type."""

    kind = "InvalidArgument"


class NotAllowed(EnforceNotMet, RuntimeError):
    """A call that does not fit the state of the object."""

    kind = "InvalidArgument"


class Violated(EnforceNotMet, AssertionError):
    """A rule of the interface that the caller broke."""

    kind = "InvalidArgument"


class MissingFeeds(EnforceNotMet):
    """A reader that was told no variables to fill."""

    kind = "InvalidArgument"


class UnknownName(EnforceNotMet, LookupError):
    """A name that the program or file does not have."""

    kind = "InvalidArgument"


class MissingFile(EnforceNotMet, FileNotFoundError):
    """A file that does not exist."""

    kind = "InvalidArgument"


class NotOffered(EnforceNotMet, NotImplementedError):
    """A combination that is not offered."""

    kind = "InvalidArgument"


#: What ``__name__`` shows, for programs that compare it.
_SHOWN = {
    InvalidValue: "ValueError",
    InvalidType: "TypeError",
    NotAllowed: "RuntimeError",
    Violated: "AssertionError",
    MissingFeeds: "Exception",
    UnknownName: "LookupError",
    MissingFile: "FileNotFoundError",
    NotOffered: "NotImplementedError",
}
_ENGINE_ERRORS = (InvalidArgument, ShapeMismatch, NotFound, Unsupported, ResourceExhausted, Unavailable, Internal)
_SHOWN.update(dict.fromkeys(_ENGINE_ERRORS, "EnforceNotMet"))
for _class, _name in _SHOWN.items():
    _class.__name__ = _name

#: Classes by the name of the C++ ErrorKind.
BY_KIND: dict[str, type[EnforceNotMet]] = {error.kind: error for error in (*_ENGINE_ERRORS, EOFException)}


def require(condition: Any, message: str, error: type[Exception] = Violated) -> None:
    """Raises ``error(message)`` unless ``condition`` holds (unlike ``assert``, also under ``python -O``)."""
    if not condition:
        raise error(message)
