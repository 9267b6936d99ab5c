"""File systems, with the names of ``paddle.distributed.fs_wrapper``."""
from __future__ import annotations

import abc
import os
from collections.abc import Callable
from typing import Any

from ..fluid.errors import InvalidValue
from ..fluid.file_systems import Files, HadoopFiles, LocalFiles


class FS(abc.ABC):
    """File system interface that checkpoints need."""

    _files: Files

    @abc.abstractmethod
    def need_upload_download(self) -> bool:
        """bool: whether files must be copied between this machine and the file system."""

    def list_dirs(self, fs_path: str) -> list[str]:
        """list of str: names of the folders in a folder."""
        return [e.path.rstrip("/").rsplit("/", 1)[-1] for e in self._files.entries(fs_path) if e.is_dir]

    def ls_dir(self, fs_path: str) -> list[str]:
        """list of str: names of the contents of a folder."""
        return [e.path.rstrip("/").rsplit("/", 1)[-1] for e in self._files.entries(fs_path)]

    def stat(self, fs_path: str) -> bool:
        """bool: whether the file or folder exists."""
        return self._files.exists(fs_path)

    def is_dir(self, fs_path: str) -> bool:
        """bool: whether the folder exists."""
        return self._files.is_dir(fs_path)

    def mkdir(self, fs_path: str) -> None:
        """Creates a folder and its parent folders."""
        self._files.make_dirs(fs_path)

    def mv(self, fs_src_path: str, fs_dst_path: str) -> None:
        """Renames a file or folder."""
        self._files.move(fs_src_path, fs_dst_path)

    def delete(self, fs_path: str) -> None:
        """Deletes a file or folder; has no effect if it does not exist."""
        self._files.delete(fs_path)

    rm: Callable[[Any, str], None] = delete
    rmr: Callable[[Any, str], None] = delete

    def upload(self, local_path: str, fs_path: str) -> None:
        """Copies a file or folder of this machine to the file system."""
        self._files.put(local_path, fs_path)

    def download(self, fs_path: str, local_path: str) -> None:
        """Copies a file or folder of the file system to this machine."""
        self._files.get(fs_path, local_path)


class LocalFS(FS):
    """Folders of this machine.

    >>> fs = LocalFS()
    >>> fs.mkdir("a/b")
    >>> fs.list_dirs("a"), fs.stat("a/c")
    (['b'], False)
    """

    def __init__(self) -> None:
        self._files = LocalFiles()

    def need_upload_download(self) -> bool:
        """bool: False."""
        return False


class BDFS(FS):
    """Folders of Hadoop.

    Args:
        hdfs_name (str): address of the name node.
        hdfs_ugi (str): user and password, "name,password".
        time_out (int): no effect. Default 1200000.
        sleep_inter (int): no effect. Default 1000.

    Raises:
        ValueError: the environment variable HADOOP_HOME, which names the folder of Hadoop, is not set.
    """

    def __init__(self, hdfs_name: str, hdfs_ugi: str, time_out: int = 20 * 60 * 1000, sleep_inter: int = 1000) -> None:
        hadoop = os.environ.get("HADOOP_HOME")
        if not hadoop:
            raise InvalidValue("BDFS: the environment variable HADOOP_HOME is not set")
        self._files = HadoopFiles(hadoop, {"fs.default.name": hdfs_name, "hadoop.job.ugi": hdfs_ugi})

    def need_upload_download(self) -> bool:
        """bool: True."""
        return True
