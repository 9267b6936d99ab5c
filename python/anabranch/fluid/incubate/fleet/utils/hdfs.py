"""HDFSClient of fleets, which extends that of ``contrib``."""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from ....contrib.utils import hdfs_utils
from ....errors import InvalidValue

__all__ = ["HDFSClient"]


class HDFSClient(hdfs_utils.HDFSClient):
    """Client of Hadoop files, by Hadoop's command, or of local files if there is no Hadoop.

    Args:
        hadoop_home (str, optional): folder of Hadoop. Empty: this machine.
        configs (dict, optional): settings of Hadoop.

    Examples:
        >>> client = HDFSClient()
        >>> open("words.txt", "w").write("a b") and None
        >>> client.is_file("words.txt"), client.cat("words.txt")
        (True, 'a b')
    """

    def __init__(self, hadoop_home: str | None = None, configs: Mapping[str, str] | None = None) -> None:
        super().__init__(hadoop_home, configs)

    def is_file(self, hdfs_path: Any = None) -> bool:
        """bool: whether the file exists."""
        return self.is_exist(hdfs_path) and not self.is_dir(hdfs_path)

    def cat(self, hdfs_path: Any = None) -> str:
        """str: the text of a file; empty if it does not exist."""
        return self._files.read(hdfs_path).rstrip("\n") if self.is_file(hdfs_path) else ""

    def lsr(self, hdfs_path: str, excludes: Sequence[str] = ()) -> list[str]:  # type: ignore[override]
        """list of str: files of a folder and its subfolders, without those in ``excludes``."""
        return [path for path in super().lsr(hdfs_path) if not any(part in path for part in excludes)]

    def download(self, hdfs_path: str, local_path: str, multi_processes: int = 5,  # type: ignore[override]
                 overwrite: bool = False, retry_times: int = 5) -> bool:
        """bool: whether the copy of a file or folder exists on this machine; see ``contrib.HDFSClient.download``."""
        return super().download(hdfs_path, local_path, overwrite)

    def upload(self, hdfs_path: str, local_path: str, multi_processes: int = 5,  # type: ignore[override]
               overwrite: bool = False, retry_times: int = 5) -> bool:
        """bool: whether the copy of a file or folder exists in Hadoop; see ``contrib.HDFSClient.upload``."""
        return super().upload(hdfs_path, local_path, overwrite, retry_times)

    def upload_dir(self, dest_dir: str, local_dir: str, overwrite: bool = False) -> bool:
        """bool: whether a folder is in ``dest_dir`` now."""
        local_dir = local_dir.rstrip("/")
        target = os.path.join(dest_dir, os.path.basename(local_dir))
        if self.is_exist(target) and not overwrite:
            return False
        return self.makedirs(dest_dir) and self.upload(target, local_dir, overwrite=overwrite)

    @staticmethod
    def split_files(files: list[str], trainer_id: int, trainers: int) -> list[str]:
        """list of str: this worker's share, a contiguous range. If the files cannot be divided equally, the first
        workers get one more.

        Raises:
            ValueError: ``trainer_id`` is not below ``trainers``.
        """
        if not 0 <= trainer_id < trainers:
            raise InvalidValue("split_files: trainer_id must be from 0 to %d, got %d" % (trainers - 1, trainer_id))
        each, more = divmod(len(files), trainers)
        begin = trainer_id * each + min(trainer_id, more)
        return files[begin:begin + each + (trainer_id < more)]
