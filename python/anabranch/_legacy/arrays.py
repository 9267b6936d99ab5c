"""Functions of NumPy that scripts call in ways which NumPy 1.24 and later refuse."""
from __future__ import annotations

import collections.abc
import functools
import sys
from typing import Any

import numpy

from .on_import import when_imported
from .user_files import is_users


def _of_user() -> bool:
    """bool: whether a file of the user has called the wrapper that calls this."""
    return is_users(sys._getframe(2).f_code.co_filename)


def _ragged(values: Any) -> Any:
    """Sequences of different lengths as an array of objects, as before NumPy 1.24.

    >>> _ragged([[1, 2], [3]])
    array([list([1, 2]), list([3])], dtype=object)
    """
    return numpy.array(values, dtype=object)


def _making(original: Any) -> Any:
    """``array`` and ``asarray``: lists of different lengths make an array of objects, integers wrap around."""
    @functools.wraps(original)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return original(*args, **kwargs)
        except OverflowError:
            dtype = args[1] if len(args) > 1 else kwargs.get("dtype")
            if dtype is None or numpy.dtype(dtype).kind not in "iu" or not _of_user():
                raise
            return original(args[0]).astype(dtype)
        except ValueError as e:
            if kwargs.get("copy") is False:
                return wrapped(*args, **{**kwargs, "copy": None})
            if len(args) != 1 or kwargs.get("dtype") is not None or "inhomogeneous" not in str(e) or not _of_user():
                raise
            return _ragged(args[0])
    return wrapped


def _reading(original: Any) -> Any:
    """Functions of one array: lists of different lengths count as an array of objects."""
    @functools.wraps(original)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return original(*args, **kwargs)
        except ValueError as e:
            if "inhomogeneous" not in str(e) or not _of_user():
                raise
            return original(*(_ragged(it) if isinstance(it, (list, tuple)) else it for it in args),
                            **{name: _ragged(it) if isinstance(it, list) else it for name, it in kwargs.items()})
    return wrapped


def _stacking(original: Any) -> Any:
    """``stack`` and the like: an iterator counts as the list of its items."""
    @functools.wraps(original)
    def wrapped(arrays: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(arrays, collections.abc.Iterator):
            arrays = list(arrays)
        return original(arrays, *args, **kwargs)
    return wrapped


def _fromstring(original: Any) -> Any:
    """Binary data, which NumPy 2.3 no longer reads."""
    @functools.wraps(original)
    def wrapped(string: Any, dtype: Any = float, count: int = -1, *args: Any, **kwargs: Any) -> Any:
        if args or kwargs.get("sep"):
            return original(string, dtype, count, *args, **kwargs)
        data = string.encode("latin-1") if isinstance(string, str) else string
        return numpy.frombuffer(data, dtype, count).copy()
    return wrapped


def _random_integers(low: Any, high: Any = None, size: Any = None) -> Any:
    first, last = (1, low) if high is None else (low, high)
    return numpy.random.randint(first, last + 1, size=size)


def _add_random_integers(module: Any) -> None:
    module.random_integers = _random_integers


#: Functions that are wrapped: wrapper -> names.
_WRAPPED = ((_making, ("array", "asarray", "asanyarray")),
            (_reading, ("save", "savez", "savez_compressed", "shape", "size", "max", "min", "sum", "amax", "amin")),
            (_stacking, ("stack", "vstack", "hstack", "dstack", "concatenate", "column_stack", "row_stack")),
            (_fromstring, ("fromstring",)))
#: Functions that NumPy has removed.
_REMOVED = {"asscalar": lambda a: a.item(), "asfarray": lambda a, dtype=float: numpy.asarray(a, dtype=dtype),
            "NINF": -numpy.inf, "PZERO": 0.0, "NZERO": -0.0, "rank": numpy.ndim,
            "issubclass_": issubclass, "issubsctype": numpy.issubdtype,
            "msort": lambda a: numpy.sort(a, axis=0)}
_WARNINGS = ("AxisError", "ComplexWarning", "VisibleDeprecationWarning", "RankWarning", "TooHardError")


def install() -> None:
    """Wraps the functions, and adds those that are gone, in this process."""
    for name, value in _REMOVED.items():
        if name not in vars(numpy):
            setattr(numpy, name, value)
    for name in _WARNINGS:
        if name not in vars(numpy) and hasattr(numpy, "exceptions"):
            setattr(numpy, name, getattr(numpy.exceptions, name))
    if int(numpy.__version__.partition(".")[0]) < 2:
        return
    for wrapper, names in _WRAPPED:
        for name in names:
            setattr(numpy, name, wrapper(getattr(numpy, name)))
    when_imported("numpy.random", _add_random_integers)
    # Numbers in lists are printed as before: [0.5] instead of [np.float64(0.5)].
    numpy.set_printoptions(legacy="1.25")
