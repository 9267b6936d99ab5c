"""Settings that all data sets share."""
from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import arguments
from ..described import Described
from ..errors import InvalidType, InvalidValue, NotOffered, Unsupported
from ..framework import VarType
from .dataset_desc import feed_text
from .dataset_passes import DatasetPasses

if TYPE_CHECKING:
    from ...schema import Schema
    from ..framework import Variable
    from ..incubate.fleet.base.file_queue import FileQueue
    from .dataset_handle import CoreDataset

_POLICIES = ("join", "raise", "skip", "quarantine")


def whole_number(value: Any, what: Any, lowest: Any = None, highest: int = 2**31 - 1) -> Any:
    """``value`` as an int. TypeError if it is not whole, ValueError if it is below ``lowest`` or above ``highest``.

    >>> whole_number(3, "thread_num")
    3
    """
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise InvalidType("%s must be an integer, got %s" % (what, type(value).__name__))
    if lowest is not None and value < lowest:
        raise InvalidValue("%s must be at least %d, got %d" % (what, lowest, value))
    if value > highest or value < -highest:
        raise InvalidValue("%s must be at most %d, got %d" % (what, highest, value))
    return int(value)


def _text(value, what):
    if not isinstance(value, str):
        raise InvalidType("%s must be a str, got %s" % (what, type(value).__name__))
    return value


class DatasetBase(DatasetPasses, Described):
    """Base class with the settings of data sets; see :class:`QueueDataset` and :class:`InMemoryDataset`.

    Order of calls: settings, [load, shuffle], ``Executor.train_from_dataset``, [release].
    """

    _feed_name = "MultiSlotDataFeed"
    _in_memory = False

    def __init__(self) -> None:
        super().__init__()
        self.thread_num = 1
        self.filelist = []
        self._queue: Any = None
        self._batch_size: int | None = None
        self._slots: Any = None
        self._use_vars: list[Any] = []
        self._pipe_command = "cat"
        self._extra: dict[Any, Any] = {}
        self.parse_ins_id = self.parse_content = False
        self._seed = 0
        self._bad_rows = ("join", -1, "")
        self._limits = (600.0, 0.0)
        self._cache = ""
        self._format = ""
        self._drop_last = False
        self._share: Any = (0.0, 1.0, 0)    # begin, end, seed; perhaps a column

    # ---- Fluid's settings

    def set_pipe_command(self, pipe_command: str) -> None:
        """Sets the command that converts a file to lines.

        Args:
            pipe_command (str): shell command that is run for each file, with the file as its stdin; its output is
                parsed. A status other than 0 fails the pass. Default 'cat', which starts no process and decompresses
                gzip and zstd files.

        Raises:
            TypeError: ``pipe_command`` is not a str.

        Examples:
            >>> import anabranch.fluid as fluid
            >>> dataset = fluid.DatasetFactory().create_dataset()
            >>> dataset.set_pipe_command("python my_generator.py")
        """
        self._pipe_command = _text(pipe_command, "set_pipe_command: pipe_command")
        if "\0" in self._pipe_command:
            raise InvalidValue("set_pipe_command: pipe_command must not hold a zero byte, got %r" % pipe_command)

    def set_batch_size(self, batch_size: int) -> None:
        """Sets the number of samples per batch; the last batch of a pass may have fewer. Default 32.

        Args:
            batch_size (int): at least 1.

        Raises:
            TypeError: ``batch_size`` is not an int.
            ValueError: it is below 1.

        Examples:
            >>> import anabranch.fluid as fluid
            >>> fluid.DatasetFactory().create_dataset().set_batch_size(128)
        """
        self._batch_size = whole_number(batch_size, "set_batch_size: batch_size", 1)

    def set_thread(self, thread_num: int) -> None:
        """Sets the number of threads that read, and that train unless ``train_from_dataset`` sets it. Default 1.

        Args:
            thread_num (int): at least 0; 0 leaves the number to ``train_from_dataset``.

        Raises:
            TypeError: ``thread_num`` is not an int.
            ValueError: it is below 0.

        Examples:
            >>> import anabranch.fluid as fluid
            >>> fluid.DatasetFactory().create_dataset().set_thread(2)
        """
        self.thread_num = whole_number(thread_num, "set_thread: thread_num", 0)

    def set_filelist(self, filelist: Sequence[str] | FileQueue) -> None:
        """Sets the files of a pass, in order.

        Args:
            filelist (list of str|FileQueue): paths, or a ``fleet.file_queue``, from which each worker takes its next
                file when it has finished the last one.

        Raises:
            TypeError: ``filelist`` is not a list of str.
            NotImplementedError: a FileQueue is set on an InMemoryDataset, which cannot tell when a file has been
                trained on.

        Examples:
            >>> import anabranch.fluid as fluid
            >>> fluid.DatasetFactory().create_dataset().set_filelist(["a.txt", "b.txt"])
        """
        queue: Any = filelist if hasattr(filelist, "_pass") else None
        if queue is not None:
            if self._in_memory:
                raise Unsupported("set_filelist: a file_queue is not supported by InMemoryDataset, whose records may "
                                  "be trained on many times: use a QueueDataset or fleet.split_files")
            filelist = queue.files
        if not isinstance(filelist, (list, tuple)) or not all(isinstance(path, str) for path in filelist):
            raise InvalidType("set_filelist: filelist must be a list of paths (str), got %r" % (filelist,))
        self.filelist, self._queue = list(filelist), queue

    def set_use_var(self, var_list: Sequence[Variable]) -> None:
        """Sets the variables that are fed, in the order of their slots in a line.

        Args:
            var_list (list of Variable): float32 (values are read as floats) or int64 (as ids of 64 bits). A variable
                without LoD is a dense slot with the number of values of its shape, without the batch axis; one with LoD
                is a list of any length.

        Raises:
            TypeError: ``var_list`` is not a list of Variables.
            ValueError: a dtype differs, or a name occurs twice.

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
                raise InvalidValue("set_use_var: the dtype of %s must be float32 or int64, got %s" % (v.name, v.dtype))
            dense = v.lod_level == 0
            slots.append((v.name, v.dtype == VarType.FP32, dense or None, list(v.shape) if dense else []))
        names = [slot[0] for slot in slots]
        if len(set(names)) != len(names):
            raise InvalidValue("set_use_var: variables must be unique, got %s" % ", ".join(names))
        self._slots, self._use_vars = slots, list(var_list)

    def set_rank_offset(self, rank_offset: str) -> None:
        """Sets the name of the slot with ranks in page views, which only :meth:`desc` uses.

        Args:
            rank_offset (str): a name.
        """
        self._extra["rank_offset"] = _text(rank_offset, "set_rank_offset: rank_offset")

    def set_pv_batch_size(self, pv_batch_size: int) -> None:
        """Sets the number of page views per batch, which only :meth:`desc` uses.

        Args:
            pv_batch_size (int): a number.
        """
        self._extra["pv_batch_size"] = whole_number(pv_batch_size, "set_pv_batch_size: pv_batch_size")

    def set_fea_eval(self, record_candidate_size: int, fea_eval: bool = True) -> None:
        """Allows :meth:`slots_shuffle`.

        Args:
            record_candidate_size (int): ignored; all records are shuffled.
            fea_eval (bool): whether :meth:`slots_shuffle` is allowed. Default True.

        Examples:
            >>> import anabranch.fluid as fluid
            >>> fluid.DatasetFactory().create_dataset("InMemoryDataset").set_fea_eval(1000000)
        """
        whole_number(record_candidate_size, "set_fea_eval: record_candidate_size")
        self._fea_eval: Any = bool(fea_eval)

    def slots_shuffle(self, slots: Sequence[str]) -> Any:
        """Raises NotImplementedError: only an InMemoryDataset supports it.

        Args:
            slots (list of str): names.
        """
        raise NotOffered("%s does not support slots_shuffle: use InMemoryDataset" % type(self).__name__)

    def desc(self) -> str:
        """The settings as protobuf text (DataFeedDesc).

        Returns:
            str: the text, as Fluid writes it.

        Examples:
            >>> import anabranch.fluid as fluid
            >>> print(fluid.DatasetFactory().create_dataset().desc(), end="")
            name: "MultiSlotDataFeed"
            pipe_command: "cat"
        """
        return feed_text(self._feed_name, self._batch_size, self._slots, self._pipe_command, None, self._extra)

    # ---- beyond Fluid

    def set_bad_rows(self, policy: str, max_rows: int | None = None, file: str | None = None,
                     max_share: float | None = None) -> None:
        """Sets the policy for lines that do not match the slots.

        Args:
            policy (str): 'raise' fails the pass with file:line:column, slot and an excerpt; 'skip' drops such lines;
                'quarantine' writes them to ``file``, each after a line that describes the error. 'join' (the default)
                is 'raise' except for dense slots with more or fewer values than the shape of their variable: as in
                Fluid 1.8.5, the values of a batch are joined and divided into rows of that shape, what remains is
                dropped, and a warning names the first such line.
            max_rows (int, optional): maximum number of bad lines per pass; more are an error. Default: no limit.
            file (str, optional): file for 'quarantine'. A pass with bad lines replaces it.
            max_share (float, optional): maximum share of bad lines, from 0 to 1. More are an error at the end of the
                pass. Default: no limit.

        Raises:
            ValueError: the policy is unknown, 'quarantine' has no file, or a limit is out of range.

        Examples:
            >>> import anabranch.fluid as fluid
            >>> fluid.DatasetFactory().create_dataset().set_bad_rows("skip", max_rows=100)
        """
        if policy not in _POLICIES:
            raise InvalidValue("set_bad_rows: policy must be one of %s, got %r" % (", ".join(_POLICIES), policy))
        if policy == "quarantine" and not file:
            raise InvalidValue("set_bad_rows: file must be given for 'quarantine'")
        limit = -1 if max_rows is None else whole_number(max_rows, "set_bad_rows: max_rows", 0, 2 ** 63 - 1)
        if max_share is not None and not 0 <= max_share <= 1:
            raise InvalidValue("set_bad_rows: max_share must be from 0 to 1, got %r" % (max_share,))
        self._bad_rows = (policy, limit, _text(file or "", "set_bad_rows: file"))
        self._most_bad = max_share

    def set_share(self, begin: float, end: float, seed: int = 0, column: str | int | None = None) -> None:
        """Reads a share of the lines, chosen by their hash, so that two data sets can split the same files.

        Each line has a number from 0 to 1, the hash of its text. The data set reads the lines whose number is at least
        ``begin`` and below ``end``. The choice does not depend on the order of lines, files or threads, and equal lines
        are always together. Malformed lines of other shares are not counted.

        Args:
            begin (float): from 0 to 1.
            end (float): above ``begin``, at most 1. The shares (0, 0.8) and (0.8, 1) have no line in common, and all
                lines together.
            seed (int): at least 0; another seed gives another split. Default 0.
            column (str|int, optional): the text of this column is hashed instead of the whole line, so that all lines
                of a user, for example, are in the same share. Its name, or its number if the format has no header. The
                files must have columns. Default None.

        Raises:
            TypeError: a share is not a number.
            ValueError: the range is empty, or not in [0, 1].

        Examples:
            >>> import anabranch.fluid as fluid
            >>> train = fluid.DatasetFactory().create_dataset()
            >>> train.set_share(0, 0.8)
            >>> test = fluid.DatasetFactory().create_dataset()
            >>> test.set_share(0.8, 1)
        """
        for value, what in ((begin, "begin"), (end, "end")):
            if isinstance(value, bool) or not isinstance(value, numbers.Real):
                raise InvalidType("set_share: %s must be a number, got %s" % (what, type(value).__name__))
        if not 0 <= begin < end <= 1:
            raise InvalidValue("set_share: begin must be below end, and both from 0 to 1, got %g and %g" % (begin, end))
        if column is not None and (isinstance(column, bool) or not isinstance(column, (str, int)) or column == ""):
            raise InvalidType("set_share: column must be a name (str) or a number (int), got %r" % (column,))
        share = float(begin), float(end), whole_number(seed, "set_share: seed", 0, 2 ** 63 - 1)
        self._share = share if column is None else (*share, str(column))

    def set_shuffle_seed(self, seed: int) -> None:
        """Sets the seed of all shuffles. It determines, with the number of shuffles, the order of a pass. Default 0.

        Args:
            seed (int): at least 0.
        """
        self._seed = whole_number(seed, "set_shuffle_seed: seed", 0, 2 ** 63 - 1)

    def set_command_limits(self, silence_s: float = 600.0, total_s: float = 0.0) -> None:
        """Sets time limits after which pipe commands are killed.

        Args:
            silence_s (float): seconds without reads and writes of a command; 0 means no limit. Default 600.
            total_s (float): running time of a command in seconds; 0 means no limit. Default 0.

        Raises:
            ValueError: a limit is below 0.
        """
        if silence_s < 0 or total_s < 0:
            raise InvalidValue("set_command_limits: seconds must be at least 0, got %s and %s" % (silence_s, total_s))
        self._limits = (float(silence_s), float(total_s))

    def set_cache(self, folder: str) -> None:
        """Caches parsed files in a folder, and reads them from there as long as files and settings do not change.

        Args:
            folder (str): folder, created when needed; '' disables the cache.
        """
        self._cache = _text(folder, "set_cache: folder")

    def set_format(self, text: str | Schema) -> None:
        """Sets the format of lines: tab- or comma-separated columns, or libsvm, instead of MultiSlot text.

        With a format, each pass over files ends with a line on stderr: rows, bad lines and missing values.

        Args:
            text (str|Schema): an ``anabranch.Schema``, whose features have the names of the variables, as it is at the
                time of this call; or the text of a format, with one line per slot. '' means MultiSlot text.

        Raises:
            TypeError: ``text`` is neither a str nor a Schema.
        """
        made = getattr(text, "to_json", None)
        self._format = made() if callable(made) else _text(text, "set_format: text")

    def set_drop_last(self, drop_last: bool) -> None:
        """Sets whether to drop a last batch with fewer samples.

        Args:
            drop_last (bool): whether to drop it. A new data set has False.
        """
        self._drop_last = bool(drop_last)

    @property
    def dataset(self) -> CoreDataset:
        """CoreDataset: this data set with the methods of Fluid's ``core.Dataset``."""
        from .dataset_handle import CoreDataset
        return CoreDataset(self)


arguments.explain(globals())
