"""InMemoryDataset: records that are loaded once and shuffled for every pass."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import _cluster
from .. import arguments
from ..errors import InvalidType, NotAllowed, Unsupported
from .dataset_base import DatasetBase, whole_number


def _page_views(what):
    raise Unsupported("%s: page views (merging of instances by search id) are not supported" % what)


def _of_all(fleet, count):
    """The count of this worker, or the sum over all workers of a fleet."""
    if fleet is None or fleet.worker_num() == 1:
        return count
    return sum(_cluster.all_gather(fleet._role_maker, count))


class InMemoryDataset(DatasetBase):
    """A data set in memory. Created by ``DatasetFactory().create_dataset("InMemoryDataset")``.

    As in Fluid, zeros in lists of ids are dropped; a list that would be empty keeps one zero.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> with open("part-0", "w") as part:
        ...     _ = part.write("1 0 2 7 8\\n1 1 1 9\\n")
        >>> label = fluid.data("label", [None, 1], "int64")
        >>> words = fluid.data("words", [None, 1], "int64", lod_level=1)
        >>> dataset = fluid.DatasetFactory().create_dataset("InMemoryDataset")
        >>> dataset.set_use_var([label, words])
        >>> dataset.set_filelist(["part-0"])
        >>> dataset.load_into_memory()
        >>> dataset.local_shuffle()
        >>> dataset.get_memory_data_size()
        2
        >>> dataset.release_memory()
    """

    _feed_name = "MultiSlotInMemoryDataFeed"
    _in_memory = True

    def __init__(self) -> None:
        super().__init__()
        self._fea_eval: Any = None
        self._merge_size: int | None = None
        self._merged = self._shuffled = self._exchanged = False
        self._settings_of_load: Any = None

    def load_into_memory(self) -> None:
        """Reads and parses all files with the number of threads that was set. Replaces the loaded records.

        Raises:
            RuntimeError: there are no slots, or a file or pipe command fails.
            ValueError: a line does not match the slots.
            LookupError: a file does not exist.
        """
        self._settings_of_load = self._settings_of_memory()
        self._warn_of_format()
        self._dataset().load()
        self._loaded()

    def preload_into_memory(self, thread_num: int | None = None) -> None:
        """Starts loading in the background; :meth:`wait_preload_done` waits for the end.

        Args:
            thread_num (int, optional): number of reading threads. Default: the number that was set.

        Raises:
            ValueError: loading has already started.
        """
        threads = 0 if thread_num is None else whole_number(thread_num, "preload_into_memory: thread_num", 1)
        self._dataset().preload(threads)
        self._settings_of_load, self._loaded_settings = self._settings_of_memory(), None

    def wait_preload_done(self) -> None:
        """Waits for :meth:`preload_into_memory`, and raises its errors, which are those of :meth:`load_into_memory`."""
        if self._core is None:
            raise NotAllowed("wait_preload_done: call preload_into_memory first")
        self._core.wait_preload()
        self._loaded()

    def _loaded(self):
        self._fresh()
        self._loaded_settings = self._settings_of_load
        self._end_pass("load_into_memory", self._core.load_statistics(), self._core.load_uneven())

    def _fresh(self):
        self._merged = self._shuffled = False

    def release_memory(self) -> None:
        """Frees the records. Load again before the next pass."""
        if self._core is not None:
            self._core.release()
        self._stream = self._loaded_settings = None
        self._fresh()

    def local_shuffle(self) -> None:
        """Shuffles the records. The order depends on the seed and the number of shuffles.

        Raises:
            ValueError: nothing is loaded.
        """
        core = self._dataset()
        if self._merge_size is not None and not self._merged:
            core.merge_by_ins_id(self._merge_size)
            self._merged = True
        core.local_shuffle()
        self._shuffled = True

    def global_shuffle(self, fleet: Any = None, thread_num: int = 12) -> None:
        """Shuffles over all workers: each distributes its records over all, and shuffles those that it receives. With
        one worker this is :meth:`local_shuffle`.

        Args:
            fleet (Fleet, optional): fleet of the workers, which all call this and know each other's addresses
                (``PADDLE_TRAINER_ENDPOINTS``). Default None, a single worker.
            thread_num (int): ignored. Default 12.

        Raises:
            ValueError: nothing is loaded, or a worker's address is unknown.
            RuntimeError: a worker is lost.
        """
        self.local_shuffle()
        if fleet is not None and fleet.worker_num() > 1:
            _cluster.exchange_records(fleet._role_maker, self._dataset())
            self.local_shuffle()
            self._exchanged = True

    def get_memory_data_size(self, fleet: Any = None) -> int:
        """Number of records in memory.

        Args:
            fleet (Fleet, optional): fleet of workers whose records are counted, too; all call this. Default None.

        Returns:
            int: records.
        """
        return _of_all(fleet, self._core.records() if self._core is not None else 0)

    def get_shuffle_data_size(self, fleet: Any = None) -> int:
        """Number of records after the last shuffle; 0 before it.

        Args:
            fleet (Fleet, optional): fleet of workers whose records are counted, too; all call this. Default None.

        Returns:
            int: records.
        """
        return _of_all(fleet, self.get_memory_data_size() if self._shuffled else 0)

    def slots_shuffle(self, slots: Sequence[str]) -> None:
        """Permutes some sparse slots over the records, each slot independently, to measure how much a model depends on
        them. Every call starts from the records as loaded.

        Args:
            slots (list of str): names.

        Raises:
            RuntimeError: :meth:`set_fea_eval` was not called.
            LookupError: there is no such slot.
            ValueError: a slot is dense.
        """
        if self._fea_eval is None:
            raise NotAllowed("slots_shuffle: call set_fea_eval first")
        if not isinstance(slots, (list, tuple, set)):
            raise InvalidType("slots_shuffle: slots must be a list of names, got %s" % type(slots).__name__)
        if self._fea_eval:
            self._dataset().slots_shuffle(sorted(slots))

    def statistics(self) -> Any:
        """Statistics of the current or last pass, or, before the first pass, of loading."""
        if self._stream is None and self._core is not None:
            return self._core.load_statistics()
        return super().statistics()

    def memory_bytes(self) -> int:
        """Memory of the records in bytes.

        Returns:
            int: bytes.
        """
        return self._core.memory_bytes() if self._core is not None else 0

    # ---- settings

    def set_parse_ins_id(self, parse_ins_id: bool) -> None:
        """Sets whether a line starts with "1 <id of the instance>".

        Args:
            parse_ins_id (bool): the setting. A new data set has False.
        """
        self.parse_ins_id = bool(parse_ins_id)

    def set_parse_content(self, parse_content: bool) -> None:
        """Sets whether "1 <text>" precedes the slots (after the id of the instance).

        Args:
            parse_content (bool): the setting. A new data set has False.
        """
        self.parse_content = bool(parse_content)

    def set_merge_by_lineid(self, merge_size: int = 2) -> None:
        """Makes the next shuffle merge the records of one instance id: it concatenates lists, and takes dense slots
        from the first record. Lines must have ids.

        Args:
            merge_size (int): ids with a different number of records are dropped; 0 keeps all. Default 2.
        """
        self._merge_size = whole_number(merge_size, "set_merge_by_lineid: merge_size", 0)
        self.parse_ins_id = True

    def set_queue_num(self, queue_num: int) -> None:
        """Ignored, as there is one queue.

        Args:
            queue_num (int): a number.
        """
        whole_number(queue_num, "set_queue_num: queue_num")

    def set_fleet_send_batch_size(self, fleet_send_batch_size: int = 1024) -> None:
        """Ignored: records are not sent in batches.

        Args:
            fleet_send_batch_size (int): ignored. Default 1024.
        """
        whole_number(fleet_send_batch_size, "set_fleet_send_batch_size: fleet_send_batch_size")

    def set_fleet_send_sleep_seconds(self, fleet_send_sleep_seconds: int = 0) -> None:
        """Ignored: records are not sent in batches.

        Args:
            fleet_send_sleep_seconds (int): ignored. Default 0.
        """
        whole_number(fleet_send_sleep_seconds, "set_fleet_send_sleep_seconds: fleet_send_sleep_seconds")

    def set_feed_type(self, data_feed_type: str) -> None:
        """Sets the name of the reader.

        Args:
            data_feed_type (str): 'MultiSlotInMemoryDataFeed'.

        Raises:
            NotImplementedError: the name is not 'MultiSlotInMemoryDataFeed'.
        """
        if data_feed_type != self._feed_name:
            raise Unsupported("set_feed_type: %r is not supported" % (data_feed_type,))

    def set_parse_logkey(self, parse_logkey: Any) -> None:
        """Raises NotImplementedError unless it is False: page views are not supported."""
        if parse_logkey:
            _page_views("set_parse_logkey")

    def set_merge_by_sid(self, merge_by_sid: Any) -> None:
        """Ignored: it only matters with :meth:`set_parse_logkey`."""

    def set_enable_pv_merge(self, enable_pv_merge: Any) -> None:
        """Raises NotImplementedError unless it is False: page views are not supported."""
        if enable_pv_merge:
            _page_views("set_enable_pv_merge")

    def set_current_phase(self, current_phase: Any) -> None:
        """Raises NotImplementedError: page views are not supported."""
        _page_views("set_current_phase")

    def preprocess_instance(self) -> None:
        """Raises NotImplementedError: page views are not supported."""
        _page_views("preprocess_instance")

    def postprocess_instance(self) -> None:
        """Raises NotImplementedError: page views are not supported."""
        _page_views("postprocess_instance")

    def get_pv_data_size(self) -> Any:
        """Number of page views in memory, which is always 0."""
        return 0

    def set_generate_unique_feasigns(self, generate_uni_feasigns: Any, shard_num: Any) -> None:
        """Raises NotImplementedError unless it is False: tables of unique ids on servers are not supported."""
        if generate_uni_feasigns:
            raise Unsupported("set_generate_unique_feasigns is not supported")

    def generate_local_tables_unlock(self, table_id: Any, fea_dim: Any, read_thread_num: Any, consume_thread_num: Any,
                                     shard_num: Any) -> Any:
        """Raises NotImplementedError: tables of unique ids on servers are not supported."""
        raise Unsupported("generate_local_tables_unlock is not supported")


arguments.explain(globals())
