"""Settings of a data set for files that are not local."""
from __future__ import annotations

from collections.abc import Sequence

from ..errors import InvalidType, Unsupported

#: Beginnings of the paths that Fluid 1.8.5 gives to the hadoop command.
_HADOOP = ("hdfs:", "afs:")


class RemoteFiles:
    """Part of a data set: its settings for Hadoop, and methods that executors of Fluid call."""

    filelist: list[str]
    _hdfs_config = ("", "")

    def set_hdfs_config(self, fs_name: str, fs_ugi: str) -> None:
        """Sets the address and account of a Hadoop file system. It has no effect on local files.

        Args:
            fs_name (str): address. A pass over files that begin with ``hdfs:`` or ``afs:`` raises NotImplementedError.
            fs_ugi (str): account.

        Raises:
            TypeError: an argument is not a str.

        Examples:
            >>> import anabranch.fluid as fluid
            >>> dataset = fluid.DatasetFactory().create_dataset()
            >>> dataset.set_hdfs_config("hdfs://my.cluster:9000", "user,password")
            >>> dataset.dataset.get_hdfs_config()
            ('hdfs://my.cluster:9000', 'user,password')
        """
        for name, value in (("fs_name", fs_name), ("fs_ugi", fs_ugi)):
            if not isinstance(value, str):
                raise InvalidType("set_hdfs_config: %s must be a str, got %r" % (name, value))
        self._hdfs_config = (fs_name, fs_ugi)

    def set_download_cmd(self, download_cmd: str) -> None:
        """Raises NotImplementedError unless the command is empty: use the pipe command to fetch files.

        Args:
            download_cmd (str): an empty command is accepted.

        Raises:
            NotImplementedError: the command is not empty.
        """
        if download_cmd:
            raise Unsupported("set_download_cmd is not supported: let the command of set_pipe_command fetch the data")

    def _local_files(self, files: Sequence[str] | None = None) -> list[str]:
        """The files of a pass. Default: all."""
        files = self.filelist if files is None else files
        for path in files:
            if path.startswith(_HADOOP):
                raise Unsupported("the data set cannot read %s from a Hadoop file system: copy the files with "
                                  "fluid.incubate.fleet.utils.hdfs.HDFSClient, or let the command of set_pipe_command "
                                  "fetch the file that its stdin names" % path)
        return list(files)

    def _prepare_to_run(self) -> None:
        """Does nothing: readers are made when a pass starts."""

    _finish_to_run = _dynamic_adjust_after_train = _prepare_to_run

    def _dynamic_adjust_before_train(self, thread_num: int) -> None:
        """Does nothing: the number of readers is that of the pass."""
