"""What all data sets have in common: their settings."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ... import _core
from ..described import Described
from ..errors import InvalidType, InvalidValue, NotAllowed, NotOffered, Unsupported
from ..framework import VarType
from .dataset_desc import feed_text

if TYPE_CHECKING:
    from ..framework import Variable
    from ..incubate.fleet.base.file_queue import FileQueue

_POLICIES = ("raise", "skip", "quarantine")


def whole_number(value: Any, what: Any, lowest: Any = None, highest: int = 2**31 - 1) -> Any:
    """``value`` as an int. TypeError: no whole number. ValueError: below ``lowest`` or above ``highest``.

    >>> whole_number(3, "thread_num")
    3
    """
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise InvalidType("%s must be a whole number, got %s" % (what, type(value).__name__))
    if lowest is not None and value < lowest:
        raise InvalidValue("%s must be at least %d, got %d" % (what, lowest, value))
    if value > highest or value < -highest:
        raise InvalidValue("%s must be at most %d, got %d" % (what, highest, value))
    return int(value)


def _text(value, what):
    if not isinstance(value, str):
        raise InvalidType("%s must be a str, got %s" % (what, type(value).__name__))
    return value


class DatasetBase(Described):
    """The settings of a data set; see :class:`QueueDataset` and :class:`InMemoryDataset`, which read.

    Order of calls: settings, [load, shuffle], ``Executor.train_from_dataset``, [release].
    """

    _feed_name = "MultiSlotDataFeed"
    _in_memory = False

    def __init__(self) -> None:
        self.thread_num = 1
        self.filelist: list[Any] = []
        self._queue: Any = None
        self._earlier: dict[str, Any] = {}
        self._core = None
        self._stream = None
        self._batch_size: int | None = None
        self._slots: Any = None
        self._use_vars: list[Any] = []
        self._pipe_command = "cat"
        self._extra: dict[Any, Any] = {}
        self._ins_id = self._content = False
        self._seed = 0
        self._bad_rows = ("raise", -1, "")
        self._limits = (600.0, 0.0)
        self._cache = ""
        self._format = ""
        self._drop_last = False

    # ---- Fluid's settings

    def set_pipe_command(self, pipe_command: str) -> None:
        """The command that turns a file into lines.

        Args:
            pipe_command (str): run by a shell for each file, with the file as its stdin; what it writes is parsed. It
                must end with status 0, or the pass fails. Default 'cat', which starts no process; gzip and zstd files
                are then read as what they hold.

        Raises:
            TypeError: no str.

        Examples:
            >>> import anabranch.fluid as fluid
            >>> dataset = fluid.DatasetFactory().create_dataset()
            >>> dataset.set_pipe_command("python my_generator.py")
        """
        self._pipe_command = _text(pipe_command, "set_pipe_command: pipe_command")
        if "\0" in self._pipe_command:
            raise InvalidValue("set_pipe_command: pipe_command must have no zero byte, got %r" % pipe_command)

    def set_batch_size(self, batch_size: int) -> None:
        """Samples a batch; the last batch of a pass may have fewer. Default 32.

        Args:
            batch_size (int): at least 1.

        Raises:
            TypeError: no int. ValueError: below 1.

        Examples:
            >>> import anabranch.fluid as fluid
            >>> fluid.DatasetFactory().create_dataset().set_batch_size(128)
        """
        self._batch_size = whole_number(batch_size, "set_batch_size: batch_size", 1)

    def set_thread(self, thread_num: int) -> None:
        """Threads that read, and that train unless ``train_from_dataset`` is told otherwise. Default 1.

        Args:
            thread_num (int): at least 0; 0 leaves the number to ``train_from_dataset``.

        Raises:
            TypeError: no int. ValueError: below 0.

        Examples:
            >>> import anabranch.fluid as fluid
            >>> fluid.DatasetFactory().create_dataset().set_thread(2)
        """
        self.thread_num = whole_number(thread_num, "set_thread: thread_num", 0)

    def set_filelist(self, filelist: Sequence[str] | FileQueue) -> None:
        """The files of a pass, in order.

        Args:
            filelist (list of str|FileQueue): paths; or what ``fleet.file_queue`` gives, of which workers take one after
                the other, each when it is done with the last one.

        Raises:
            TypeError: no list of str. NotImplementedError: a FileQueue for an InMemoryDataset, of which nobody can say
                when a file is trained.

        Examples:
            >>> import anabranch.fluid as fluid
            >>> fluid.DatasetFactory().create_dataset().set_filelist(["a.txt", "b.txt"])
        """
        queue: Any = filelist if hasattr(filelist, "_pass") else None
        if queue is not None:
            if self._in_memory:
                raise Unsupported("set_filelist: an InMemoryDataset takes no file_queue, use a QueueDataset, or "
                                  "fleet.split_files: what is loaded may be trained many times, or dealt out to others")
            filelist = queue.files
        if not isinstance(filelist, (list, tuple)) or not all(isinstance(path, str) for path in filelist):
            raise InvalidType("set_filelist: filelist must be a list of paths (str), got %r" % (filelist,))
        self.filelist, self._queue = list(filelist), queue

    def set_use_var(self, var_list: Sequence[Variable]) -> None:
        """The variables that are fed, in the order in which their slots stand in a line.

        Args:
            var_list (list of Variable): float32 (values are read as floats) or int64 (as ids of 64 bits). Without LoD:
                a dense slot with as many values as the shape says, batch left out. With LoD: a list of any length.

        Raises:
            TypeError: no list of Variables. ValueError: another dtype, or two of one name.

        Examples:
            >>> import anabranch.fluid as fluid
            >>> label = fluid.data("label", [None, 1], "int64")
            >>> words = fluid.data("words", [None, 1], "int64", lod_level=1)
            >>> fluid.DatasetFactory().create_dataset().set_use_var([label, words])
        """
        if not isinstance(var_list, (list, tuple)) or not all(hasattr(v, "lod_level") for v in var_list):
            raise InvalidType("set_use_var: var_list must be a list of Variables, got %r" % (var_list,))
        slots = []
        for v in var_list:
            if v.dtype not in (VarType.FP32, VarType.INT64):
                raise InvalidValue("set_use_var: a slot is float32 or int64, but %s is %s" % (v.name, v.dtype))
            dense = v.lod_level == 0
            slots.append((v.name, v.dtype == VarType.FP32, dense or None, list(v.shape) if dense else []))
        names = [slot[0] for slot in slots]
        if len(set(names)) != len(names):
            raise InvalidValue("set_use_var: a variable is there twice: %s" % ", ".join(names))
        self._slots, self._use_vars = slots, list(var_list)

    def set_hdfs_config(self, fs_name: str, fs_ugi: str) -> None:
        """Files on a Hadoop file system are not read by this build: use a pipe command that fetches them.

        Args:
            fs_name (str), fs_ugi (str): address and account. Empty ones are accepted.

        Raises:
            NotImplementedError: a ``fs_name``.

        Examples:
            >>> import anabranch.fluid as fluid
            >>> fluid.DatasetFactory().create_dataset().set_hdfs_config("", "")
        """
        if fs_name or fs_ugi:
            raise Unsupported("set_hdfs_config: Hadoop file systems are not part of this build; let set_pipe_command "
                              "fetch the file that it finds on its stdin")

    def set_download_cmd(self, download_cmd: str) -> None:
        """A command that fetches files is not run by this build: use the pipe command.

        Args:
            download_cmd (str): an empty one is accepted.

        Raises:
            NotImplementedError: a command.
        """
        if download_cmd:
            raise Unsupported("set_download_cmd: not part of this build; let set_pipe_command fetch the data")

    def set_rank_offset(self, rank_offset: str) -> None:
        """Name of the slot with ranks in page views; kept in :meth:`desc` only.

        Args:
            rank_offset (str): a name.
        """
        self._extra["rank_offset"] = _text(rank_offset, "set_rank_offset: rank_offset")

    def set_pv_batch_size(self, pv_batch_size: int) -> None:
        """Page views a batch; kept in :meth:`desc` only.

        Args:
            pv_batch_size (int): a number.
        """
        self._extra["pv_batch_size"] = whole_number(pv_batch_size, "set_pv_batch_size: pv_batch_size")

    def set_fea_eval(self, record_candidate_size: int, fea_eval: bool = True) -> None:
        """Allows :meth:`slots_shuffle`.

        Args:
            record_candidate_size (int): accepted; all records take part.
            fea_eval (bool): False forbids it again. Default True.

        Examples:
            >>> import anabranch.fluid as fluid
            >>> fluid.DatasetFactory().create_dataset("InMemoryDataset").set_fea_eval(1000000)
        """
        whole_number(record_candidate_size, "set_fea_eval: record_candidate_size")
        self._fea_eval: Any = bool(fea_eval)

    def slots_shuffle(self, slots: Sequence[str]) -> Any:
        """Only an InMemoryDataset can do this. Raises NotImplementedError.

        Args:
            slots (list of str): names.
        """
        raise NotOffered("%s does not support slots_shuffle: use InMemoryDataset" % type(self).__name__)

    def desc(self) -> str:
        """The settings as protobuf text (DataFeedDesc).

        Returns:
            str: what Fluid writes.

        Examples:
            >>> import anabranch.fluid as fluid
            >>> print(fluid.DatasetFactory().create_dataset().desc(), end="")
            name: "MultiSlotDataFeed"
            pipe_command: "cat"
        """
        return feed_text(self._feed_name, self._batch_size, self._slots, self._pipe_command, None, self._extra)

    # ---- beyond Fluid

    def set_bad_rows(self, policy: str, max_rows: int | None = None, file: str | None = None) -> None:
        """What happens to lines that do not fit the slots.

        Args:
            policy (str): 'raise' (the default: the pass ends with file:line:column: slot and an excerpt), 'skip', or
                'quarantine' (they are written to ``file``, each after a line that says what is wrong).
            max_rows (int, optional): more bad lines than this in a pass are an error. Default: no limit.
            file (str, optional): for 'quarantine'. A pass that finds bad lines replaces it.

        Raises:
            ValueError: another policy, no file for 'quarantine', a limit below 0.

        Examples:
            >>> import anabranch.fluid as fluid
            >>> fluid.DatasetFactory().create_dataset().set_bad_rows("skip", max_rows=100)
        """
        if policy not in _POLICIES:
            raise InvalidValue("set_bad_rows: policy must be one of %s, got %r" % (", ".join(_POLICIES), policy))
        if policy == "quarantine" and not file:
            raise InvalidValue("set_bad_rows: 'quarantine' needs a file")
        limit = -1 if max_rows is None else whole_number(max_rows, "set_bad_rows: max_rows", 0, 2 ** 63 - 1)
        self._bad_rows = (policy, limit, _text(file or "", "set_bad_rows: file"))

    def set_shuffle_seed(self, seed: int) -> None:
        """Seed of all shuffles; the order of a pass follows from it and from how often was shuffled. Default 0.

        Args:
            seed (int): at least 0.
        """
        self._seed = whole_number(seed, "set_shuffle_seed: seed", 0, 2 ** 63 - 1)

    def set_command_limits(self, silence_s: float = 600.0, total_s: float = 0.0) -> None:
        """Ends pipe commands that hang.

        Args:
            silence_s (float): seconds in which a command reads and writes nothing; 0: no limit. Default 600.
            total_s (float): seconds that it may run; 0: no limit. Default 0.

        Raises:
            ValueError: below 0.
        """
        if silence_s < 0 or total_s < 0:
            raise InvalidValue("set_command_limits: seconds must be at least 0, got %s and %s" % (silence_s, total_s))
        self._limits = (float(silence_s), float(total_s))

    def set_cache(self, folder: str) -> None:
        """Keeps parsed files in a folder, and reads them from there while nothing has changed.

        Args:
            folder (str): made when needed; '' switches it off.
        """
        self._cache = _text(folder, "set_cache: folder")

    def set_format(self, text: str) -> None:
        """Reads other lines than MultiSlot text: tab- or comma-separated columns, libsvm. See the guide on data.

        Args:
            text (str): the schema, a line per slot; '' for MultiSlot text.
        """
        self._format = _text(text, "set_format: text")

    def set_drop_last(self, drop_last: bool) -> None:
        """Leaves out a last batch with fewer samples.

        Args:
            drop_last (bool): Default of a new data set: False.
        """
        self._drop_last = bool(drop_last)

    def statistics(self) -> dict[str, Any] | None:
        """What the current or last pass has done.

        Returns:
            dict: lines, rows, bad_rows, bytes, files; seconds of the reader's threads parsing (parse_s) and blocked by
            slow consumers (blocked_s), and of consumers waiting for the reader (waited_s). None before the first pass.
        """
        if self._stream is None:
            return None
        return {name: number + self._earlier.get(name, 0) for name, number in self._stream.statistics().items()}

    # ---- for the executor and loaders

    def _settings(self, threads=0):
        if self._slots is None:
            raise NotAllowed("the data set has no slots: call set_use_var first")
        s = _core.DataSettings()
        s.slots = [_core.Slot(name, is_float, bool(dense), shape[1:]) for name, is_float, dense, shape in self._slots]
        s.ins_id, s.content = self._ins_id, self._content
        s.drop_zeros = self._in_memory and not self._format
        s.files, s.pipe_command, s.format = self.filelist, self._pipe_command, self._format
        s.batch_size = 32 if self._batch_size is None else self._batch_size
        s.threads = max(1, threads or self.thread_num)
        s.in_memory, s.seed, s.drop_last = self._in_memory, self._seed, self._drop_last
        s.set_bad_rows(*self._bad_rows)
        s.silence_s, s.command_limit_s = self._limits
        s.cache_folder = self._cache
        return s

    def _dataset(self, threads=0):
        """The engine's data set with the settings of now."""
        return self._with_settings(self._settings(threads))

    def _with_settings(self, settings):
        if self._core is None:
            self._core = _core.Dataset(settings)
        else:
            self._core.set(settings)
        return self._core

    def _open(self, ordered=True, threads=0):
        """A new pass: the engine's stream of batches.

        Args:
            ordered (bool): batches as one thread would read them; else as they get ready.
            threads (int): that read; 0: as set.
        """
        if self._queue is not None:
            raise Unsupported("files of a file_queue are read by train_from_dataset and infer_from_dataset alone; use "
                              "set_filelist(fleet.split_files(files)) for other loops")
        self._earlier = {}
        self._stream = self._dataset(threads).open(ordered, threads)
        return self._stream

    def _open_next(self, path, ordered, first):
        """A part of a pass, of one file; None: of none. Bad rows and statistics go on, except in the first part."""
        self._earlier = {} if first else self.statistics()
        settings = self._settings()
        settings.files = [] if path is None else [path]
        settings.bad_rows_before = self._earlier.get("bad_rows", 0)
        self._stream = self._with_settings(settings).open(ordered, 0)
        return self._stream

    def _batches(self, ordered=True):
        """Iterates over a new pass: a dict {name: LoDTensor} a batch."""
        stream = self._open(ordered)
        try:
            while True:
                batch = stream.next()
                if batch is None:
                    return
                yield batch
        finally:
            stream.close()
