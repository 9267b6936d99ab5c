"""Folders of this package, for builds. The names of ``paddle.sysconfig``."""
from __future__ import annotations

import os

from .fluid.errors import Unsupported

__all__ = ["get_include", "get_lib"]


def get_include() -> str:
    """Raises NotImplementedError: the package has no headers, as it cannot load operators of other libraries."""
    raise Unsupported("sysconfig.get_include is not supported: the package has no headers. Add operators in C++, see "
                      "ARCHITECTURE.md")


def get_lib() -> str:
    """The folder of the compiled engine.

    Returns:
        str: the folder.

    Examples:
        >>> import os
        >>> any(name.startswith("_core") for name in os.listdir(get_lib()))
        True
    """
    return os.path.dirname(os.path.abspath(__file__))
