"""Names that modules of Fluid 1.8.5 imported from others, and that scripts import from there."""
from __future__ import annotations

import functools
import importlib
import json
import os
from types import ModuleType
from typing import Any


@functools.lru_cache(maxsize=1)
def table() -> dict[str, dict[str, str]]:
    """dict: module, as this package calls it -> name -> "module:name", or "module:" for the module itself.

    >>> table()["anabranch.fluid.layers.nn"]["LayerHelper"]
    'paddle.fluid.layer_helper:LayerHelper'
    """
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "imported_names.json")
    with open(path, encoding="utf-8") as file:
        found: dict[str, str] = json.load(file)
    made: dict[str, dict[str, str]] = {}
    for key, modules in found.items():
        name, _, origin = key.partition("=")
        for module in modules.split(" "):
            made.setdefault(("anabranch." + module).rstrip("."), {})[name] = origin
    return made


def add(module: ModuleType) -> None:
    """Lets the names be imported from a module, in addition to its own.

    Args:
        module (module): module of this package.
    """
    names = table().get(module.__name__)
    if not names or getattr(module, "_gives_imported", False):
        return
    own = frozenset(dir(module))  # also those that it imports at first use
    names = {name: origin for name, origin in names.items() if name not in own}
    others = module.__dict__.get("__getattr__")

    def get(name: str) -> Any:
        if name in names:
            origin, _, found = names[name].partition(":")
            there = importlib.import_module(origin)
            return getattr(there, found) if found else there
        if others is not None:
            return others(name)
        raise AttributeError("module %r has no attribute %r" % (module.__name__, name))
    module.__getattr__ = get  # type: ignore[method-assign]
    module._gives_imported = True  # type: ignore[attr-defined]
