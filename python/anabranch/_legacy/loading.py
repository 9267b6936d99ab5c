"""Loads the files of the user as ``rewriting.py`` has them."""
from __future__ import annotations

import importlib.machinery
import os
import runpy
import sys
from types import CodeType, ModuleType
from typing import Any

from . import rewriting
from .user_files import is_text, is_users

_PlainLoader = importlib.machinery.SourceFileLoader
_code_of_python, _run_path_of_python = _PlainLoader.get_code, runpy.run_path


def _get_code(self: importlib.machinery.SourceFileLoader, fullname: str) -> CodeType | None:
    """Code of a file of the user for any namespace, such as one of ``runpy`` or of ``imp.load_source``."""
    path = self.get_filename(fullname)
    if not is_users(path):
        return _code_of_python(self, fullname)
    rewriting.compiled(self.get_data(path), path)  # a file that does not compile fails here, not when it runs
    text = "__import__(%r, fromlist=['execute']).execute(%r, globals())" % (__name__, path)
    return compile(text, __file__, "exec")


class _Loader(_PlainLoader):
    """Loads a file of the user. Python's own bytecode of the file is neither read nor written."""

    def exec_module(self, module: ModuleType) -> None:
        execute(self.get_filename(module.__name__), module.__dict__)


class Finder:  # a base class of importlib.abc would be slow to import
    """Finds what Python's own finder finds, and loads it by :class:`_Loader` where it is a file of the user."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if fullname in sys.builtin_module_names:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and type(spec.loader) is importlib.machinery.SourceFileLoader \
                and is_users(spec.origin or ""):
            spec.loader = _Loader(fullname, spec.origin or "")
        return spec


def execute(path: str, namespace: dict[str, Any]) -> None:
    """Runs a file in a namespace, to which the names that the rewritten file needs are added.

    Args:
        path (str): its path.
        namespace (dict): the namespace of its module.
    """
    with open(path, "rb") as file:
        code, given = rewriting.compiled(file.read(), path)
    namespace.update(given)
    exec(code, namespace)  # noqa: S102 - the user's own file, as an import runs it


def run_file(path: str, name: str = "__main__", given: dict[str, Any] | None = None) -> dict[str, Any]:
    """Runs a file as a module, which exists while it runs.

    Args:
        path (str): its path.
        name (str): name of the module. Default: that of the main module.
        given (dict, optional): names that the module has from the start.

    Returns:
        dict: the names of the module.
    """
    module = ModuleType(name)
    module.__dict__.update(given or {}, __file__=path, __builtins__=__builtins__, __cached__=None)
    before, sys.modules[name] = sys.modules.get(name), module
    try:
        execute(path, module.__dict__)
    finally:
        if before is None:
            del sys.modules[name]
        else:
            sys.modules[name] = before
    return module.__dict__


def _run_path(path_name: Any, init_globals: dict[str, Any] | None = None,
              run_name: str | None = None) -> dict[str, Any]:
    path = os.fsdecode(path_name)
    if not is_users(path) or not is_text(path):
        return _run_path_of_python(path_name, init_globals, run_name)
    before, sys.argv[0] = sys.argv[0], path
    try:
        return dict(run_file(path, run_name or "<run_path>", init_globals))
    finally:
        sys.argv[0] = before


def install() -> None:
    """Adapts the user's files that this process imports, or runs by their paths, after this call."""
    setattr(_PlainLoader, "get_code", _get_code)  # noqa: B010 - mypy refuses to assign a method
    runpy.run_path = _run_path
    at = next((i for i, finder in enumerate(sys.meta_path) if finder is importlib.machinery.PathFinder),
              len(sys.meta_path))
    sys.meta_path.insert(at, Finder())
