"""Names that Python 3.7 had in its standard library and newer versions lack."""
from __future__ import annotations

import builtins
import collections
import collections.abc
import functools
import importlib
import inspect
import json
import math
import sys
import time
from typing import Any

from .on_import import when_imported


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

def _unescape(self: Any, text: str) -> str:
    import html
    return html.unescape(text)


def _base64(module: Any) -> dict[str, Any]:
    return {"encodestring": module.encodebytes, "decodestring": module.decodebytes}


def _platform(_: Any) -> dict[str, Any]:
    return dict.fromkeys(("linux_distribution", "dist"), lambda *args, **kwargs: ("", "", ""))


#: Module -> function of the module that gives the names which it lacks.
_NAMES: dict[str, Any] = {
    "collections": lambda _: {name: getattr(collections.abc, name) for name in collections.abc.__all__},
    "time": lambda _: {"clock": time.perf_counter}, "fractions": lambda _: {"gcd": math.gcd},
    "inspect": lambda _: {"getargspec": _getargspec, "ArgSpec": _ArgSpec}, "base64": _base64, "platform": _platform}


def _add(names: Any, module: Any) -> None:
    for name, value in names(module).items():
        if not hasattr(module, name):
            setattr(module, name, value)


def _add_unescape(module: Any) -> None:
    _add(lambda _: {"unescape": _unescape}, module.HTMLParser)


def _without(function: Any, *gone: str) -> Any:
    """A function that is given arguments it no longer has."""
    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        for name in gone:
            kwargs.pop(name, None)
        return function(*args, **kwargs)
    return wrapped


def _random(random: Any) -> None:
    """Arguments that functions of ``random`` accepted."""
    original_sample, original_shuffle, original_randint = random.sample, random.shuffle, random.randint

    def sample(population: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(population, collections.abc.Set):
            population = tuple(population)
        return original_sample(population, *args, **kwargs)

    def shuffle(x: Any, random: Any = None) -> None:
        if random is None:
            return original_shuffle(x)
        for i in reversed(range(1, len(x))):
            j = int(random() * (i + 1))
            x[i], x[j] = x[j], x[i]

    def randint(a: Any, b: Any) -> Any:
        return original_randint(*(int(end) if isinstance(end, float) and end.is_integer() else end for end in (a, b)))
    if sys.version_info >= (3, 11):
        random.sample, random.shuffle = sample, shuffle
    if sys.version_info >= (3, 12):
        random.randint = randint


@functools.wraps(open)
def _open(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
    return _original_open(file, (mode.replace("U", "") or "r") if "U" in mode else mode, *args, **kwargs)


_original_open = open


def install() -> None:
    """Adds what this version of Python lacks, in this process."""
    for owner, names in _NAMES.items():
        when_imported(owner, functools.partial(_add, names))
    when_imported("html.parser", _add_unescape)
    when_imported("random", _random)
    inspect.getfullargspec = _getfullargspec
    if sys.version_info >= (3, 9):
        json.loads, json.load = _without(json.loads, "encoding"), _without(json.load, "encoding")
    if sys.version_info >= (3, 11):
        builtins.open = _open
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
