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
import builtins


class EnforceNotMet(Exception):
    """Base of every error raised by this package."""

    kind = "Internal"


class EOFException(EnforceNotMet):
    """A reader inside the program has no more data: reset it before the next pass."""

    kind = "EndOfData"


def _engine_error(name, base, doc):
    """Class of a kind of engine error: called ``name`` here, shown as EnforceNotMet by ``__name__``."""
    bases = (EnforceNotMet,) if base is None else (EnforceNotMet, base)
    cls = type("EnforceNotMet", bases, {"__doc__": doc, "kind": name, "__module__": __name__})
    cls.__qualname__ = name
    return cls


def _argument_error(name, base, doc):
    """Class of a mistake that the Python layer finds: called ``name`` here, shown as the built-in class."""
    members = {"__doc__": doc, "kind": "InvalidArgument", "__module__": __name__}
    cls = type(base.__name__, (EnforceNotMet, base), members)
    cls.__qualname__ = name
    return cls


InvalidArgument = _engine_error("InvalidArgument", ValueError, "A value that the operation does not take.")
ShapeMismatch = _engine_error("ShapeMismatch", ValueError, "Shapes that do not fit together.")
NotFound = _engine_error("NotFound", LookupError, "A variable, file or operator that does not exist.")
Unsupported = _engine_error("Unsupported", NotImplementedError, "Something that this build does not do.")
ResourceExhausted = _engine_error("ResourceExhausted", MemoryError, "Out of memory, disk or another resource.")
Unavailable = _engine_error("Unavailable", RuntimeError, "A file, peer or device that cannot be used now.")
Internal = _engine_error("Internal", RuntimeError, "A fault of the engine itself; please report it.")

InvalidValue = _argument_error("InvalidValue", builtins.ValueError, "An argument of the right type with a bad value.")
InvalidType = _argument_error("InvalidType", builtins.TypeError, "An argument of the wrong type.")
NotAllowed = _argument_error("NotAllowed", builtins.RuntimeError, "A call that does not fit the state of the object.")
Violated = _argument_error("Violated", builtins.AssertionError, "A rule of the interface that the caller broke.")
MissingFeeds = _argument_error("MissingFeeds", builtins.Exception, "A reader that was told no variables to fill.")
UnknownName = _argument_error("UnknownName", builtins.LookupError, "A name that the program or file does not have.")
MissingFile = _argument_error("MissingFile", builtins.FileNotFoundError, "A file that does not exist.")
NotOffered = _argument_error("NotOffered", builtins.NotImplementedError, "A combination that is not offered.")

#: Classes by the name of the C++ ErrorKind.
BY_KIND = {
    "InvalidArgument": InvalidArgument,
    "ShapeMismatch": ShapeMismatch,
    "NotFound": NotFound,
    "Unsupported": Unsupported,
    "ResourceExhausted": ResourceExhausted,
    "Unavailable": Unavailable,
    "Internal": Internal,
    "EndOfData": EOFException,
}


def require(condition, message, error=Violated):
    """Raises ``error(message)`` unless ``condition`` holds (unlike ``assert``, also under ``python -O``)."""
    if not condition:
        raise error(message)
