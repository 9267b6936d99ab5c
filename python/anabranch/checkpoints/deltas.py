"""Checkpoints whose growable tables are chains of links, written by a thread while training continues."""
from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any

from .. import _core
from . import folders, links
from .state import Trained

_TELL_S = 10.0


class Position:
    """The last link of each table of a run.

    Attributes:
        number (int): number of its checkpoint.
        sums (dict): name of a table -> (checksum of the changes, checksum of all rows); 0: there is no such link.
        deltas (int): checkpoints since the one with all rows.
        whole_bytes (int): bytes of the links with all rows.
        delta_bytes (int): bytes of the changes since then.
    """

    def __init__(self, number: int, sums: dict[str, tuple[int, int]], deltas: int, whole_bytes: int,
                 delta_bytes: int) -> None:
        self.number, self.sums = number, sums
        self.deltas, self.whole_bytes, self.delta_bytes = deltas, whole_bytes, delta_bytes

    @staticmethod
    def of(number: int, status: dict[str, Any]) -> Position | None:
        """Position: the position of a checkpoint; None if it is not part of a chain, or if its folder has a different
        number."""
        chain = status.get("chain")
        if chain is None or chain["number"] != number:
            return None
        sums = {name: (links.number(pair[0]), links.number(pair[1])) for name, pair in chain["tables"].items()}
        return Position(number, sums, chain["deltas"], *chain["bytes"])

    @staticmethod
    def after(last: Position | None, number: int, sums: dict[str, tuple[int, int]], whole: bool,
              sizes: list[int]) -> Position:
        """Position: the position of the checkpoint after ``last``. ``sizes``: bytes of its changes, and of all its
        rows."""
        if last is None or whole:
            return Position(number, sums, 0, sizes[1], 0)
        return Position(number, sums, last.deltas + 1, last.whole_bytes, last.delta_bytes + sizes[0])

    def outgrown(self) -> bool:
        """bool: the changes since the checkpoint with all rows are larger than this checkpoint."""
        return self.delta_bytes > self.whole_bytes

    def status(self, run: str, previous: int, whole: bool) -> dict[str, Any]:
        """dict: the entry about the chain in the status of the checkpoint."""
        return {"run": run, "number": self.number, "previous": previous, "whole": whole, "deltas": self.deltas,
                "bytes": [self.whole_bytes, self.delta_bytes],
                "tables": {name: [links.text(number) if number else None for number in pair]
                           for name, pair in self.sums.items()}}


class Deltas:
    """The chain of a run.

    Args:
        root (str): folder of the checkpoints.
        trained (Trained): programs of the run.
        most (int): number of checkpoints after which all rows are written again.
        keep (int): number of checkpoints to keep.
        say (callable): function that prints a message.
    """

    def __init__(self, root: str, trained: Trained, most: int, keep: int, say: Callable[[str], None]) -> None:
        self._root, self._trained, self._most, self._keep, self._say = root, trained, most, keep, say
        self._run = os.urandom(16).hex()
        self._last: Position | None = None
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self._folder = ""

    def resume(self, number: int, status: dict[str, Any]) -> None:
        """Continues the chain after a checkpoint that has been loaded."""
        last = Position.of(number, status)
        if last is None:
            return
        self._run, self._last = status["chain"]["run"], last
        for name, table in self._trained.tables().items():
            if name in last.sums:
                table.record_since(since_of(last.sums[name]))

    def changed_bytes(self) -> int:
        """int: bytes of the rows that have changed since the last checkpoint."""
        return sum(table.changed_bytes() for table in self._trained.tables().values())

    def start(self, status: dict[str, Any]) -> None:
        """Takes the state of this moment, and starts a thread that writes it. The caller must not train until this
        returns."""
        self.wait()
        tables = self._trained.tables()
        whole = self._must_be_whole(tables)
        number, writing = folders.begin(self._root)
        cuts: dict[str, Any] = {}
        try:
            programs, files = self._trained.write(writing, with_tables=False)
            for name, table in tables.items():
                cuts[name] = _core.LinkCut(table, whole)
        except BaseException:
            _drop(writing, cuts)
            raise
        recorded = {name for name, table in tables.items() if self._is_recorded(name, table)}
        self._thread = threading.Thread(target=self._write, name="anabranch checkpoint %d" % number, args=(
            number, writing, dict(status, programs=programs), files, cuts, whole, recorded))
        self._thread.start()

    def wait(self) -> str:
        """Waits until the last checkpoint is written.

        Returns:
            str: its folder.

        Raises:
            EnforceNotMet, OSError: it could not be written. Its changes are part of the next one.
        """
        begun, told = time.monotonic(), 1
        while self._thread is not None:
            self._thread.join(_TELL_S)
            if not self._thread.is_alive():
                self._thread = None
            elif time.monotonic() - begun > told * _TELL_S:
                told += 1
                self._say("waiting for %s, for %.0f s so far" % (self._thread.name, time.monotonic() - begun))
        self.check()
        return self._folder

    def check(self) -> None:
        """Raises the error of the last checkpoint, if it could not be written."""
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _is_recorded(self, name, table):
        return self._last is not None and name in self._last.sums and \
            table.recorded_since() == since_of(self._last.sums[name])

    def _must_be_whole(self, tables):
        last = self._last
        return (last is None or not tables or last.deltas >= self._most or last.outgrown()
                or not all(self._is_recorded(name, table) for name, table in tables.items()))

    def _write(self, number, writing, status, files, cuts, whole, recorded):
        try:
            self._folder = self._fill(number, writing, status, files, cuts, whole, recorded)
        except BaseException as e:
            _drop(writing, cuts)
            self._error = e
            return
        try:
            folders.keep(self._root, self._keep)
        except OSError as e:
            self._error = e

    def _fill(self, number, writing, status, files, cuts, whole, recorded):
        last = self._last
        sums, known, sizes = links.write(writing, cuts, None if last is None else last.sums, whole, recorded, self._run,
                                         number, None if last is None else last.number)
        files.__exit__(None, None, None)
        now = Position.after(last, number, sums, whole, sizes)
        chain = now.status(self._run, -1 if last is None else last.number, whole)
        folder = folders.end(self._root, number, writing, dict(status, chain=chain), known)
        for name, cut in cuts.items():
            cut.end(since_of(sums[name]))
        self._last = now
        return folder


def _drop(writing, cuts):
    """The checkpoint could not be written: its changes are part of the next one, which may begin before the error, and
    with it the cuts, are gone from memory."""
    for cut in cuts.values():
        cut.abandon()
    folders.drop(writing)


def since_of(sums: tuple[int, int]) -> int:
    """int: the checksum that stands for both links of a moment."""
    return sums[0] or sums[1]
