"""Changes modules at the time when they are imported. None is imported only because it has to be changed."""
from __future__ import annotations

import importlib.machinery
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

_waiting: dict[str, list[Callable[[Any], None]]] = {}


def when_imported(name: str, change: Callable[[Any], None]) -> None:
    """Changes a module: now if it has been imported, otherwise when it is imported in this process.

    Args:
        name (str): name of the module.
        change (callable): function of the module.
    """
    if name in sys.modules:
        change(sys.modules[name])
    else:
        _waiting.setdefault(name, []).append(change)


# Neither is a subclass of a class of importlib.abc, which is slow to import.
class _Loader:
    """Loads a module by its own loader, then changes it."""

    def __init__(self, own: Any) -> None:
        self._own = own

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self._own.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._own
        if module.__spec__ is not None:
            module.__spec__.loader = self._own
        self._own.exec_module(module)
        for change in _waiting.pop(module.__name__, ()):
            change(module)


class Finder:
    """Finds the modules that are to be changed."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """The specification of a module, with a loader that changes it."""
        if fullname not in _waiting:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)  # type: ignore[assignment]
        return spec


def install() -> None:
    """Adds the finder, in this process."""
    sys.meta_path.insert(0, Finder())
