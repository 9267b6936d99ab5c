"""Passes over a data set: its settings for the engine, streams of batches, and their statistics."""
from __future__ import annotations

import json
import os
import socket
import sys
import zlib
from collections import Counter
from typing import Any

from ... import _core
from ..._terminal import counted
from ...progress import is_first_process
from ..errors import InvalidValue, NotAllowed, Unsupported
from ..layers import check
from ..user_warnings import advise, warn
from . import first_lines, same_data, sampled_rows, table_files
from .dataset_remote import RemoteFiles


class DatasetPasses(RemoteFiles):
    """The part of a data set that the executor and loaders use. :class:`DatasetBase` has the settings."""

    def __init__(self) -> None:
        self._core: Any = None
        self._stream: Any = None
        self._earlier: dict[str, Any] = {}
        self._warned_of_uneven_rows = False
        self._compared = ""     # the last format that was compared with the inputs and a file
        self._loaded_settings: Any = None   # that chose the records in memory
        self._looked_at: tuple[str, ...] = ()   # the last files whose rows were looked at
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

    def _warn_of_no_rows(self, what, bad):
        files, share = self.filelist, self._share[:2]
        warn("%s: the data set has no rows: %s" % (what, "set_filelist names no files" if not files else
             "%s of set_filelist %s no %slines%s"
             % (counted(len(files), "file"), "has" if len(files) == 1 else "have", "well-formed " if bad else "",
                "" if share == (0.0, 1.0) else " in the share from %g to %g" % share)))

    def _warn_before_a_pass(self, what):
        self._warn_of_format()
        self._warn_of_repeated_files(what)
        if self._loaded_settings not in (None, self._settings_of_memory()):
            self._loaded_settings = None        # one warning
            warn("%s: the records in memory are those of set_filelist and set_share before load_into_memory: call it "
                 "again to read the files that have been set since" % what)

    def _warn_of_repeated_files(self, what):
        """Warns if a pass reads some files more often than others, or one by two names."""
        names: dict[str, set[str]] = {}
        for path in self.filelist:
            names.setdefault(os.path.realpath(path), set()).add(path)
        counts = Counter(map(os.path.realpath, self.filelist))
        if len(set(counts.values())) > 1 or any(len(one) > 1 for one in names.values()):
            most = max(counts, key=lambda path: counts[path])
            advise("%s: set_filelist has %s %d times, so that its rows count more than those of other files: list each "
                   "file once" % (what, min(names[most]), counts[most]))

    def _warn_of_format(self):
        """Warns if a schema converts values in another way than the program expects, or reads none of their texts."""
        if self._format == self._compared:
            return
        self._compared = self._format
        if self.filelist and self._pipe_command == "cat":
            first_lines.warn_of_header(self._format, self.filelist[0])
        if self._format.startswith("{"):
            for program in {id(made): made for made in (one.block.program for one in self._use_vars)}.values():
                same_data.warn_of_other_features("set_format", program._schema_features, self._format)
            if self.filelist and self._pipe_command == "cat":
                first_lines.warn_of_odd_values(self._format, self.filelist[0])

    def _warn_of_rows(self, what, program):
        """Looks at files that are trained on in their order, once."""
        files = tuple(self.filelist)
        if files == self._looked_at or not files or self._pipe_command != "cat" or check.exact_fluid():
            return
        self._looked_at = files
        dense = [name for name, _, dense, _ in self._slots or () if dense]
        sampled_rows.warn_of_rows(what, files, self._settings(), dense, sampled_rows.labels_of(program),
                                  not getattr(self, "_shuffled", False))

    def _lines_of_a_pass(self):
        """str: a text that workers of one machine have in common if they read the same lines; empty if only the pass
        decides which these are."""
        if self._queue is not None or not self.filelist or self._pipe_command != "cat" or getattr(
                self, "_exchanged", False):
            return ""
        return json.dumps([socket.gethostname(), sorted(map(os.path.realpath, self.filelist)), self._share])

    def _settings_of_batches(self):
        """list: what the rows of each batch depend on, besides the format and shuffles. Files may move as a whole."""
        names = [os.path.basename(path) for path in self.filelist]
        return [self._batch_size or 32, zlib.crc32(json.dumps(names).encode()), *self._share]

    def _settings_of_memory(self):
        return list(self.filelist), self._share

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
        if not counts["rows"]:
            self._warn_of_no_rows(what, bad)
        left = counts["rows"] % (self._batch_size or 32) if self._drop_last and self._queue is None else 0
        if left and left == counts["rows"]:
            advise("%s: the %d rows are fewer than a batch (%d), so that drop_last leaves none: set a smaller batch "
                   "size or set_drop_last(False)" % (what, left, self._batch_size or 32))
        if self._format and lines and is_first_process():
            share = " (%.2g %%)" % (100 * bad / lines) if bad else ""
            sys.stderr.write("%s: %s, %s%s, %s%s\n" % (
                what, counted(counts["rows"], "row"), counted(bad, "bad line"), share,
                counted(counts["missing"], "missing value"),
                ", the last %d dropped (drop_last)" % left if left else ""))
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
            s.set_open_table(table_files.opener(self._format, *self._share[3:]))
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
        self._warn_before_a_pass("dataset")
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
