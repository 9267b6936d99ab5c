"""Exception classes.

Every error of the engine is an :class:`EnforceNotMet`; the classes below are also subclasses of a matching built-in
class, so that ``except ValueError`` and ``except fluid.core.EnforceNotMet`` both work. Programs written for Fluid
compare ``type(e).__name__``. This name is therefore ``EnforceNotMet`` for errors of the engine, and the name of the
built-in class for errors of arguments. Tracebacks and ``kind`` show the precise class.

>>> issubclass(InvalidArgument, (EnforceNotMet,)) and issubclass(InvalidArgument, ValueError)
True
>>> InvalidArgument.__name__, InvalidArgument.__qualname__
('EnforceNotMet', 'InvalidArgument')

The text of an error ends with the command that explains its class; ``message`` is the text without it.

>>> print(InvalidArgument("x must be above 0, got -1"))
x must be above 0, got -1
  help   anabranch help InvalidArgument
"""
from __future__ import annotations

import os
import re
from typing import Any, ClassVar

_HELP_LINE = re.compile(r"\n  help   anabranch help [^\n]*")


class EnforceNotMet(Exception):
    """Base class of every error raised by this package."""

    kind = "Internal"
    #: Advice, a sentence or two each, for the page of the error. A class has its own page if it has advice.
    advice: ClassVar[tuple[str, ...]] = (
        "Catch it to handle every error of the engine; `kind` is the kind of the error.",)

    @property
    def message(self) -> str:
        """str: the text of the error without the line about help."""
        return Exception.__str__(self)  # that of KeyError adds quotes

    def __str__(self) -> str:
        text = self.message
        if not text:
            return text
        text = _HELP_LINE.sub("", text)     # of an error that this one quotes
        return "%s\n  %s" % (text, where_to_read(page_of(type(self)).__qualname__))


#: Hint after a message about a relative path that does not exist; the working directory follows it.
RELATIVE = "\n  hint   the path is relative to the working directory, "
#: Finds the path in a message about a path that does not exist.
_MISSING_PATH = re.compile(r"(?:file|folder) (\S+) does not exist|neither (\S+) nor \S+ exists")


class _OfFiles(Exception):
    """Mixin of the errors about files. It adds the working directory to messages about relative paths that do not
    exist."""

    def __init__(self, *args: Any) -> None:
        text = args[0] if args and isinstance(args[0], str) else ""
        found = _MISSING_PATH.search(text)
        path = found and (found.group(1) or found.group(2))
        if path and not os.path.isabs(path) and ":" not in path and RELATIVE not in text:
            args = (text + RELATIVE + os.getcwd(), *args[1:])
        super().__init__(*args)


class EOFException(EnforceNotMet):
    """A reader inside the program has no more data: reset it before the next pass."""

    kind = "EndOfData"
    advice = (
        "Call `reader.reset()` where the loop catches it, then `reader.start()` before the next pass.",
        "A loop over an iterable `DataLoader` (`for feed in loader()`) ends by itself and never raises it.",
    )


# ---- errors of the engine; `kind` is the name of the C++ ErrorKind


class InvalidArgument(EnforceNotMet, ValueError):
    """A value that the operation does not accept."""

    kind = "InvalidArgument"
    advice = (
        "Read the first line: it names the operator, the argument, the requirement and the given value.",
        "The line `op` shows where your script created the operator: the mistake is there, or in the feeds.",
        "If a value is out of range (an id of a table, an axis, a probability), check the data of the batch.",
    )


class ShapeMismatch(EnforceNotMet, ValueError):
    """Shapes that do not match."""

    kind = "ShapeMismatch"
    advice = (
        "Compare the shapes in the first line. -1 stands for an extent that is known only at run time.",
        '`print(variable)` shows the shape of a variable; `fluid.default_main_program().draw("program.svg")` '
        'shows all.',
        "Labels of `cross_entropy` have the shape [rows, 1], not [rows]: feed `labels[:, None]`.",
        "If a later batch fails: the last batch of a pass is often smaller. Use `None` as the first extent of"
        " `fluid.data`.",
    )


class NotFound(_OfFiles, EnforceNotMet, LookupError):
    """A variable, file or operator that does not exist."""

    kind = "NotFound"
    advice: ClassVar[tuple[str, ...]] = (
        '"holds no value" of a parameter: run the startup program first, in the same scope: '
        '`executor.run(fluid.default_startup_program())`.',
        '"holds no value" of a variable of `fluid.data`: it is missing in `feed`, or has another name '
        'there.',
        "A fetched variable that the program does not have: it was created under another `program_guard`, or "
        "pruned.",
        "A file: the message gives the path; relative paths start where the process was started.",
    )


class MissingFeed(NotFound):
    """A variable that must be fed but was not."""

    advice = (
        "Feed the variable that the first line names: `executor.run(feed={name: array})`.",
        "Check its name in the feed: the names in `feed` are those given to `fluid.data`.",
        "If the run does not need it (prediction needs no labels): run a `program.clone(for_test=True)` from "
        "before the loss.",
    )


class Unsupported(EnforceNotMet, NotImplementedError):
    """A feature that this build does not support."""

    kind = "Unsupported"
    advice = (
        "The message names the missing feature and, if there is one, its replacement.",
        "For a GPU that this build does not have: use `fluid.CPUPlace()`, or start the script with `anabranch run`, "
        "which uses the CPU.",
        "For a name of Fluid that is not available: `docs/absent.md` lists all of them with their replacements.",
    )


class ResourceExhausted(EnforceNotMet, MemoryError):
    """Out of memory, disk or another resource."""

    kind = "ResourceExhausted"
    advice = (
        "`print(fluid.memory_report())` shows where the memory goes.",
        "Use a smaller batch, truncate long sequences, set `max_bytes` of a growable table, or check the largest "
        "variables of the report.",
        "If the disk is full: new checkpoints and snapshots are written before old ones are deleted, so there "
        "must be room for one more.",
    )


class Unavailable(EnforceNotMet, RuntimeError):
    """A file, peer or device is temporarily unavailable."""

    kind = "Unavailable"
    advice = (
        "For a server or worker: the message names the process that did not answer, and the waiting time. Read the "
        "end of its log.",
        "`FLAGS_rpc_deadline` and `FLAGS_collective_deadline` (milliseconds) set the waiting time.",
        "For a file or folder: check its permissions. For a plug-in: `anabranch doctor` lists the installed ones.",
    )


class Internal(EnforceNotMet, RuntimeError):
    """A defect of the engine itself. Please report it."""

    kind = "Internal"
    advice = (
        "It is not your mistake. Please report it with the whole message and the output of `anabranch doctor`.",
        "As a workaround, `FLAGS_disable_passes=all` runs the program as it is written.",
    )


# ---- mistakes that the Python layer finds


class InvalidValue(EnforceNotMet, ValueError):
    """An argument of the right type with an invalid value."""

    kind = "InvalidArgument"
    advice = (
        "The message names the function, the argument, its valid values and the value passed.",
        "`help(fluid.layers.NAME)` describes the range of each argument.",
    )


class InvalidType(EnforceNotMet, TypeError):
    """An argument of the wrong type."""

    kind = "InvalidArgument"
    advice = (
        "The message names the function, the argument and the type passed.",
        "A `Variable` is not a number: its value exists only at run time. To get it, pass the variable to "
        "`executor.run` in `fetch_list`.",
        'Lists are fed as arrays: `numpy.array(values, dtype="float32")`; sequences by '
        '`fluid.create_lod_tensor`.',
    )


class NotAllowed(EnforceNotMet, RuntimeError):
    """A call that is not allowed in the state of the object."""

    kind = "InvalidArgument"
    advice = (
        "The object does not allow this call in its current state. The message names the call that must come first, "
        "or the earlier call that forbids this one.",
        "After `executor.close()`, create another Executor.",
    )


class Violated(EnforceNotMet, AssertionError):
    """A rule of the interface that the caller broke."""

    kind = "InvalidArgument"
    advice = (
        "The message states the rule. Most rules concern `fluid.data`, places and strategies.",
        "With `CUDAPlace` or `use_cuda=True`: the device plug-in is missing; `anabranch run` uses the CPU instead.",
    )


class MissingFeeds(EnforceNotMet):
    """A reader without variables to fill."""

    kind = "InvalidArgument"
    advice = (
        "Pass `feed_list=[variables]` when you create the reader.",
    )


class UnknownName(EnforceNotMet, LookupError):
    """A name that does not exist in the program or file."""

    kind = "InvalidArgument"
    advice = (
        "Compare the name with those of the program: `[v.name for v in program.list_vars()]`.",
        "Generated names change when layers are added; `ParamAttr(name=...)` and `name=` set fixed names.",
    )


class MissingFile(_OfFiles, EnforceNotMet, FileNotFoundError):
    """A file that does not exist."""

    kind = "InvalidArgument"
    advice = (
        "Relative paths start where the process was started: print `os.getcwd()`.",
    )


class NotOffered(EnforceNotMet, NotImplementedError):
    """A combination that is not supported."""

    kind = "InvalidArgument"
    advice = (
        "The message says which settings cannot be combined; each of them works alone.",
    )


#: The ``__name__`` of each class, for programs that compare it.
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
_SHOWN.update(dict.fromkeys((*_ENGINE_ERRORS, MissingFeed), "EnforceNotMet"))
for _class, _name in _SHOWN.items():
    _class.__name__ = _name

#: Classes by the name of the C++ ErrorKind.
BY_KIND: dict[str, type[EnforceNotMet]] = {error.kind: error for error in (*_ENGINE_ERRORS, EOFException)}


#: Classes with their own page, in order of definition.
LISTED: tuple[type[EnforceNotMet], ...] = (
    EnforceNotMet, *BY_KIND.values(), InvalidValue, InvalidType, NotAllowed, Violated, MissingFeed, MissingFeeds,
    UnknownName, MissingFile, NotOffered)


def page_of(error: type[EnforceNotMet]) -> type[EnforceNotMet]:
    """Returns the class whose page documents a class: the class itself, or the nearest base class with a page."""
    return next(above for above in error.__mro__ if "advice" in vars(above))


_made: dict[tuple[type[EnforceNotMet], type[Exception]], type[EnforceNotMet]] = {}


def also(error: type[EnforceNotMet], other: type[Exception], shown: str | None = None) -> type[EnforceNotMet]:
    """Returns a subclass of ``error`` and of ``other``, the built-in class that Fluid 1.8.5 raises. Its ``__name__`` is
    ``shown``, or else the name of ``other``.

    >>> isinstance(also(InvalidValue, IndexError)("no block 5"), (InvalidValue, IndexError))
    True
    >>> also(InvalidValue, IndexError).__name__
    'IndexError'
    """
    if issubclass(error, other):
        return error
    if (error, other) not in _made:
        made = type(error.__qualname__, (error, other), {
            "__doc__": error.__doc__, "__module__": error.__module__, "__qualname__": error.__qualname__,
            "__reduce__": lambda self: (_also, (error, other, self.args))})
        made.__name__ = shown or other.__name__
        _made[error, other] = made
    return _made[error, other]


def _also(error: type[EnforceNotMet], other: type[Exception], args: tuple[Any, ...]) -> EnforceNotMet:
    """Makes such an error again, after pickling."""
    return also(error, other)(*args)


def where_to_read(name: str) -> str:
    """str: the command that explains an error, and its page if the environment variable ANABRANCH_DOCS names the folder
    or site of the documentation.

    >>> where_to_read("NotFound")
    'help   anabranch help NotFound'
    """
    docs = os.environ.get("ANABRANCH_DOCS")
    page = ", or " + os.path.join(docs, "errors", name + ".html") if docs else ""
    return "help   anabranch help %s%s" % (name, page)


def require(condition: Any, message: str, error: type[Exception] = Violated) -> None:
    """Raises ``error(message)`` unless ``condition`` holds (unlike ``assert``, also under ``python -O``)."""
    if not condition:
        raise error(message)
