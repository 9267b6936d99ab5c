"""Passes over a data set: its settings for the engine, streams of batches, and their statistics."""
from __future__ import annotations

import sys
from typing import Any

from ... import _core
from ..._terminal import counted
from ...progress import is_first_process
from ..errors import InvalidValue, NotAllowed, Unsupported
from ..user_warnings import warn
from . import table_files
from .dataset_remote import RemoteFiles


class DatasetPasses(RemoteFiles):
    """The part of a data set that the executor and loaders use. :class:`DatasetBase` has the settings."""

    def __init__(self) -> None:
        self._core: Any = None
        self._stream: Any = None
        self._earlier: dict[str, Any] = {}
        self._warned_of_uneven_rows = False
        self._most_bad: float | None = None     # share of the lines of a pass

    def statistics(self) -> dict[str, Any] | None:
        """Statistics of the current or last pass.

        Returns:
            dict: lines, rows, bad_rows, missing (empty fields that got a value of the format), uneven_rows (rows in
            which a variable without LoD has more or fewer values than its shape requires), bytes, files; seconds that
            reader threads spent parsing (parse_s) and blocked by slow consumers (blocked_s), and that consumers waited
            (waited_s). None before the first pass.
        """
        if self._stream is None:
            return None
        return {name: number + self._earlier.get(name, 0) for name, number in self._stream.statistics().items()}

    def _warn_of_uneven_rows(self, first):
        """One warning for the rows whose values do not match the shape of a variable; ``first`` describes one."""
        if first and not self._warned_of_uneven_rows:
            self._warned_of_uneven_rows = True
            warn("%s. As in Fluid 1.8.5, the values of a batch are joined, divided into rows of that shape, and what "
                 "remains is dropped: check the data, or call set_bad_rows('raise') to make such lines errors" % first)

    def _warn_of_no_rows(self, what):
        files, share = self.filelist, self._share[:2]
        warn("%s: the data set has no rows: %s" % (what, "set_filelist names no files" if not files else
             "%s of set_filelist %s no lines%s"
             % (counted(len(files), "file"), "has" if len(files) == 1 else "have",
                "" if share == (0.0, 1.0) else " in the share from %g to %g" % share)))

    def _end_pass(self, what, statistics=None, uneven=""):
        """Reports what a pass over files has read. Passes over memory read nothing: loading has reported.

        Raises:
            ValueError: the share of bad lines is larger than allowed.
        """
        counts = self.statistics() if statistics is None else statistics
        self._warn_of_uneven_rows(uneven)
        if self._in_memory and statistics is None:
            return
        lines, bad = counts["lines"], counts["bad_rows"]
        if not lines and not counts["rows"]:
            self._warn_of_no_rows(what)
        if self._format and lines and is_first_process():
            share = " (%.2g %%)" % (100 * bad / lines) if bad else ""
            sys.stderr.write("%s: %s, %s%s, %s\n" % (
                what, counted(counts["rows"], "row"), counted(bad, "bad line"), share,
                counted(counts["missing"], "missing value")))
        if self._most_bad is not None and bad > self._most_bad * lines:
            raise InvalidValue("%s: %s of %d are bad, more than max_share=%g of set_bad_rows"
                               % (what, counted(bad, "line"), lines, self._most_bad))

    def _settings(self, threads=0):
        if self._slots is None:
            raise NotAllowed("the data set has no slots: call set_use_var first")
        s = _core.DataSettings()
        s.slots = [_core.Slot(name, is_float, bool(dense), shape[1:]) for name, is_float, dense, shape in self._slots]
        s.ins_id, s.content = self.parse_ins_id, self.parse_content
        s.drop_zeros = self._in_memory and not self._format
        s.files, s.pipe_command, s.format = self._local_files(), self._pipe_command, self._format
        s.batch_size = 32 if self._batch_size is None else self._batch_size
        s.threads = max(1, threads or self.thread_num)
        s.in_memory, s.seed, s.drop_last = self._in_memory, self._seed, self._drop_last
        policy, limit, file = self._bad_rows
        s.joins = policy == "join" and not self._format
        s.set_bad_rows("raise" if policy == "join" else policy, limit, file)
        s.silence_s, s.command_limit_s = self._limits
        s.cache_folder = self._cache
        if self._format.startswith("{"):    # a schema, with which a file may hold a table
            s.set_open_table(table_files.opener(self._format))
        s.set_share(*self._share)
        return s

    def _dataset(self, threads=0):
        """The engine's data set with the current settings."""
        return self._with_settings(self._settings(threads))

    def _with_settings(self, settings):
        if self._core is None:
            self._core = _core.Dataset(settings)
        else:
            self._core.set(settings)
        return self._core

    def _open(self, ordered=True, threads=0):
        """Opens a new pass and returns the engine's stream of batches.

        Args:
            ordered (bool): whether batches come in the order of a single thread, rather than as they are ready.
            threads (int): number of reading threads; 0 means the number that was set.
        """
        if self._queue is not None:
            raise Unsupported("a file_queue is not supported outside train_from_dataset and infer_from_dataset: use "
                              "set_filelist(fleet.split_files(files)) in other loops")
        self._earlier = {}
        self._stream = self._dataset(threads).open(ordered, threads)
        return self._stream

    def _open_next(self, path, ordered, first):
        """Opens one file (None: no file) as a part of a pass. The first part resets bad rows and statistics."""
        self._earlier = {} if first else self.statistics()
        settings = self._settings()
        settings.files = [] if path is None else self._local_files([path])
        settings.bad_rows_before = self._earlier.get("bad_rows", 0)
        self._stream = self._with_settings(settings).open(ordered, 0)
        return self._stream

    def _batches(self, ordered=True):
        """Iterates over a new pass: one dict {name: LoDTensor} per batch."""
        stream = self._open(ordered)
        try:
            while True:
                batch = stream.next()
                if batch is None:
                    self._end_pass("dataset", uneven=stream.uneven())
                    return
                yield batch
        finally:
            stream.close()
