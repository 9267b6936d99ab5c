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


def write(root: str, status: dict[str, Any], fill: Callable[[str], None]) -> str:
    """Writes the next checkpoint: ``fill(folder)`` writes its files, and ``status`` is added to them.

    Returns:
        str: folder of the checkpoint.
    """
    os.makedirs(root, exist_ok=True)
    for name in os.listdir(root):           # of runs that were killed while they wrote
        if name.startswith(_WRITING):
            shutil.rmtree(os.path.join(root, name), ignore_errors=True)
    number = max([*numbers(root), 0]) + 1
    writing = _writing(root, number)
    os.mkdir(writing)
    try:
        fill(writing)
        sums = {name: _checksum(os.path.join(writing, name)) for name in sorted(os.listdir(writing))}
        with open(os.path.join(writing, STATUS), "w", encoding="utf-8") as file:
            json.dump(dict(status, format=FORMAT, files=sums), file)
        for name in [*sums, STATUS, ""]:
            _flush(os.path.join(writing, name))
        target = path(root, number)
        os.rename(writing, target)
        _flush(root)
    except BaseException:
        shutil.rmtree(writing, ignore_errors=True)
        raise
    return target


def keep(root: str, count: int) -> None:
    """Deletes the oldest checkpoints and keeps ``count``."""
    for number in numbers(root)[:-count]:
        doomed = _writing(root, number)
        os.rename(path(root, number), doomed)   # half of a checkpoint never stands under its name
        shutil.rmtree(doomed, ignore_errors=True)


def read(folder: str) -> dict[str, Any]:
    """dict: the status of a checkpoint, after the sizes and checksums of its files have been verified.

    Raises:
        ValueError: a file is missing, damaged or of a different format. The message names it.
    """
    name = os.path.join(folder, STATUS)
    try:
        with open(name, encoding="utf-8") as file:
            status: dict[str, Any] = json.load(file)
        if status["format"] != FORMAT:
            raise InvalidValue("%s: the format is %r, this version reads %d" % (name, status["format"], FORMAT))
        sums = status["files"]
    except InvalidValue:
        raise
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise InvalidValue("%s: not readable: %s" % (name, e)) from None
    for file_name, expected in sums.items():
        at = os.path.join(folder, os.path.basename(file_name))
        found = _checksum(at) if os.path.isfile(at) else "no file"
        if found != expected:
            raise InvalidValue("%s: [bytes, CRC-32] must be %s, got %s" % (at, expected, found))
    return status
