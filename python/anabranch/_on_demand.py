"""Packages whose modules are imported when somebody reaches for them."""
from __future__ import annotations

import importlib
from collections.abc import Callable
from types import ModuleType


def modules(package: str, *names: str) -> Callable[[str], ModuleType]:
    """What a package's ``__getattr__`` is: imports one of these modules of it when it is asked for.

    >>> modules("anabranch.fluid", "communicator")("communicator").__name__
    'anabranch.fluid.communicator'
    """
    def get(name: str) -> ModuleType:
        if name in names:
            return importlib.import_module("%s.%s" % (package, name))
        raise AttributeError("module %r has no attribute %r" % (package, name))
    return get
