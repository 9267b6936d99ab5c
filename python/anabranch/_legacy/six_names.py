"""A module ``six`` for scripts, where none is installed: PaddlePaddle depended on it, so scripts import it."""
from __future__ import annotations

import functools
import importlib
import importlib.machinery
import io
import operator
import sys
from types import ModuleType
from typing import Any

#: Modules of ``six.moves``: name -> module of Python 3.
_MOVED = {"cPickle": "pickle", "queue": "queue", "builtins": "builtins", "configparser": "configparser",
          "copyreg": "copyreg", "http_client": "http.client", "http_cookiejar": "http.cookiejar",
          "http_cookies": "http.cookies", "html_parser": "html.parser", "html_entities": "html.entities",
          "socketserver": "socketserver", "tkinter": "tkinter", "urllib": "urllib", "urllib_parse": "urllib.parse",
          "urllib_error": "urllib.error", "urllib_request": "urllib.request", "urllib.parse": "urllib.parse",
          "urllib.error": "urllib.error", "urllib.request": "urllib.request", "BaseHTTPServer": "http.server",
          "SimpleHTTPServer": "http.server", "xmlrpc_client": "xmlrpc.client", "_thread": "_thread",
          "reprlib": "reprlib", "collections_abc": "collections.abc"}
#: Names of ``six.moves``: (module, name) of Python 3.
_NAMES = {"range": ("builtins", "range"), "xrange": ("builtins", "range"), "zip": ("builtins", "zip"),
          "map": ("builtins", "map"), "filter": ("builtins", "filter"), "input": ("builtins", "input"),
          "intern": ("sys", "intern"), "reduce": ("functools", "reduce"), "StringIO": ("io", "StringIO"),
          "cStringIO": ("io", "StringIO"), "zip_longest": ("itertools", "zip_longest"),
          "filterfalse": ("itertools", "filterfalse"), "reload_module": ("importlib", "reload"),
          "getcwd": ("os", "getcwd"), "getcwdb": ("os", "getcwdb"), "shlex_quote": ("shlex", "quote"),
          "UserDict": ("collections", "UserDict"), "UserList": ("collections", "UserList"),
          "getoutput": ("subprocess", "getoutput"), "urlretrieve": ("urllib.request", "urlretrieve")}


def _moved(name: str) -> Any:
    if name in _NAMES:
        module, found = _NAMES[name]
        return getattr(importlib.import_module(module), found)
    if name in _MOVED:
        return importlib.import_module(_MOVED[name])
    raise AttributeError("module 'six.moves' has no attribute %r" % name)


def _reraise(kind: Any, value: Any = None, trace: Any = None) -> None:
    value = kind() if value is None else value
    raise value.with_traceback(trace)


def _raise_from(value: Any, cause: Any) -> None:
    raise value from cause


def _with_metaclass(meta: Any, *bases: Any) -> Any:
    class Temporary(meta):
        def __new__(cls, name: str, _: Any, body: dict[str, Any]) -> Any:
            return meta(name, bases, body)
    return type.__new__(Temporary, "temporary_class", (), {})


def _add_metaclass(meta: Any) -> Any:
    def decorate(kind: Any) -> Any:
        body = {name: value for name, value in vars(kind).items() if name not in ("__dict__", "__weakref__")}
        return meta(kind.__name__, kind.__bases__, body)
    return decorate


def _ensure_str(text: Any, encoding: str = "utf-8", errors: str = "strict") -> str:
    return text.decode(encoding, errors) if isinstance(text, bytes) else text


def _ensure_binary(text: Any, encoding: str = "utf-8", errors: str = "strict") -> bytes:
    return text.encode(encoding, errors) if isinstance(text, str) else text


def _views(name: str) -> Any:
    return lambda mapping, **words: iter(getattr(mapping, name)(**words))


_SIX: dict[str, Any] = {
    "PY2": False, "PY3": True, "PY34": True, "string_types": (str,), "integer_types": (int,), "class_types": (type,),
    "text_type": str, "binary_type": bytes, "MAXSIZE": sys.maxsize, "StringIO": io.StringIO, "BytesIO": io.BytesIO,
    **{"iter" + name: _views(name) for name in ("keys", "values", "items")},
    **{"view" + name: operator.methodcaller(name) for name in ("keys", "values", "items")},
    "b": lambda text: text.encode("latin-1"), "u": lambda text: text, "unichr": chr, "next": next,
    "advance_iterator": next, "callable": callable, "int2byte": lambda value: bytes((value,)),
    "byte2int": operator.itemgetter(0), "indexbytes": operator.getitem, "iterbytes": iter, "print_": print,
    "exec_": exec, "reraise": _reraise, "raise_from": _raise_from, "wraps": functools.wraps,
    "with_metaclass": _with_metaclass, "add_metaclass": _add_metaclass, "ensure_str": _ensure_str,
    "ensure_text": _ensure_str, "ensure_binary": _ensure_binary, "python_2_unicode_compatible": lambda kind: kind,
    "get_function_code": operator.attrgetter("__code__"), "get_function_globals": operator.attrgetter("__globals__"),
    "get_method_function": operator.attrgetter("__func__"), "get_method_self": operator.attrgetter("__self__"),
    "create_bound_method": lambda function, it: function.__get__(it), "Iterator": object,
    "get_unbound_function": lambda function: function, "assertCountEqual": lambda it, *args: it.assertCountEqual(*args)}


# Neither is a subclass of a class of importlib.abc, which is slow to import.
class _Loader:
    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        name = spec.name.partition("six.moves.")[2]
        if name:
            return _moved(name)
        made = ModuleType(spec.name, "Names of Python 2 and 3.")
        if spec.name == "six.moves":
            made.__getattr__ = _moved  # type: ignore[method-assign]
        else:
            made.__dict__.update(_SIX)
        return made

    def exec_module(self, module: ModuleType) -> None:
        if module.__name__ == "six":
            importlib.import_module("six.moves")  # becomes an attribute of this module


class _Whole(_Loader):
    """Loads a module of Python under its name in ``six.moves``; its own specification stays."""

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = super().create_module(spec)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec


class Finder:
    """Finds ``six``. It is the last finder, so that an installed one is used."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if fullname in ("six", "six.moves"):
            return importlib.machinery.ModuleSpec(fullname, _Loader(), is_package=True)  # type: ignore[arg-type]
        if fullname.startswith("six.moves.") and fullname[len("six.moves."):] in _MOVED:
            loader: Any = _Whole()
            return importlib.machinery.ModuleSpec(fullname, loader, is_package=fullname == "six.moves.urllib")
        return None


def install() -> None:
    """Adds the finder, in this process."""
    sys.meta_path.append(Finder())
