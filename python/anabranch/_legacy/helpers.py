"""Functions that the rewritten files of the user call (``rewriting.py``), where today's behavior is an error.

Each function does what the original expression does. If this fails, or if the value is an array of one element, it does
what NumPy before 2.4, Python before 3.8 or Python 2 did.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy

from . import python2_names
from .today import Fetched


def number(kind: Any, value: Any) -> Any:
    """``kind(value)`` for ``float``, ``int`` and ``complex``; an array of one element counts as its element.

    >>> number(float, numpy.array([[0.5]]))
    0.5
    """
    try:
        return kind(value)
    except TypeError:
        if isinstance(value, numpy.ndarray) and value.size == 1:
            return kind(value.item())
        raise


def shown(value: Any) -> Any:
    """A value for ``%`` formatting and functions of ``math``: an array of one element can be converted to a number.

    >>> "%.1f" % shown(numpy.array([0.5]))
    '0.5'
    """
    if type(value) is numpy.ndarray:
        return value.view(Fetched) if value.size == 1 and value.ndim else value
    if type(value) is tuple:
        return tuple(shown(item) for item in value)
    return value


def store(value: Any, target: Any, key: Any) -> None:
    """``target[key] = value``; an array of one element can be assigned to an element, and integers wrap around.

    >>> a = numpy.zeros(2)
    >>> store(numpy.array([[3.0]]), a, 0)
    >>> a.tolist()
    [3.0, 0.0]
    """
    try:
        target[key] = value
    except (ValueError, OverflowError) as e:
        if not isinstance(target, numpy.ndarray):
            raise
        if isinstance(e, OverflowError):
            target[key] = numpy.asarray(value).astype(target.dtype)
        elif isinstance(value, numpy.ndarray) and value.size == 1 and value.ndim:
            target[key] = value.item()
        else:
            raise


class Lazy:
    """What ``map``, ``zip`` and ``filter`` return: an iterator, and a list as soon as it is used as one.

    >>> made = lazy(map(str, [1, 2]))
    >>> len(made), made[1]
    (2, '2')
    """

    __slots__ = ("_at", "_values")

    def __init__(self, values: Any) -> None:
        self._values, self._at = values, 0

    def _list(self) -> list[Any]:
        if not isinstance(self._values, list):
            self._values = list(self._values)
        return self._values

    def __iter__(self) -> Any:
        return iter(self._values) if isinstance(self._values, list) else self

    def __next__(self) -> Any:
        if not isinstance(self._values, list):
            return next(self._values)
        if self._at == len(self._values):  # list(self) asks for the length between two items
            raise StopIteration
        self._at += 1
        return self._values[self._at - 1]

    def __len__(self) -> int:
        return len(self._list())

    def __bool__(self) -> bool:
        return not isinstance(self._values, list) or bool(self._values)

    def __getitem__(self, key: Any) -> Any:
        return self._list()[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._list()[key] = value

    def __add__(self, other: Any) -> Any:
        return self._list() + list(other)

    def __radd__(self, other: Any) -> Any:
        return other + self._list()

    def __eq__(self, other: Any) -> bool:
        return self is other or isinstance(other, list) and self._list() == other

    __hash__ = None  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(list, name):
            raise AttributeError("'list' object has no attribute %r" % name)
        return getattr(self._list(), name)


def lazy(values: Any) -> Any:
    """An iterator as :class:`Lazy`; anything else as it is."""
    return Lazy(values) if type(values) in (map, zip, filter) else values


def indexed(view: Any) -> Any:
    """``d.keys()`` and the like before ``[``: a list."""
    return list(view) if isinstance(view, python2_names.VIEWS) else view


def whole(value: Any) -> Any:
    """A quotient that bounds a slice: rounded down, as the quotient of integers was.

    >>> whole(2.5)
    2
    """
    return math.floor(value) if isinstance(value, float) else value


def whole_range(kind: Any, *ends: Any) -> Any:
    """``range(*ends)``; quotients are rounded down, as quotients of integers were.

    >>> list(whole_range(range, 5 / 2))
    [0, 1]
    """
    try:
        return kind(*ends)
    except TypeError:
        return kind(*(whole(end) for end in ends))


def _newbyteorder(array: Any, *order: str) -> Any:
    return array.view(array.dtype.newbyteorder(*order))


def _itemset(array: Any, *args: Any) -> None:
    *index, value = args
    if len(index) == 1 and not isinstance(index[0], tuple):
        array.flat[index[0]] = value
    else:
        array[index[0] if len(index) == 1 else tuple(index)] = value


def _ptp(array: Any, *args: Any, **kwargs: Any) -> Any:
    return numpy.ptp(array, *args, **kwargs)


#: Methods that objects had: name -> what is called, with the object first, where the object lacks the method.
GONE: dict[str, Callable[..., Any]] = {
    "tostring": lambda it, *args: it.tobytes(*args),       # ndarray and array.array
    "fromstring": lambda it, *args: it.frombytes(*args),   # array.array
    "itemset": _itemset, "ptp": _ptp, "newbyteorder": _newbyteorder,
    "isAlive": lambda it: it.is_alive(),
    "getchildren": lambda it: list(it),                    # elements of xml.etree
    "getiterator": lambda it, *args: list(it.iter(*args)),
    "iteritems": lambda it: iter(it.items()), "iterkeys": lambda it: iter(it.keys()),
    "itervalues": lambda it: iter(it.values()), "has_key": lambda it, key: key in it,
    "viewitems": lambda it: it.items(), "viewkeys": lambda it: it.keys(), "viewvalues": lambda it: it.values(),
}


def method(owner: Any, name: str) -> Any:
    """``owner.name``, or what stands for it in :data:`GONE`.

    >>> method({1: 2}, "has_key")(1)
    True
    """
    try:
        return getattr(owner, name)
    except AttributeError:
        # An array, a dict ... whose type has lost the method; an error of any other object stays what it is.
        if name not in GONE or type(owner).__module__.partition(".")[0] not in _LOST:
            raise
    stands = GONE[name]
    return lambda *args, **kwargs: stands(owner, *args, **kwargs)


#: Packages whose types have lost methods of GONE.
_LOST = {"builtins", "numpy", "array", "collections", "threading", "multiprocessing", "xml", "pandas", "os"}
