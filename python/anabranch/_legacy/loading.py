"""Loads the files of the user as ``rewriting.py`` has them."""
from __future__ import annotations

import importlib.machinery
import sys
from types import CodeType, ModuleType
from typing import Any

from . import rewriting
from .user_files import is_users


class _Loader(importlib.machinery.SourceFileLoader):
    """Loads a file of the user. Python's own bytecode of the file is neither read nor written."""

    def get_code(self, fullname: str) -> CodeType:
        """Code for a namespace that this loader has not made, such as the one that ``runpy`` makes for ``-m``."""
        path = self.get_filename(fullname)
        rewriting.compiled(self.get_data(path), path)  # a file that does not compile fails here, not when it runs
        text = "__import__(%r, fromlist=['execute']).execute(%r, globals())" % (__name__, path)
        return compile(text, __file__, "exec")

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


def run_file(path: str) -> None:
    """Runs a file as the main module.

    Args:
        path (str): its path.
    """
    main = ModuleType("__main__")
    main.__dict__.update(__file__=path, __builtins__=__builtins__, __cached__=None)
    before, sys.modules["__main__"] = sys.modules["__main__"], main
    try:
        execute(path, main.__dict__)
    finally:
        sys.modules["__main__"] = before


def install() -> None:
    """Loads the user's modules that this process imports after the finder is installed."""
    at = next((i for i, finder in enumerate(sys.meta_path) if finder is importlib.machinery.PathFinder),
              len(sys.meta_path))
    sys.meta_path.insert(at, Finder())
