"""A run has its folder for itself: another process would delete what this one is writing."""
from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator

from ..fluid.errors import NotAllowed

_held: dict[tuple[int, int], list[int]] = {}    # (device, inode) of a folder -> its descriptor, number of runs


@contextlib.contextmanager
def in_use(folder: str) -> Iterator[None]:
    """Holds the lock of a folder, which is created if missing. The runs of one process share it. The system releases it
    when the process ends, even if it is killed.

    Args:
        folder (str): folder of a run.

    Raises:
        RuntimeError: another process holds it.
    """
    os.makedirs(folder, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    info = os.fstat(handle)
    held = _held.get((info.st_dev, info.st_ino))
    if held is not None:
        os.close(handle)
    else:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            raise NotAllowed("Checkpoints: another process has a run in the folder %s, and would delete its "
                             "checkpoints: wait until it has ended, or give this run another folder" % folder) from None
        except OSError:     # a file system without locks
            pass
        held = _held[info.st_dev, info.st_ino] = [handle, 0]
    held[1] += 1
    try:
        yield
    finally:
        held[1] -= 1
        if held[1] == 0:
            del _held[info.st_dev, info.st_ino]
            os.close(held[0])
