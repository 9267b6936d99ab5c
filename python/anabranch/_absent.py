"""Names of Fluid that this package does not have: they can be imported; their first use raises an error with advice."""
from __future__ import annotations

import importlib.abc
import importlib.machinery
import json
import os
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NoReturn

from ._on_demand import no_attribute

#: (prefix of a name, what to use instead); the first prefix that fits counts.
INSTEAD = (
    ("fluid.dygraph", "this engine runs static programs: build the model with fluid.layers in a fluid.program_guard, "
                      "and run it with fluid.Executor"),
    ("fluid.contrib.slim", "train with the ops fake_quantize_* of fluid.layers' programs, or compress the saved model "
                           "elsewhere"),
    ("incubate.hapi", "write the loop with fluid.Executor; anabranch.progress shows how far it is"),
    ("", "docs/absent.md lists what is not here"),
)

#: Names that the program has used, in that order.
reached: dict[str, None] = {}


def refuse(name: str) -> NoReturn:
    """Raises NotImplementedError that says what to use instead of a name such as ``fluid.dygraph.Layer``."""
    from .fluid.errors import Unsupported
    raise Unsupported("%s is not offered: %s" % (name, next(text for start, text in INSTEAD if name.startswith(start))))


class Absent:
    """Stands for a name that is not here: any use raises, also as a base class or after ``with``.

    Args:
        name (str): name that it stands for, without the package.
        refused (callable, optional): called with the name of what is used; raises.

    >>> Absent("fluid.dygraph.Layer")
    <fluid.dygraph.Layer, which is not offered>
    """

    def __init__(self, name: str, refused: Callable[[str], NoReturn] = refuse) -> None:
        self.__dict__.update(_name=name, _refused=refused)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)  # what tools ask of any object
        self._refused("%s.%s" % (self._name, name))

    def __setattr__(self, name: str, value: Any) -> None:
        self._refused("%s.%s" % (self._name, name))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self._refused(self._name)

    def __mro_entries__(self, bases: tuple[Any, ...]) -> Any:
        self._refused(self._name)

    def __enter__(self) -> Any:
        self._refused(self._name)

    def __exit__(self, *exc: object) -> None:
        """Is never reached: ``with`` needs both."""

    def __instancecheck__(self, instance: Any) -> bool:
        return False  # nothing can be one

    def __repr__(self) -> str:
        return "<%s, which is not offered>" % self._name


class Table:
    """Modules and names of Fluid that are not here. Written by tools/generate_modules.py, read when it is needed."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._read: dict[str, dict[str, list[str]]] = {}

    def part(self, name: str) -> dict[str, list[str]]:
        """dict: "modules" or "names" (of modules that are here): a module, as this package calls it -> names."""
        if not self._read:
            with open(self._path, encoding="utf-8") as file:
                self._read = json.load(file)
        return self._read[name]


table = Table(os.path.join(os.path.dirname(os.path.abspath(__file__)), "absent_names.json"))


def give(module: str, names: Sequence[str]) -> Callable[[str], Any]:
    """callable: a ``__getattr__`` for a module of Fluid from which ``names`` are missing here."""
    known, shown = frozenset(names), module.partition(".")[2]

    def get(name: str) -> Any:
        if name not in known:
            raise no_attribute(module, name)
        full = "%s.%s" % (shown, name)
        reached.setdefault(full)
        return Absent(full)
    return get


class _Loader(importlib.abc.Loader):
    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = ModuleType(spec.name, "Of Fluid, and not offered: a use of a name raises NotImplementedError.")
        names = table.part("modules")[spec.name]
        module.__getattr__ = give(spec.name, names)  # type: ignore[method-assign]
        module.__all__ = list(names)  # type: ignore[attr-defined]
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing: all has been made."""


class Finder(importlib.abc.MetaPathFinder):
    """Finds the modules that are not here.

    Attributes:
        beginnings (tuple of str): prefixes of the modules that are found. All modules under ``anabranch run``.
    """

    beginnings: tuple[str, ...] = ("anabranch.fluid.dygraph", "anabranch.fluid.contrib.slim")

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if not fullname.startswith(self.beginnings) or fullname not in table.part("modules"):
            return None
        inside = any(name.startswith(fullname + ".") for name in table.part("modules"))
        return importlib.machinery.ModuleSpec(fullname, _Loader(), is_package=inside)


finder = Finder()
