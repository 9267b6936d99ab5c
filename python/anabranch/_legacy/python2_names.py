"""Names of Python 2 that Python 3 lacks, or that meant something else."""
from __future__ import annotations

import builtins
import collections.abc
import functools
import importlib
import importlib.machinery
import itertools
import numbers
import operator
import string
import sys
from types import ModuleType
from typing import Any

import numpy

from ..compat import round as _round
from .user_files import imported_by_user


def _is_whole(value: Any) -> bool:
    return isinstance(value, numbers.Integral) or isinstance(value, (numpy.ndarray, numpy.generic)) \
        and value.dtype.kind in "iub"


def div(a: Any, b: Any) -> Any:
    """``a / b``, rounded down for integers.

    >>> div(7, 2), div(7.0, 2)
    (3, 3.5)
    """
    return operator.floordiv(a, b) if _is_whole(a) and _is_whole(b) else operator.truediv(a, b)


def idiv(a: Any, b: Any) -> Any:
    """``a /= b``, rounded down for integers."""
    return operator.ifloordiv(a, b) if _is_whole(a) and _is_whole(b) else operator.itruediv(a, b)


#: Types of what the methods of a dict return.
VIEWS = (collections.abc.KeysView, collections.abc.ValuesView, collections.abc.ItemsView)


def listed(owner: Any, name: str) -> Any:
    """``owner.keys()``, ``owner.values()`` or ``owner.items()``, as a list if ``owner`` is a dict.

    >>> listed({1: 2}, "keys")
    [1]
    """
    found = getattr(owner, name)()
    return list(found) if isinstance(found, VIEWS) else found


def decoded(text: Any, *coding: Any) -> Any:
    """``text.decode(coding)``. A str, which is decoded already, is returned unchanged."""
    return text if isinstance(text, str) else text.decode(*coding)


def key_of(compare: Any) -> Any:
    """A key for ``sort`` from a function that compares two values."""
    return functools.cmp_to_key(compare)


def _sorted(values: Any, cmp: Any = None, key: Any = None, reverse: bool = False) -> list[Any]:
    if cmp is not None:
        ordered = functools.cmp_to_key(cmp)
        return sorted(values, key=ordered if key is None else lambda it: ordered(key(it)), reverse=reverse)
    return sorted(values, key=key, reverse=reverse)


def _map(function: Any, *values: Any) -> list[Any]:
    if function is None:
        rows = list(itertools.zip_longest(*values))
        return [row[0] for row in rows] if len(values) == 1 else rows
    return [function(*row) for row in itertools.zip_longest(*values)] if len(values) > 1 \
        else [function(it) for it in values[0]]


def _filter(function: Any, values: Any) -> Any:
    kept = builtins.filter(function, values)
    return "".join(kept) if isinstance(values, str) else tuple(kept) if isinstance(values, tuple) else list(kept)


def _cmp(a: Any, b: Any) -> int:
    return (a > b) - (a < b)


def _execfile(path: str, *names: dict[str, Any]) -> None:
    from .rewriting import compiled  # which imports this module
    with open(path, "rb") as file:
        code, given = compiled(file.read(), path)
    into = names or (sys._getframe(1).f_globals,)
    into[0].update(given)
    exec(code, *into)  # noqa: S102 - the user's own file


#: Names that only Python 2 has.
ONLY_THERE: dict[str, Any] = {
    "xrange": range, "unicode": str, "basestring": str, "long": int, "unichr": chr, "raw_input": input,
    "reduce": functools.reduce, "cmp": _cmp, "execfile": _execfile, "reload": importlib.reload, "file": open,
    "intern": sys.intern, "apply": lambda function, args=(), words={}: function(*args, **words)}
#: Names of a module that was written for Python 2.
BUILTINS: dict[str, Any] = {
    **ONLY_THERE, "sorted": _sorted, "round": _round, "map": _map, "filter": _filter,
    "zip": lambda *values: list(builtins.zip(*values)), "range": lambda *ends: list(builtins.range(*ends))}

#: Modules that have another name: old -> new ones, the first that has a name counts.
MODULES: dict[str, tuple[str, ...]] = {
    "cPickle": ("pickle",), "Queue": ("queue",), "ConfigParser": ("configparser",), "__builtin__": ("builtins",),
    "StringIO": ("io",), "cStringIO": ("io",), "urllib2": ("urllib.request", "urllib.error", "urllib.parse"),
    "urlparse": ("urllib.parse",), "httplib": ("http.client",), "copy_reg": ("copyreg",),
    "commands": ("subprocess",), "thread": ("_thread",), "HTMLParser": ("html.parser",),
    "SocketServer": ("socketserver",), "BaseHTTPServer": ("http.server",), "SimpleHTTPServer": ("http.server",),
    "cookielib": ("http.cookiejar",), "Tkinter": ("tkinter",), "xmlrpclib": ("xmlrpc.client",),
    "dummy_thread": ("_thread",), "UserDict": ("collections",), "sets": ("builtins",),
    "xml.etree.cElementTree": ("xml.etree.ElementTree",)}


# Neither is a subclass of a class of importlib.abc, which is slow to import.
class _Loader:
    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        found = [importlib.import_module(name) for name in MODULES[spec.name]]
        made = ModuleType(spec.name, "Names of %s." % ", ".join(MODULES[spec.name]))
        for module in reversed(found):
            made.__dict__.update((name, value) for name, value in vars(module).items() if not name.startswith("__"))
        if spec.name == "cPickle":
            made.load = functools.partial(made.load, encoding="latin1")  # type: ignore[attr-defined]
            made.loads = functools.partial(made.loads, encoding="latin1")  # type: ignore[attr-defined]
        return made

    def exec_module(self, module: ModuleType) -> None:
        """Does nothing, because ``create_module`` returned a complete module."""


class Finder:
    """Finds modules of Python 2 for files of the user. Installed packages do not find
    them, because they use such imports to detect the version of Python."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if fullname not in MODULES or not imported_by_user():
            return None
        return importlib.machinery.ModuleSpec(fullname, _Loader())  # type: ignore[arg-type]


#: Names of ``urllib`` in Python 2 -> their module. Its modules were imported by Fluid, so scripts do not import them.
_URLLIB = {"quote": "parse", "quote_plus": "parse", "unquote": "parse", "unquote_plus": "parse", "urlencode": "parse",
           "urlopen": "request", "urlretrieve": "request"}


def _of_urllib(name: str) -> Any:
    if name in ("error", "parse", "request", "response"):
        return importlib.import_module("urllib." + name)
    if name in _URLLIB:
        return getattr(importlib.import_module("urllib." + _URLLIB[name]), name)
    raise AttributeError("module 'urllib' has no attribute %r" % name)


def install() -> None:
    """Adds the modules, and names of the standard library that only Python 2 had, in this process."""
    import os
    import urllib
    urllib.__getattr__ = _of_urllib  # type: ignore[method-assign]
    sys.meta_path.append(Finder())
    for module, names in (
            (itertools, {"izip": zip, "imap": map, "ifilter": filter, "izip_longest": itertools.zip_longest}),
            (string, {"letters": string.ascii_letters, "lowercase": string.ascii_lowercase,
                      "uppercase": string.ascii_uppercase, "maketrans": str.maketrans,
                      "join": lambda words, between=" ": between.join(words), "atoi": int, "atof": float,
                      "split": lambda text, *args: text.split(*args), "strip": lambda text, *args: text.strip(*args),
                      "replace": lambda text, *args: text.replace(*args), "lower": str.lower, "upper": str.upper}),
            (sys, {"maxint": sys.maxsize, "setdefaultencoding": lambda name: None}),
            (os, {"getcwdu": os.getcwd})):
        for name, value in names.items():
            if not hasattr(module, name):
                setattr(module, name, value)
