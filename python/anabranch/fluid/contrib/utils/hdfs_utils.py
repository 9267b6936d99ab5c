"""HDFSClient: files in Hadoop or, if no Hadoop is configured, on this machine."""
from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ... import arguments
from ...errors import InvalidValue, Unavailable
from ...file_systems import files_of, tried

__all__ = ["HDFSClient", "multi_download", "multi_upload"]

_RETRIES = 5


class HDFSClient:
    """Accesses files in Hadoop through the ``hadoop`` command, or local files if Hadoop is not configured.

    Args:
        hadoop_home (str, optional): folder of Hadoop; the command is ``hadoop_home/bin/hadoop``. If empty, the files
            are on this machine.
        configs (dict, optional): settings such as ``{"fs.default.name": "hdfs://...", "hadoop.job.ugi": "a,b"}``.

    Raises:
        TypeError: ``configs`` is not a dict.
        RuntimeError, in any call: the command is missing, or did not finish.

    Examples:
        >>> import os
        >>> from anabranch.fluid.contrib.utils import HDFSClient
        >>> client = HDFSClient()
        >>> client.makedirs("data")
        True
        >>> client.is_dir("data"), client.ls("data")
        (True, [])
    """

    def __init__(self, hadoop_home: str | None = None, configs: Mapping[str, str] | None = None) -> None:
        self._files = files_of(hadoop_home, configs)
        self.pre_commands = list(getattr(self._files, "command", []))

    # ---- questions

    def is_exist(self, hdfs_path: Any = None) -> bool:
        """bool: whether the file or folder exists."""
        return self._files.exists(hdfs_path)

    def is_dir(self, hdfs_path: Any = None) -> bool:
        """bool: whether the folder exists."""
        return self._files.is_dir(hdfs_path)

    def ls(self, hdfs_path: str) -> list[str]:
        """list of str: the contents of a folder; empty if it does not exist."""
        return [entry.path for entry in self._files.entries(hdfs_path)]

    def lsr(self, hdfs_path: str, only_file: bool = True, sort: bool = True) -> list[str]:
        """Lists the files of a folder and its subfolders.

        Args:
            hdfs_path (str): folder.
            only_file (bool): omits folders. Default True.
            sort (bool): sorts by the time of the last change. Default True.

        Returns:
            list of str: paths.
        """
        found = [e for e in self._files.entries(hdfs_path, deep=True) if not (only_file and e.is_dir)]
        return [e.path for e in (sorted(found, key=lambda e: e.time) if sort else found)]

    # ---- changes

    def upload(self, hdfs_path: str, local_path: str, overwrite: bool = False, retry_times: int = _RETRIES) -> bool:
        """Copies a local file or folder.

        Args:
            hdfs_path (str): target path.
            local_path (str): local file or folder to copy.
            overwrite (bool): deletes an existing file or folder first. Default False.
            retry_times (int): attempts. Default 5.

        Returns:
            bool: whether the copy exists.

        Raises:
            ValueError: the local file or folder does not exist.
        """
        if not os.path.exists(local_path):
            raise InvalidValue("HDFSClient.upload: there is no %s" % local_path)
        if overwrite:
            self._files.delete(hdfs_path)
        return tried(lambda: self._files.put(local_path, hdfs_path), retry_times)

    def download(self, hdfs_path: str, local_path: str, overwrite: bool = False, unzip: bool = False) -> bool:
        """Copies a file or folder to a local path.

        Args:
            hdfs_path (str): file or folder to copy.
            local_path (str): target path.
            overwrite (bool): deletes an existing file or folder first. Default False.
            unzip (bool): whether to unpack a zip file into its folder. Default False.

        Returns:
            bool: whether the copy exists.
        """
        if overwrite:
            files_of(None, None).delete(local_path)
        if not tried(lambda: self._files.get(hdfs_path, local_path), _RETRIES):
            return False
        packed = local_path
        if os.path.isdir(local_path):
            packed = os.path.join(local_path, os.path.basename(hdfs_path))
        if unzip and zipfile.is_zipfile(packed):
            with zipfile.ZipFile(packed) as archive:
                archive.extractall(os.path.dirname(os.path.abspath(packed)))
        return True

    def delete(self, hdfs_path: str) -> bool:
        """bool: whether the file or folder is gone."""
        return tried(lambda: self._files.delete(hdfs_path), _RETRIES)

    def rename(self, hdfs_src_path: str, hdfs_dst_path: str, overwrite: bool = False) -> bool:
        """bool: whether the file or folder was renamed; ``overwrite`` deletes an existing target first."""
        if not self._files.exists(hdfs_src_path):
            return False
        if overwrite:
            self._files.delete(hdfs_dst_path)
        elif self._files.exists(hdfs_dst_path):
            return False
        return tried(lambda: self._files.move(hdfs_src_path, hdfs_dst_path), _RETRIES)

    def makedirs(self, hdfs_path: str) -> bool:
        """bool: whether the folder and its parent folders exist now."""
        return tried(lambda: self._files.make_dirs(hdfs_path), _RETRIES)

    @staticmethod
    def make_local_dirs(local_path: str) -> None:
        """Creates a folder on this machine; has no effect if it exists."""
        os.makedirs(local_path, exist_ok=True)


def multi_download(client: HDFSClient, hdfs_path: str, local_path: str, trainer_id: int, trainers: int,
                   multi_processes: int = 5) -> list[str]:
    """Copies this trainer's share of the files of a folder to this machine: every ``trainers``-th, from ``trainer_id``.

    Args:
        client (HDFSClient): source of the files.
        hdfs_path (str): folder.
        local_path (str): folder on this machine. The subfolders are the same as in ``hdfs_path``.
        trainer_id (int): number of this trainer.
        trainers (int): number of workers.
        multi_processes (int): copies at a time. Default 5.

    Returns:
        list of str: the local copies.

    Raises:
        ValueError: ``trainer_id`` is negative, or not less than ``trainers``.
        RuntimeError: a file could not be copied.
    """
    if not 0 <= trainer_id < trainers:
        raise InvalidValue("multi_download: trainer_id must be from 0 to %d, got %d" % (trainers - 1, trainer_id))
    mine = sorted(client.lsr(hdfs_path, sort=False))[trainer_id::trainers]
    pairs = [(path, os.path.join(local_path, os.path.relpath(path, hdfs_path))) for path in mine]

    def copy(pair: tuple[str, str]) -> bool:
        client.make_local_dirs(os.path.dirname(pair[1]))
        return client.download(pair[0], pair[1])
    _all_of("multi_download", copy, pairs, multi_processes)
    return [local for _, local in pairs]


def multi_upload(client: HDFSClient, hdfs_path: str, local_path: str, multi_processes: int = 5,
                 overwrite: bool = False, sync: bool = True) -> None:
    """Copies all files of a local folder.

    Args:
        client (HDFSClient): target of the upload.
        hdfs_path (str): target folder. The subfolders are the same as in ``local_path``.
        local_path (str): local folder.
        multi_processes (int): copies at a time. Default 5.
        overwrite (bool): deletes existing files first. Default False.
        sync (bool): accepted; the call always returns when all is done.

    Raises:
        RuntimeError: a file could not be copied.
    """
    pairs = [(path, os.path.join(hdfs_path, os.path.relpath(path, local_path))) for path in getfilelist(local_path)]

    def copy(pair: tuple[str, str]) -> bool:
        client.makedirs(os.path.dirname(pair[1]))
        return client.upload(pair[1], pair[0], overwrite)
    _all_of("multi_upload", copy, pairs, multi_processes)


def getfilelist(path: str) -> list[str]:
    """list of str: all files in a local folder and in its subfolders."""
    return sorted(os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names)


def _all_of(what: str, copy: Any, pairs: Sequence[tuple[str, str]], at_a_time: int) -> None:
    with ThreadPoolExecutor(max(1, at_a_time)) as pool:
        failed = [pair[0] for pair, done in zip(pairs, pool.map(copy, pairs)) if not done]
    if failed:
        raise Unavailable("%s: could not copy %s" % (what, ", ".join(failed)))


arguments.explain(globals())
