"""``dataset.dataset``: a data set with the method names of Fluid's ``core.Dataset``."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..errors import NotAllowed, NotOffered

#: Methods of the data set with the same name and arguments.
_SAME = frozenset((
    "generate_local_tables_unlock", "get_memory_data_size", "get_pv_data_size", "get_shuffle_data_size",
    "load_into_memory", "local_shuffle", "postprocess_instance", "preload_into_memory", "preprocess_instance",
    "release_memory", "set_current_phase", "set_download_cmd", "set_enable_pv_merge", "set_filelist",
    "set_fleet_send_batch_size", "set_fleet_send_sleep_seconds", "set_hdfs_config", "set_merge_by_lineid",
    "set_merge_by_sid", "set_parse_content", "set_parse_ins_id", "set_parse_logkey", "set_queue_num",
    "wait_preload_done"))

#: Methods without effect: readers and queues are made when a pass starts, and records are merged by local_shuffle.
_NOTHING = frozenset((
    "create_channel", "create_preload_readers", "create_readers", "destroy_preload_readers", "destroy_readers",
    "dynamic_adjust_channel_num", "dynamic_adjust_readers_num", "merge_by_lineid",
    "register_client2client_msg_handler", "set_preload_thread_num", "set_trainer_num"))


def _nothing(*args: Any) -> None:
    """Does nothing."""


class CoreDataset:
    """The methods of Fluid's ``core.Dataset``, which act on a data set.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> dataset = fluid.DatasetFactory().create_dataset()
        >>> dataset.dataset.set_filelist(["part-0"])
        >>> dataset.filelist, dataset.dataset.get_thread_num()
        (['part-0'], 1)
    """

    def __init__(self, of: Any) -> None:
        self._of = of

    def __getattr__(self, name: str) -> Any:
        if name in _NOTHING:
            return _nothing
        if name not in _SAME:
            raise AttributeError("the dataset has no attribute %s" % name)
        if not hasattr(self._of, name):
            raise NotOffered("%s does not support %s: use InMemoryDataset" % (type(self._of).__name__, name))
        return getattr(self._of, name)

    def set_thread_num(self, thread_num: int) -> None:
        """Sets the number of reading threads."""
        self._of.set_thread(thread_num)

    def set_fea_eval(self, fea_eval: bool, record_candidate_size: int) -> None:
        """Allows :meth:`slots_shuffle`."""
        self._of.set_fea_eval(record_candidate_size, fea_eval)

    def slots_shuffle(self, slots: Iterable[str]) -> None:
        """Shuffles the values of slots over the records."""
        self._of.slots_shuffle(sorted(slots))

    def global_shuffle(self, thread_num: int = 12) -> None:
        """Shuffles the records of this worker; with a fleet, use ``global_shuffle`` of the data set."""
        self._of.global_shuffle()

    def set_data_feed_desc(self, desc: str) -> None:
        """Does nothing if ``desc`` equals ``desc()`` of the data set, and refuses any other description.

        Raises:
            RuntimeError: the description differs: use ``set_use_var`` and the other settings instead.
        """
        if desc != self._of.desc():
            raise NotAllowed("set_data_feed_desc: the description must be that of the data set: set slots with "
                             "set_use_var, and other values with the other settings")

    def set_generate_unique_feasigns(self, generate_uni_feasigns: bool) -> None:
        """Raises NotImplementedError unless ``generate_uni_feasigns`` is False."""
        self._of.set_generate_unique_feasigns(generate_uni_feasigns, 1)

    def get_data_feed_desc(self) -> str:
        """str: the settings as protobuf text."""
        return self._of.desc()

    def get_filelist(self) -> Sequence[str]:
        """list of str: the files."""
        return list(self._of.filelist)

    def get_thread_num(self) -> int:
        """int: the number of reading threads."""
        return self._of.thread_num

    def get_hdfs_config(self) -> tuple[str, str]:
        """tuple of str: the values of ``set_hdfs_config``."""
        return self._of._hdfs_config

    def get_download_cmd(self) -> str:
        """str: empty, as no command is supported."""
        return ""

    def get_trainer_num(self) -> int:
        """int: 1; ``global_shuffle`` of the data set takes the number from the fleet."""
        return 1

    def get_fleet_send_batch_size(self) -> int:
        """int: 1024, Fluid's default; records are not sent in batches."""
        return 1024
