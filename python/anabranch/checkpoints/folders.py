"""Numbered folders that are complete or absent. A folder is written under a temporary name, flushed to disk, and then
renamed."""
from __future__ import annotations

import json
import os
import shutil
import zlib
from collections.abc import Callable
from typing import Any

from ..fluid.errors import InvalidValue
from . import links

FORMAT = 1
_PREFIX = "checkpoint-"
_WRITING = ".writing-"
STATUS = "status.json"


def _number(name: str) -> int:
    """Returns the number of a checkpoint's folder, or -1 for other names."""
    digits = name[len(_PREFIX):]
    return int(digits) if name.startswith(_PREFIX) and digits.isdigit() else -1


def numbers(root: str) -> list[int]:
    """list of int: numbers of the checkpoints of a folder, the oldest first. Empty if the folder does not exist."""
    if not os.path.isdir(root):
        return []
    return sorted(number for number in map(_number, os.listdir(root)) if number >= 0)


def path(root: str, number: int) -> str:
    """str: the folder of one checkpoint."""
    return os.path.join(root, "%s%06d" % (_PREFIX, number))


def _writing(root, number):
    return os.path.join(root, "%s%06d" % (_WRITING, number))


def _flush(name):
    handle = os.open(name, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _checksum(name):
    total = 0
    with open(name, "rb") as file:
        while chunk := file.read(1 << 20):
            total = zlib.crc32(chunk, total)
    return [os.path.getsize(name), total]


def begin(root: str, number: int | None = None) -> tuple[int, str]:
    """Makes the folder of the next checkpoint, or of one with a number that is not taken, under a temporary name.

    Returns:
        tuple: number of the checkpoint, and the folder.
    """
    os.makedirs(root, exist_ok=True)
    for name in os.listdir(root):           # of runs that were killed while they wrote
        if name.startswith(_WRITING):
            drop(os.path.join(root, name))
    if number is None:
        number = max([*numbers(root), 0]) + 1
    writing = _writing(root, number)
    os.mkdir(writing)
    return number, writing


def end(root: str, number: int, writing: str, status: dict[str, Any], known: dict[str, Any] | None = None) -> str:
    """Completes a checkpoint: adds ``status``, flushes it, and gives it its name. ``known``: name -> checksum of files
    that have been flushed and check themselves.

    Returns:
        str: folder of the checkpoint.
    """
    sums = {name: (known or {}).get(name) or _checksum(os.path.join(writing, name))
            for name in sorted(os.listdir(writing))}
    status = dict(status, format=FORMAT, files=sums)
    with open(os.path.join(writing, STATUS), "w", encoding="utf-8") as file:
        file.write('%s, "check": %d}' % (_text(status)[:-1], _check(status)))
    for name in [*(name for name in sums if name not in (known or {})), STATUS, ""]:
        _flush(os.path.join(writing, name))
    target = path(root, number)
    os.rename(writing, target)
    _flush(root)
    return target


def drop(writing: str) -> None:
    """Removes the folder of a checkpoint that is not completed."""
    shutil.rmtree(writing, ignore_errors=True)


def write(root: str, status: dict[str, Any], fill: Callable[[str], None]) -> str:
    """Writes the next checkpoint: ``fill(folder)`` writes its files, and ``status`` is added to them.

    Returns:
        str: folder of the checkpoint.
    """
    number, writing = begin(root)
    try:
        fill(writing)
        return end(root, number, writing, status)
    except BaseException:
        drop(writing)
        raise


def keep(root: str, count: int) -> None:
    """Deletes the oldest checkpoints and keeps ``count``, and those on which they build."""
    found = numbers(root)
    needed = set(found[-count:])
    for number in reversed(found):
        if number in needed:
            needed.update(n for n in [before(path(root, number))] if n is not None)
    for number in reversed(found):
        if number in needed:
            continue
        doomed = _writing(root, number)
        os.rename(path(root, number), doomed)   # half of a checkpoint never stands under its name
        drop(doomed)


def before(folder: str) -> int | None:
    """int: number of the checkpoint on which this one builds. None: it has all rows, or cannot be read."""
    try:
        with open(os.path.join(folder, STATUS), encoding="utf-8") as file:
            chain = json.load(file).get("chain")
        return None if chain is None or chain["whole"] else chain["previous"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _text(status):
    return json.dumps(status, sort_keys=True)


def _check(status):
    """Checksum of a status, which its file has at the end, so that programs in C++ can compare it with the text."""
    return zlib.crc32(_text(status).encode())


def _sum_of(name, expected):
    """The checksum of a file in the form of the expected one."""
    if not os.path.isfile(name):
        return "no file"
    if isinstance(expected[1], str):
        return links.sum_of(name)
    return _checksum(name)


def read(folder: str) -> dict[str, Any]:
    """dict: the status of a checkpoint, after the sizes and checksums of its files have been verified. Links of tables
    check themselves when they are loaded; here only the checksum at their end is compared.

    Raises:
        ValueError: a file is missing, damaged or of a different format. The message names it.
    """
    name = os.path.join(folder, STATUS)
    try:
        with open(name, encoding="utf-8") as file:
            status: dict[str, Any] = json.load(file)
        if status["format"] != FORMAT:
            raise InvalidValue("%s: the format is %r, this version reads %d" % (name, status["format"], FORMAT))
        check = status.pop("check", None)
        if check is not None and check != _check(status):
            raise InvalidValue("%s: its checksum must be %s, got %s" % (name, check, _check(status)))
        sums = dict(status["files"])
    except InvalidValue:
        raise
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise InvalidValue("%s: not readable: %s" % (name, e)) from None
    for file_name, expected in sums.items():
        at = os.path.join(folder, os.path.basename(file_name))
        found = _sum_of(at, expected)
        if found != expected:
            kind = "checksum" if isinstance(expected[1], str) else "CRC-32"
            raise InvalidValue("%s: [bytes, %s] must be %s, got %s" % (at, kind, expected, found))
    return status
