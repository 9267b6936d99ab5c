"""NumPy behavior that old scripts rely on: removed names, and arrays of one element that act as numbers."""
from __future__ import annotations

import functools
from typing import Any

import numpy

from ..fluid.executor import Executor
from ..fluid.parallel_executor import ParallelExecutor
from . import arrays, numpy_names

#: Names that newer versions of NumPy lack.
_GONE = {"float": float, "int": int, "bool": bool, "object": object, "str": str, "complex": complex, "unicode": str,
         "long": int}
#: Other spellings that NumPy 2 removed: name -> what NumPy calls it.
_RENAMED = {
    "float_": "float64", "complex_": "complex128", "cfloat": "complex128", "singlecomplex": "complex64",
    "longfloat": "longdouble", "longcomplex": "clongdouble", "clongfloat": "clongdouble", "string_": "bytes_",
    "unicode_": "str_", "bool8": "bool_", "int0": "intp", "uint0": "uintp", "object0": "object_", "str0": "str_",
    "bytes0": "bytes_", "Inf": "inf", "Infinity": "inf", "infty": "inf", "PINF": "inf", "NaN": "nan", "NAN": "nan",
    "product": "prod", "cumproduct": "cumprod", "sometrue": "any", "alltrue": "all", "row_stack": "vstack",
    "mat": "asmatrix", "trapz": "trapezoid", "round_": "round", "in1d": "isin"}


class Fetched(numpy.ndarray):
    """A fetched array: one element is a number at any rank, as it was before NumPy 2.4.

    Parts of it, views, pickles and ``numpy.asarray`` are plain arrays. Its sums, means and the like are numbers.

    >>> a = numpy.array([[0.5]]).view(Fetched)
    >>> "%.2f" % a, type(a[0]).__name__, type(numpy.mean(a)).__name__
    ('0.50', 'ndarray', 'float64')
    """

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        """Results of NumPy's functions: a number where an array would give one."""
        return numpy.asarray(array)[()] if return_scalar else numpy.ndarray.view(array, Fetched)

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __repr__(self) -> str:
        return repr(numpy.asarray(self))

    def __getitem__(self, key: Any) -> Any:
        return numpy.asarray(self)[key]

    def __reduce__(self) -> Any:
        return numpy.asarray(self).__reduce__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return numpy.asarray(self).__reduce_ex__(protocol)

    def view(self, *args: Any, **kwargs: Any) -> Any:
        return numpy.asarray(self).view(*args, **kwargs)


def _as_fetched(value: Any) -> Any:
    """A plain array as :class:`Fetched`; lists item by item; anything else as it is."""
    if type(value) is list:
        return [_as_fetched(item) for item in value]
    return value.view(Fetched) if type(value) is numpy.ndarray else value


def _fetching(run: Any) -> Any:
    @functools.wraps(run)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return _as_fetched(run(*args, **kwargs))
    return wrapped


def install() -> None:
    """Restores the names that NumPy lacks, and makes executors return :class:`Fetched`."""
    for name, kind in _GONE.items():
        if name not in vars(numpy):
            setattr(numpy, name, kind)
    for name, new in _RENAMED.items():
        if name not in vars(numpy) and hasattr(numpy, new):
            setattr(numpy, name, getattr(numpy, new))
    arrays.install()
    if int(numpy.__version__.partition(".")[0]) >= 2:
        numpy_names.install()
    for executor in (Executor, ParallelExecutor):
        executor.run = _fetching(executor.run)  # type: ignore[method-assign]
