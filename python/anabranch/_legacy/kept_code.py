"""Keeps the code of rewritten files in ``__pycache__``, as Python keeps that of its modules.

An entry is valid for one text of the file and one version of the functions that rewrite it. All other entries are
ignored and replaced, like those that are damaged. Nothing is written where Python would write nothing.
"""
from __future__ import annotations

import functools
import importlib.util
import marshal
import os
import sys
import threading
from types import CodeType
from typing import NamedTuple

from .. import version

_FOLDER = os.path.dirname(os.path.abspath(__file__))
#: Files that decide how a file is rewritten.
_DECIDING = ("rewriting.py", "python2.py", "python2_names.py", "helpers.py", "kept_code.py")
_HASH = 8


class Rewritten(NamedTuple):
    """The code of a file of the user, and what else is known about the file."""

    code: CodeType
    #: Names that its module needs.
    names: tuple[str, ...]
    #: Whether it has the meaning of Python 2.
    python2: bool
    #: Whether it does not compile as Python 3.
    converted: bool
    #: Whether it tries to import a module, and uses another one without it.
    choosing: bool


@functools.lru_cache(maxsize=1)
def _version() -> bytes:
    made = [importlib.util.MAGIC_NUMBER.hex(), version.__version__]
    for name in _DECIDING:
        try:
            found = os.stat(os.path.join(_FOLDER, name))
            made.append("%s %d %d" % (name, found.st_mtime_ns, found.st_size))
        except OSError:  # the package is in an archive
            pass
    return "\n".join(made).encode()


def _place(path: str, in_python2: bool) -> str | None:
    """Path of the entry of a file; None if this Python keeps no bytecode."""
    level = sys.flags.optimize
    tag = "anabranch%s%s" % ("py2" if in_python2 else "", "o%d" % level if level else "")
    try:
        return importlib.util.cache_from_source(path, optimization=tag)
    except NotImplementedError:
        return None


def _moved(code: CodeType, path: str) -> CodeType:
    """The code with another path of its file, for tracebacks."""
    inner = tuple(_moved(it, path) if isinstance(it, CodeType) else it for it in code.co_consts)
    return code.replace(co_filename=path, co_consts=inner)


class Entry:
    """Where the code of a file is kept.

    Args:
        source (bytes): text of the file.
        path (str): its path.
        in_python2 (bool): whether the program is one of Python 2.
    """

    def __init__(self, source: bytes, path: str, in_python2: bool) -> None:
        self._path, self._place = path, _place(path, in_python2)
        self._key = importlib.util.source_hash(_version() + source)

    def read(self) -> Rewritten | None:
        """Rewritten or None: what is kept for this text."""
        if self._place is None:
            return None
        try:
            with open(self._place, "rb") as file:
                kept = file.read()
            body = kept[2 * _HASH:]
            if kept[:_HASH] != self._key or kept[_HASH:2 * _HASH] != importlib.util.source_hash(body):
                return None
            made = Rewritten(*marshal.loads(body))
        except (OSError, ValueError, EOFError, TypeError):
            return None
        return made if made.code.co_filename == self._path else made._replace(code=_moved(made.code, self._path))

    def write(self, made: Rewritten) -> None:
        """Keeps the code, if Python may write bytecode there; a concurrent reader finds all of it or nothing.

        Args:
            made (Rewritten): what the file became.
        """
        if sys.dont_write_bytecode or self._place is None:
            return
        body = marshal.dumps(tuple(made))
        temporary = "%s.%d.%d" % (self._place, os.getpid(), threading.get_ident())
        try:
            os.makedirs(os.path.dirname(self._place), exist_ok=True)
            mode = os.stat(self._path).st_mode & 0o666 | 0o200  # what others may not read stays unreadable to them
            with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
                file.write(self._key + importlib.util.source_hash(body) + body)
            os.replace(temporary, self._place)
        except OSError:  # a read-only folder, a full disk: the file is rewritten again next time
            try:
                os.unlink(temporary)
            except OSError:
                pass
