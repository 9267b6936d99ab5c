"""A queue of files from which workers take one at a time."""
from __future__ import annotations

from typing import Any

from ..... import _cluster
from ....errors import InvalidType, InvalidValue, Unsupported

_LONGEST = 4096                    # bytes of a path
_LONGEST_NAME = 200                # of a queue; the number of the pass is appended


class FileQueue:
    """The queue that ``fleet.file_queue`` creates and documents.

    Args:
        role (RoleMakerBase): role of this process.
        files (list of str): paths.
        name (str): name of the queue, the same in all workers.

    Raises:
        TypeError, ValueError, NotImplementedError: as for ``fleet.file_queue``.
    """

    def __init__(self, role: Any, files: list[str], name: str) -> None:
        if not isinstance(files, list) or not all(isinstance(path, str) for path in files):
            raise InvalidType("fleet.file_queue: files must be a list of paths (str), got %r" % (files,))
        for path in files:
            if not path or "\0" in path or len(path.encode()) > _LONGEST:
                raise InvalidValue("fleet.file_queue: a path must have from 1 to %d bytes and no zero byte, got %.100r"
                                   % (_LONGEST, path))
        if not isinstance(name, str):
            raise InvalidType("fleet.file_queue: name must be a str, got %s" % type(name).__name__)
        if not name or len(name.encode()) > _LONGEST_NAME:
            raise InvalidValue("fleet.file_queue: name must have from 1 to %d bytes, got %.99r" % (_LONGEST_NAME, name))
        if not role.get_pserver_endpoints():
            raise Unsupported("fleet.file_queue is not supported without servers, where all workers must take the same "
                              "number of steps: use fleet.split_files")
        self._role, self.files, self.name = role, list(files), name
        self._passes = 0

    def _pass(self) -> _cluster.FilesOfPass:
        """The files of the next pass. A pass that fails is not complete: the next call continues it."""
        return _cluster.FilesOfPass(self._role, "%s/%d" % (self.name, self._passes), self.files)

    def _passed(self) -> None:
        self._passes += 1
