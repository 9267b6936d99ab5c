"""Packages whose modules are imported at first use, and errors about names that they do not have."""
from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from types import ModuleType

from ._terminal import near


def no_attribute(package: str, name: str) -> AttributeError:
    """AttributeError: a module has no such name; the message lists similar names.

    >>> str(no_attribute("anabranch.progress", "Metre"))
    "module 'anabranch.progress' has no attribute 'Metre'; did you mean Meter?"
    """
    text = "module %r has no attribute %r" % (package, name)
    module = sys.modules.get(package)
    if module is None or name.startswith("_"):      # names with _ are those that tools and the import system look for
        return AttributeError(text)
    text += near(name, [one for one in dir(module) if not one.startswith("_")])
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
