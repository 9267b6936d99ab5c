"""Names that Python 3.7 had in its standard library and newer versions lack."""
from __future__ import annotations

import base64
import builtins
import collections
import collections.abc
import fractions
import functools
import html
import html.parser
import importlib
import inspect
import json
import math
import platform
import random
import sys
import time
from typing import Any


@functools.wraps(inspect.getfullargspec)
def _getfullargspec(func: Any) -> Any:
    """Describes the layers of this package by their own arguments, although they are wrapped."""
    if getattr(func, "__module__", "").startswith("anabranch."):
        func = inspect.unwrap(func)
    return _original_getfullargspec(func)


_original_getfullargspec = inspect.getfullargspec


def _getargspec(function: Any) -> Any:
    found = _getfullargspec(function)
    return _ArgSpec(found.args, found.varargs, found.varkw, found.defaults)


_ArgSpec = collections.namedtuple("_ArgSpec", "args varargs keywords defaults")

#: (module, name, what it was)
_NAMES: list[tuple[Any, str, Any]] = [
    *((collections, name, getattr(collections.abc, name)) for name in collections.abc.__all__),
    (time, "clock", time.perf_counter), (fractions, "gcd", math.gcd), (inspect, "getargspec", _getargspec),
    (inspect, "ArgSpec", _ArgSpec), (base64, "encodestring", base64.encodebytes),
    (base64, "decodestring", base64.decodebytes),
    (html.parser.HTMLParser, "unescape", lambda self, text: html.unescape(text)),
    (platform, "linux_distribution", lambda *args, **kwargs: ("", "", "")),
    (platform, "dist", lambda *args, **kwargs: ("", "", "")),
]


def _without(function: Any, *gone: str) -> Any:
    """A function that is given arguments it no longer has."""
    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        for name in gone:
            kwargs.pop(name, None)
        return function(*args, **kwargs)
    return wrapped


def _sample(population: Any, *args: Any, **kwargs: Any) -> Any:
    if isinstance(population, collections.abc.Set):
        population = tuple(population)
    return _original_sample(population, *args, **kwargs)


def _shuffle(x: Any, random: Any = None) -> None:
    if random is None:
        return _original_shuffle(x)
    for i in reversed(range(1, len(x))):
        j = int(random() * (i + 1))
        x[i], x[j] = x[j], x[i]


def _randint(a: Any, b: Any) -> Any:
    return _original_randint(*(int(end) if isinstance(end, float) and end.is_integer() else end for end in (a, b)))


_original_sample, _original_shuffle, _original_randint = random.sample, random.shuffle, random.randint


@functools.wraps(open)
def _open(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
    return _original_open(file, (mode.replace("U", "") or "r") if "U" in mode else mode, *args, **kwargs)


_original_open = open


def install() -> None:
    """Adds what this version of Python lacks, in this process."""
    for owner, name, value in _NAMES:
        if not hasattr(owner, name):
            setattr(owner, name, value)
    inspect.getfullargspec = _getfullargspec
    if sys.version_info >= (3, 9):
        sys.modules.setdefault("xml.etree.cElementTree", importlib.import_module("xml.etree.ElementTree"))
        json.loads, json.load = _without(json.loads, "encoding"), _without(json.load, "encoding")
    if sys.version_info >= (3, 11):
        random.sample, random.shuffle = _sample, _shuffle
        builtins.open = _open
    if sys.version_info >= (3, 12):
        random.randint = _randint
    for module, replaced in (("imp", _Imp), ):
        if sys.version_info >= (3, 12):
            sys.modules.setdefault(module, replaced)  # type: ignore[arg-type]


class _Imp:
    """The functions of ``imp`` that scripts use."""

    reload = staticmethod(importlib.reload)

    @staticmethod
    def load_source(name: str, path: str) -> Any:
        import importlib.util
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module
