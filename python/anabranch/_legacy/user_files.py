"""Files of the user: neither the standard library, nor an installed package, nor this package."""
from __future__ import annotations

import functools
import os
import sys
import sysconfig

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_INSTALLED = tuple(sorted({os.path.realpath(sysconfig.get_path(name)) + os.sep
                           for name in ("stdlib", "platstdlib", "purelib", "platlib")}))

#: Files that try to import a module, and use another one without it: they need no module of Python 2.
choosing: set[str] = set()


@functools.lru_cache(maxsize=4096)
def is_users(path: str) -> bool:
    """bool: whether a file is the user's.

    Args:
        path (str): path of a Python file.

    >>> is_users(os.__file__), is_users(__file__)
    (False, False)
    """
    real = os.path.realpath(path)
    parts = real.split(os.sep)
    return (path.endswith(".py") and not path.startswith("<") and not real.startswith((_PACKAGE, *_INSTALLED))
            and "site-packages" not in parts and "dist-packages" not in parts)


def is_text(script: str) -> bool:
    """bool: whether a script is a file of Python, and not a folder, an archive or bytecode.

    >>> is_text(__file__), is_text(os.path.dirname(__file__))
    (True, False)
    """
    if not os.path.isfile(script) or script.endswith(".pyc"):
        return False
    with open(script, "rb") as file:
        if b"PK\5\6" not in file.read():  # what all archives have
            return True
    import zipfile  # slow to import
    return not zipfile.is_zipfile(script)


def imported_by_user() -> bool:
    """bool: whether the innermost frame outside the import system and this file is a file of the user, and one
    that needs modules of Python 2."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith("<frozen importlib") and not name.startswith(_PACKAGE):
            return is_users(name) and name not in choosing
        frame = frame.f_back  # type: ignore[assignment]
    return False
