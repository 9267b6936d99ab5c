"""Checkpoints of fleets: numbered folders, each complete or absent."""
from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from typing import Any

from .....distributed.fs_wrapper import FS, LocalFS
from ....errors import InvalidType, InvalidValue, Violated

_PREFIX = "__paddle_fleet_checkpoint__"
VALUES = "_paddle_fleet_param__"
_STATUS = "fleet_train_status"


class TrainStatus:
    """Progress of a training job.

    Args:
        epoch_no (int): last complete epoch. Default -1, none.
        steps (int): number of batches of the next epoch that this worker has also trained on. Default 0.

    Examples:
        >>> TrainStatus(3).next(), TrainStatus(3) == TrainStatus(3)
        (4, True)
    """

    def __init__(self, epoch_no: int = -1, steps: int = 0) -> None:
        self._epoch_no, self.steps = epoch_no, steps

    def next(self) -> int:
        """int: the epoch with which to continue."""
        return self._epoch_no + 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TrainStatus) and (self._epoch_no, self.steps) == (other._epoch_no, other.steps)

    __hash__ = None  # type: ignore[assignment]  # it changes


def _number(name: str) -> int:
    """The number of a checkpoint's folder; -1 for other names."""
    head, _, text = name.partition(".")
    return int(text) if head == _PREFIX and text.isdigit() else -1


def check_arguments(path: Any, train_status: Any) -> None:
    """Raises TypeError unless the status is a TrainStatus, ValueError for an empty path."""
    if not isinstance(train_status, TrainStatus):
        raise InvalidType("save_check_point: train_status must be a TrainStatus, got %s" % type(train_status).__name__)
    if not path:
        raise InvalidValue("save_check_point: path must not be empty")


class CheckpointFolders:
    """Numbered folders with values and a status."""

    def _get_last_checkpoint_no(self, root_path: str, fs: FS) -> int:
        return max([_number(name) for name in fs.list_dirs(root_path)] + [-1])

    def _last_folder(self, path: str, fs: FS) -> str | None:
        """str: the last complete checkpoint."""
        last = self._get_last_checkpoint_no(path, fs)
        return os.path.join(path, "%s.%d" % (_PREFIX, last)) if last >= 0 else None

    def _write_folder(self, path: str, status: Any, fs: FS | None, cache: str, keep_all: bool,
                      fill: Callable[[str], object]) -> None:
        """Writes the next checkpoint: ``fill`` writes the values to a folder, which is renamed when it is complete."""
        fs = LocalFS() if fs is None else fs
        fs.mkdir(path)
        name = "%s.%d" % (_PREFIX, self._get_last_checkpoint_no(path, fs) + 1)
        unfinished = os.path.join(path, name + ".tmp")
        fs.delete(unfinished)
        here = os.path.join(cache, name) if fs.need_upload_download() else unfinished
        shutil.rmtree(here, ignore_errors=True)
        os.makedirs(here)
        fill(here)
        with open(os.path.join(here, _STATUS), "w") as file:
            json.dump(status, file)
        if fs.need_upload_download():
            fs.upload(here, unfinished)
            shutil.rmtree(here)
        fs.mv(unfinished, os.path.join(path, name))
        if not keep_all:
            self.clean_redundant_check_points(path, fs)

    def _read_folder(self, path: str, trainer_id: int, fs: FS | None, cache: str,
                     ignore_empty: bool) -> tuple[str, Any] | None:
        """tuple: folder on this machine and status of the last checkpoint; None if there is none."""
        fs = LocalFS() if fs is None else fs
        there = self._last_folder(path, fs)
        if there is None:
            if not ignore_empty:
                raise Violated("load_check_point: there is no checkpoint in %s" % path)
            return None
        here = there
        if fs.need_upload_download():
            here = os.path.join(cache, "%s.load.%d" % (os.path.basename(there), trainer_id))
            shutil.rmtree(here, ignore_errors=True)
            os.makedirs(cache, exist_ok=True)
            fs.download(there, here)
        with open(os.path.join(here, _STATUS)) as file:
            return here, json.load(file)

    def clean_redundant_check_points(self, root_path: str, fs: FS | None = None, checkpoint_num: int = 1) -> None:
        """Deletes all checkpoints except the last ones.

        Args:
            root_path (str): folder of the checkpoints.
            fs (FS, optional): file system of the folder. Default: the local file system.
            checkpoint_num (int): number of checkpoints to keep, at least 1. Default 1.
        """
        fs = LocalFS() if fs is None else fs
        numbers = sorted(n for n in map(_number, fs.list_dirs(root_path)) if n >= 0)
        for number in numbers[:-max(1, checkpoint_num)]:
            fs.delete(os.path.join(root_path, "%s.%d" % (_PREFIX, number)))
