"""Finds the original archives of data sets in the folders of the user. Nothing is downloaded."""
from __future__ import annotations

import contextlib
import os
import tarfile
import zipfile
from collections.abc import Iterator
from typing import IO, Any

from ..fluid.errors import InvalidValue, NotFound

__all__ = ["FOLDER_VARIABLE", "folders", "find", "opened", "member", "names", "files", "lines"]

#: Environment variable that names the folder.
FOLDER_VARIABLE = "ANABRANCH_DATA"
#: Folder in which Fluid keeps its downloads.
_FLUID_FOLDER = os.path.join("~", ".cache", "paddle", "dataset")


def folders() -> list[str]:
    """list of str: the folders to search: first the folder in ANABRANCH_DATA, then the folder in which Fluid keeps
    its downloads."""
    named = os.environ.get(FOLDER_VARIABLE)
    return ([named] if named else []) + [os.path.expanduser(_FLUID_FOLDER)]


def find(module: str, name: str, *others: str) -> str:
    """Returns the path of a file of a data set. Searches each of :func:`folders`, first in its subfolder ``module``.

    Args:
        module (str): "imdb".
        name (str): name of the file at its publisher. A prefix ``module%2F``, which Fluid adds, is accepted.
        others (str): further folders that may have it.

    Returns:
        str: the path.

    Raises:
        LookupError: the file does not exist; the message names the folders that were searched.
    """
    starts = ("", module + "%2F", module + "st%2F")
    tried = [os.path.join(root, folder, start + name)
             for root in folders() for folder in (module, *others, "") for start in starts]
    for path in tried:
        if os.path.isfile(path):
            return path
    raise NotFound("the data set %s needs the file %s, which is never fetched from the network: put it into %s, or "
                   "let %s name the folder that has it" % (module, name, os.path.dirname(tried[0]), FOLDER_VARIABLE))


@contextlib.contextmanager
def opened(path: str) -> Iterator[Any]:
    """Opens a file as a ``TarFile`` or a ``ZipFile``.

    Raises:
        ValueError: the file is neither of them, or is damaged.
    """
    try:
        archive = zipfile.ZipFile(path) if zipfile.is_zipfile(path) else tarfile.open(path)
    except (OSError, EOFError, tarfile.TarError, zipfile.BadZipFile) as e:
        raise InvalidValue("%s: no archive, or a damaged one: %s" % (path, e)) from None
    with archive:
        yield archive


def member(archive: Any, name: str) -> IO[bytes]:
    """A file inside an archive; names in tar files may begin with ``./``.

    Raises:
        LookupError: the file does not exist.
    """
    if isinstance(archive, zipfile.ZipFile):
        if name in archive.namelist():
            return archive.open(name)
    else:
        for info in archive:
            if os.path.normpath(info.name) == os.path.normpath(name) and info.isfile():
                found = archive.extractfile(info)
                if found is not None:
                    return found
    raise NotFound("%s has no file %s" % (getattr(archive, "filename", None) or archive.name, name))


def names(archive: Any) -> list[str]:
    """list of str: the names of the members of an archive."""
    return list(archive.namelist() if isinstance(archive, zipfile.ZipFile) else archive.getnames())


def files(archive: Any) -> Iterator[tuple[str, IO[bytes]]]:
    """Yields (name, file) of all files in a tar file, in the order of the archive. In any other order, the archive
    would be unpacked several times."""
    for info in archive:
        file = archive.extractfile(info) if info.isfile() else None
        if file is not None:
            yield os.path.normpath(info.name), file


def lines(file: IO[bytes], encoding: str) -> Iterator[str]:
    """The lines of a file without their ends, as text."""
    for line in file:
        yield line.decode(encoding).rstrip("\r\n")
