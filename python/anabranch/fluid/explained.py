"""Uniform arguments and errors of layer calls. NumPy's numbers arrive as Python's own. A layer checks its own
requirements; other exceptions that Python raises about its arguments are converted to errors of this package that name
the layer and, if an annotation gives it, the argument.

Exceptions of the caller's code inside a layer (for example in the branches of ``cond``) are passed on unchanged.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, NoReturn

import numpy as np

from .arguments import explain_class, problem
from .errors import EnforceNotMet, InvalidType, InvalidValue, also
from .framework import Variable
from .plain_numbers import plain

_RAW = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError)
_OF_ANNOTATIONS = {
    "int": (int, np.integer),
    "float": (int, float, np.number),
    "str": str,
    "bool": (bool, np.bool_),
    "None": type(None),
    "Variable": Variable,
    "Sequence": (list, tuple),
    "list": list,
    "tuple": tuple,
}
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
# Layers that copy an array: one without axes is not a number there.
_OF_ARRAYS = frozenset({"assign", "diag_embed"})
# Code that is neither ours nor the caller's.
_LIBRARIES = (os.path.dirname(np.__file__) + os.sep, os.path.dirname(os.__file__) + os.sep, "<")


def explain(module: dict[str, Any], names: Sequence[str] | None = None) -> None:
    """Replaces functions of a module by wrapped layers. The module calls it as its last statement, so that every
    importer gets the wrapped ones.

    Args:
        module (dict): ``globals()`` of the module.
        names (list of str, optional): names of the functions. Default: the functions of ``__all__``,
            and its classes, whose constructors and methods are wrapped.
    """
    for name in module["__all__"] if names is None else names:
        if inspect.isfunction(module[name]):
            module[name] = _explained(module[name])
        elif inspect.isclass(module[name]):
            explain_class(module[name], preparation)


def preparation(function: Callable[..., Any]) -> Callable[[Any, Any], tuple[Any, Any]]:
    """Returns a function of the arguments of a call, which raises InvalidType for those that the tables of
    ``accepted.py`` exclude, and returns the others. It reads the tables when it is first called, so that imports do
    not."""
    known: list[Callable[[Any, Any], tuple[Any, Any]] | None] = []

    def prepare(args: Any, kwargs: Any) -> tuple[Any, Any]:
        if not known:
            from .accepted import check_of
            known.append(check_of(function))
        return (args, kwargs) if known[0] is None else known[0](args, kwargs)

    return prepare


def _explained(function: Callable[..., Any]) -> Callable[..., Any]:
    takes_arrays = function.__name__ in _OF_ARRAYS
    prepare = preparation(function)

    @functools.wraps(function)
    def layer(*args: Any, **kwargs: Any) -> Any:
        if not takes_arrays:
            args = tuple(map(plain, args))
            kwargs = {name: plain(value) for name, value in kwargs.items()}
        args, kwargs = prepare(args, kwargs)
        try:
            return function(*args, **kwargs)
        except EnforceNotMet:
            raise
        except _RAW as error:
            if _by_the_caller(error.__traceback__):
                raise
            _raise(function, args, kwargs, error)

    layer._explains_calls = True  # type: ignore[attr-defined]
    return layer


def _by_the_caller(trace: TracebackType | None) -> bool:
    """Returns whether the exception came from the caller's code inside the layer."""
    files = []
    while trace is not None:
        files.append(os.path.abspath(trace.tb_frame.f_code.co_filename))
        trace = trace.tb_next
    return any(not f.startswith(_PACKAGE) and not f.startswith(_LIBRARIES) for f in files)


def _raise(function: Callable[..., Any], args: Any, kwargs: Any, error: Exception) -> NoReturn:
    kind: type[EnforceNotMet] = InvalidType if isinstance(error, (TypeError, AttributeError)) else InvalidValue
    signature = inspect.signature(function)
    try:
        given = signature.bind(*args, **kwargs).arguments
    except TypeError:
        raise InvalidType(problem(function, args, kwargs) or str(error)) from None
    for name, value in given.items():
        classes = str(signature.parameters[name].annotation).split(" | ")
        if not _fits(value, classes):
            raise kind(
                "%s: %s must be %s, got %.60r" % (function.__name__, name, " or ".join(classes), value)
            ) from error
    if isinstance(error, LookupError):
        kind = also(kind, type(error))
    raise kind("%s: %s" % (function.__name__, error)) from error


def _fits(value: Any, classes: list[str]) -> bool:
    known = [_OF_ANNOTATIONS.get(c.split("[")[0]) for c in classes]
    return None in known or any(isinstance(value, c) for c in known)  # type: ignore[arg-type]
