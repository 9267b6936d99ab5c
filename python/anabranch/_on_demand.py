"""Packages whose names are imported at first use, and errors about names that they do not have.

A package of many modules lists its names in a table and imports none of them. ``dir()``, ``from package import *`` and
``help()`` show them all. Type checkers read the imports under ``TYPE_CHECKING``, which the tests compare to the table.
"""
from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from importlib.machinery import PathFinder
from types import ModuleType
from typing import Any

from ._other_names import near_name


def no_attribute(package: str, name: str) -> AttributeError:
    """AttributeError: a module has no such name; the message lists similar names.

    >>> str(no_attribute("anabranch.progress", "Metre"))
    "module 'anabranch.progress' has no attribute 'Metre'; did you mean Meter?"
    """
    text = "module %r has no attribute %r" % (package, name)
    module = sys.modules.get(package)
    if module is None or name.startswith("_"):      # tools and the import system probe for names with _: add no hint
        return AttributeError(text)
    text += near_name(name, [one for one in vars(module).get("__all__") or dir(module) if not one.startswith("_")])
    # Without a name, Python does not add its suggestion.
    return AttributeError(text, name=None, obj=module) if sys.version_info >= (3, 10) else AttributeError(text)


def modules(package: str, *names: str) -> Callable[[str], ModuleType]:
    """callable: a ``__getattr__`` for a package that imports one of ``names`` at first use.

    >>> modules("anabranch.fluid", "communicator")("communicator").__name__
    'anabranch.fluid.communicator'
    """
    def get(name: str) -> ModuleType:
        if name in names:
            return importlib.import_module("%s.%s" % (package, name))
        raise no_attribute(package, name)
    return get


def give(package: str, table: Mapping[str, str]) -> None:
    """Adds names to a module that are imported at first use. The submodules of a package are added, too.

    Args:
        package (str): name of the module.
        table (dict): for each module that defines some of the names, its name as in a relative import, and the names,
            separated by spaces. "name=other" makes ``other`` of that module available as ``name``.

    >>> import anabranch.fluid as fluid
    >>> "Executor" in dir(fluid), fluid.Executor.__module__
    (True, 'anabranch.fluid.executor')
    """
    module = sys.modules[package]
    base = package if hasattr(module, "__path__") else package.rpartition(".")[0]
    origins = {name.partition("=")[0]: (where, name.rpartition("=")[2])
               for where, names in table.items() for name in names.split()}

    def get(name: str) -> Any:
        if name in origins:
            where, found = origins[name]
            value = getattr(importlib.import_module(where, base), found)
        elif _is_module(module, name):
            value = importlib.import_module("%s.%s" % (package, name))
        else:
            raise no_attribute(package, name)
        setattr(module, name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(module), *origins, *vars(module).get("__all__", ())})

    for name in origins:
        if isinstance(vars(module).get(name), ModuleType):  # a module that has the name of one of its functions
            delattr(module, name)
    # Not assigned in the module: type checkers would take any name for one of it.
    vars(module).update(__getattr__=get, __dir__=names)


def _is_module(package: ModuleType, name: str) -> bool:
    folders = vars(package).get("__path__")
    return bool(folders) and not name.startswith("__") \
        and PathFinder.find_spec("%s.%s" % (package.__name__, name), folders) is not None
