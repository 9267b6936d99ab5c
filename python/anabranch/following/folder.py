"""The versions in a folder of checkpoints, and the pin that chooses one of them."""
from __future__ import annotations

import json
import os
from typing import Any

from .. import _core
from ..checkpoints import folders, links
from ..checkpoints.links import VALUES
from ..fluid.errors import InvalidValue
from ..fluid.io.tables import CHANGES

#: The file with the number of the version that followers use instead of the newest one.
PIN = "pinned.json"


def table_path(root: str, number: int, table: str) -> str:
    """str: the file of all rows of a table in a version."""
    return os.path.join(folders.path(root, number), "%s.%s" % (VALUES, table))


def pinned(root: str) -> int | None:
    """int: the version that is pinned, or None."""
    try:
        with open(os.path.join(root, PIN), encoding="utf-8") as file:
            number = json.load(file)["version"]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise InvalidValue("%s: not readable: %s" % (os.path.join(root, PIN), e)) from None
    return int(number)


def pin(root: str, number: int | None) -> None:
    """Pins a version, or with None the newest one, for all followers of a folder.

    Raises:
        ValueError: the folder has no such version, or it is not whole.
    """
    name = os.path.join(root, PIN)
    if number is None:
        if os.path.exists(name):
            os.remove(name)
        return
    if number not in folders.numbers(root):
        raise InvalidValue("%s has no version %d: it has %s" % (root, number, ", ".join(
            map(str, folders.numbers(root))) or "none"))
    check(root, number)
    with _core.FileSet() as files:
        files.add(name, json.dumps({"version": number}).encode())


def check(root: str, number: int) -> dict[str, Any]:
    """dict: the status of a version, after all files on which it builds have been verified.

    Raises:
        ValueError: a file is missing or damaged.
    """
    folder = folders.path(root, number)
    status = folders.read(folder)
    if "chain" in status:
        links.chains(folder, status)
    return status


def signature(root: str, after: int, number: int) -> tuple[Any, ...]:
    """tuple: changes if a file in the versions after ``after`` up to ``number`` has changed."""
    found = []
    for n in folders.numbers(root):
        if not min(after, number - 1) < n <= number:
            continue
        try:
            with os.scandir(folders.path(root, n)) as entries:
                for entry in entries:
                    info = entry.stat()
                    found.append((n, entry.name, info.st_size, info.st_mtime_ns))
        except OSError:
            found.append((n, "", 0, 0))
    return tuple(sorted(found))


def changes_between(root: str, table: str, after: int, number: int) -> list[str] | None:
    """list of str: the files of the changes from version ``after`` to version ``number``; None if they do not lead
    there.

    Raises:
        EnforceNotMet: a file cannot be read, or follows a version that is not before its own.
    """
    files: list[str] = []
    while number > after:
        path = table_path(root, number, table) + CHANGES
        if not os.path.exists(path):
            return None
        files.insert(0, path)
        before = _core.link_before(path)
        if before >= number:
            raise InvalidValue("%s follows link %d of its chain, which must be below %d, the number of its version"
                               % (path, before, number))
        number = before
    return files if number == after else None
