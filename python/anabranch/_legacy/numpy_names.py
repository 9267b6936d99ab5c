"""Names, modules and keywords of NumPy 1.19 that newer versions lack."""
from __future__ import annotations

import ast
import functools
import pickle
import sys
import types
import warnings
from collections.abc import Iterator
from typing import Any

import numpy

from .on_import import when_imported

_SCALARS: dict[str, tuple[type, ...]] = {
    "int": (numpy.int8, numpy.int16, numpy.int32, numpy.int64),
    "uint": (numpy.uint8, numpy.uint16, numpy.uint32, numpy.uint64),
    "float": (numpy.float16, numpy.float32, numpy.float64, numpy.longdouble),
    "complex": (numpy.complex64, numpy.complex128, numpy.clongdouble),
    "others": (bool, object, bytes, str, numpy.void)}
#: Keywords that have other names now: module -> function -> {old: new}; None if the argument had no effect any more.
_KEYWORDS: dict[str, dict[str, dict[str, str | None]]] = {
    "numpy": {
        "reshape": {"newshape": "shape"}, "in1d": {"ar1": "element", "ar2": "test_elements"},
        "percentile": {"interpolation": "method"}, "nanpercentile": {"interpolation": "method"},
        "quantile": {"interpolation": "method"}, "nanquantile": {"interpolation": "method"},
        "histogram": {"normed": "density"}, "histogram2d": {"normed": "density"}, "histogramdd": {"normed": "density"},
        "corrcoef": {"bias": None, "ddof": None}, "save": {"fix_imports": None}, "array2string": {"style": None}},
    "numpy.linalg": {"matrix_rank": {"M": "A"}},
    "numpy.testing": {
        "assert_array_equal": {"x": "actual", "y": "desired"},
        "assert_array_almost_equal": {"x": "actual", "y": "desired"}}}


class _ByType(dict):  # type: type[dict[Any, Any]]
    """A dictionary whose keys are types, or anything that names one.

    >>> _ByType({numpy.float32: 4})["f4"]
    4
    """

    def __missing__(self, key: Any) -> Any:
        kind = numpy.dtype(key).type
        if kind not in self:
            raise KeyError(key)
        return self[kind]


def _kinds() -> list[type]:
    return sorted({it for it in numpy.sctypeDict.values() if issubclass(it, numpy.generic)}, key=lambda it: it.__name__)


def _as_type(kind: type) -> Any:
    return lambda values: numpy.asarray(values).astype(kind)


def _common_type(array_types: Any, scalar_types: Any) -> numpy.dtype[Any]:
    """``find_common_type``: scalars count only if their kind is higher than those of the arrays.

    >>> _common_type([numpy.float32], [numpy.int64]), _common_type([numpy.int8], [numpy.float64])
    (dtype('float32'), dtype('float64'))
    """
    arrays, scalars = [numpy.dtype(it) for it in array_types], [numpy.dtype(it) for it in scalar_types]
    if not arrays or not scalars:
        return numpy.result_type(*(arrays or scalars))
    of_arrays, of_scalars = numpy.result_type(*arrays), numpy.result_type(*scalars)
    order = "buifc"
    return of_scalars if order.find(of_scalars.kind) > order.find(of_arrays.kind) else of_arrays


def _largest(kind: Any) -> type:
    """``maximum_sctype``: the largest type of the same kind."""
    own = numpy.dtype(kind).type
    return next((kinds[-1] for kinds in list(_SCALARS.values())[:-1] if own in kinds), own)


def _scalar_type(value: Any, default: Any = None) -> Any:
    """``obj2sctype``: the scalar type of a value that describes one."""
    try:
        return numpy.dtype(value).type
    except TypeError:
        return default


def _deprecate(*args: Any, **kwargs: Any) -> Any:
    """``deprecate``, also as a decorator: calls warn that the function is deprecated."""
    if not args:
        return lambda function: _deprecate(function, **kwargs)
    function = args[0]

    @functools.wraps(function)
    def wrapped(*given: Any, **named: Any) -> Any:
        text = "`%s` is deprecated!" % (kwargs.get("old_name") or function.__name__)
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return function(*given, **named)
    return wrapped


def _disp(message: Any, device: Any = None, linefeed: bool = True) -> None:
    print(message, file=device, end="\n" if linefeed else "")


def _names() -> dict[str, Any]:
    """dict: the objects of NumPy 1.19 that newer versions lack."""
    kinds = _kinds()
    return {
        "cast": _ByType({kind: _as_type(kind) for kind in kinds}),
        "nbytes": _ByType({kind: numpy.dtype(kind).itemsize for kind in kinds}),
        "sctypes": {name: list(some) for name, some in _SCALARS.items()}, "typeDict": numpy.sctypeDict,
        "find_common_type": _common_type, "maximum_sctype": _largest, "obj2sctype": _scalar_type,
        "issctype": lambda it: isinstance(it, type) and issubclass(it, numpy.generic),
        "sctype2char": lambda it: numpy.dtype(it).char, "alen": lambda it: len(numpy.array(it, ndmin=1)),
        "byte_bounds": getattr(getattr(numpy.lib, "array_utils", None), "byte_bounds", None),
        "chararray": getattr(numpy.char, "chararray", None), "compare_chararrays": numpy.char.compare_chararrays,
        "deprecate": _deprecate, "disp": _disp, "loads": pickle.loads, "safe_eval": ast.literal_eval,
        "fastCopyAndTranspose": lambda it: numpy.asarray(it).T.copy(), "MAXDIMS": 32, "void0": numpy.void,
        "set_string_function": lambda f, repr=True: numpy.set_printoptions(
            formatter=None if f is None else {"all": f})}


def _compat() -> types.ModuleType:
    module = types.ModuleType("numpy.compat")
    module.__dict__.update(
        long=int, integer_types=(int,), basestring=str, unicode=str, bytes=bytes, sixu=lambda it: it, strchar="U",
        asstr=lambda it: it.decode("latin-1") if isinstance(it, bytes) else str(it), asunicode=lambda it: (
            it.decode("latin-1") if isinstance(it, bytes) else str(it)),
        asbytes=lambda it: it if isinstance(it, bytes) else str(it).encode("latin-1"))
    return module


def _renamed(original: Any, keywords: dict[str, str | None]) -> Any:
    @functools.wraps(original)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        for old, new in keywords.items():
            if old in kwargs:
                value = kwargs.pop(old)
                if new is not None:
                    kwargs[new] = value
        return original(*args, **kwargs)
    return wrapped


def _rename(functions: dict[str, dict[str, str | None]], owner: Any) -> None:
    for name, keywords in functions.items():
        setattr(owner, name, _renamed(getattr(owner, name), keywords))


def _summing(original: Any) -> Any:
    """``sum``: an iterator counts as the numbers that it yields."""
    @functools.wraps(original)
    def wrapped(a: Any, *args: Any, **kwargs: Any) -> Any:
        return sum(a) if isinstance(a, Iterator) and not args and not kwargs else original(a, *args, **kwargs)
    return wrapped


def _of_numpy(original: Any) -> Any:
    """``__getattr__`` of a module that had functions of NumPy itself, such as ``numpy.lib.pad``."""
    def find(name: str) -> Any:
        if not name.startswith("__") and name in vars(numpy):
            return getattr(numpy, name)
        if original is None:
            raise AttributeError(name)
        return original(name)
    return find


def install() -> None:
    """Adds the names, modules and keywords to NumPy, in this process."""
    for name, value in _names().items():
        if name not in vars(numpy) and value is not None:
            setattr(numpy, name, value)
    if "compat" not in vars(numpy):
        numpy.compat = sys.modules["numpy.compat"] = _compat()  # type: ignore[attr-defined]
    for module in (numpy.lib, numpy.lib.stride_tricks):
        module.__getattr__ = _of_numpy(vars(module).get("__getattr__"))  # type: ignore[method-assign]
    for owner, functions in _KEYWORDS.items():
        when_imported(owner, functools.partial(_rename, functions))
    numpy.sum = _summing(numpy.sum)
