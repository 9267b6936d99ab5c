"""Links of growable tables in the folders of checkpoints."""
from __future__ import annotations

import os
import struct
from typing import Any

from .. import _core
from ..fluid.errors import InvalidValue
from ..fluid.io.tables import CHANGES, chain_of

#: Name of the file of all variables; those of tables have it as their prefix.
VALUES = "values"
#: Keys that are gone, rows, checksum, and a mark.
_FOOT = struct.Struct("<qqQ8s")


def sum_of(path: str) -> list[Any]:
    """list: bytes of a link, and the checksum at its end as text."""
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        file.seek(max(size - _FOOT.size, 0))
        foot = file.read()
    return [size, text(_FOOT.unpack(foot)[2]) if len(foot) == _FOOT.size else "cut short"]


def text(checksum: int) -> str:
    """str: a checksum as a status records it."""
    return "%016x" % checksum


def number(text: str | None) -> int:
    """int: the checksum of :func:`text`; 0 for None."""
    return int(text, 16) if text else 0


def changes(path: str) -> str:
    """str: the file of the changes of the table whose rows are in ``path``."""
    return path + CHANGES


def chains(folder: str, status: dict[str, Any]) -> dict[str, Any]:
    """dict: name -> TableChain of each table of a checkpoint, after all of its links have been verified.

    Raises:
        ValueError: a link is missing, damaged, or belongs to another table or another run. The message names it.
    """
    found = {}
    for name in sorted(status["chain"]["tables"]):
        chain = _core.TableChain(chain_of(os.path.join(folder, "%s.%s" % (VALUES, name))))
        found_number = chain.links()[-1]["number"]
        if not folder.endswith("%06d" % found_number):
            raise InvalidValue("%s: its file of table %s belongs to checkpoint %d" % (folder, name, found_number))
        for link in chain.links():
            for key, expected in (("table", name), ("run", status["chain"]["run"])):
                if link[key] != expected:
                    raise InvalidValue("%s belongs to %s %s, but the checkpoint %s belongs to %s"
                                       % (link["path"], key, link[key], folder, expected))
        found[name] = chain
    return found


def write(folder: str, cuts: dict[str, Any], before: Any, whole: bool, recorded: Any, run: str, number: int,
          previous: int | None) -> tuple[dict[str, tuple[int, int]], dict[str, Any], list[int]]:
    """Writes the links of tables into the folder of a checkpoint.

    Args:
        folder (str): the folder.
        cuts (dict): name -> LinkCut or ServerLinks of each table.
        before (dict): name -> (checksum of the changes, of all rows) of the links before; None: there are none.
        whole (bool): writes all rows, too.
        recorded (bool|set): whether, or for which tables, changes have been recorded since then.
        run (str): number of the run, in hexadecimal digits.
        number (int): number of the checkpoint.
        previous (int): that of the one before; None: there is none.

    Returns:
        tuple: name -> (checksum of the changes, of all rows); file name -> [bytes, checksum]; bytes of changes and of
        all rows.
    """
    sums: dict[str, tuple[int, int]] = {}
    known: dict[str, Any] = {}
    sizes = [0, 0]
    for name, cut in cuts.items():
        path = os.path.join(folder, "%s.%s" % (VALUES, name))
        has_changes = recorded if isinstance(recorded, bool) else name in recorded
        paths = (changes(path) if has_changes else "", path if whole else "")
        pair = (before or {}).get(name, (0, 0))
        sums[name] = cut.write(*paths, int(run[:16], 16), int(run[16:], 16), number,
                               -1 if previous is None else previous, *pair)
        for k, link in enumerate(paths):
            if link:
                known[os.path.basename(link)] = found = sum_of(link)
                sizes[k] += found[0]
    return sums, known, sizes
