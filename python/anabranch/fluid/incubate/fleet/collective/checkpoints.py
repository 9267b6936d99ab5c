"""Checkpoints of workers: numbered folders, each whole or not there."""
from __future__ import annotations

import json
import os
import shutil
from typing import Any

from .....distributed.fs_wrapper import BDFS as BDFS
from .....distributed.fs_wrapper import FS, LocalFS
from ....errors import InvalidType, InvalidValue, Violated
from ....io import load_persistables, save_persistables

_PREFIX = "__paddle_fleet_checkpoint__"
_VALUES = "_paddle_fleet_param__"
_STATUS = "fleet_train_status"


class TrainStatus:
    """How far a training is.

    Args:
        epoch_no (int): the last epoch that is done. Default -1, none.

    Examples:
        >>> TrainStatus(3).next(), TrainStatus(3) == TrainStatus(3)
        (4, True)
    """

    def __init__(self, epoch_no: int = -1) -> None:
        self._epoch_no = epoch_no

    def next(self) -> int:
        """int: the epoch to go on with."""
        return self._epoch_no + 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TrainStatus) and self._epoch_no == other._epoch_no

    __hash__ = None  # type: ignore[assignment]  # it changes


def _number(name: str) -> int:
    """The number of a checkpoint's folder; -1 for other names."""
    head, _, text = name.partition(".")
    return int(text) if head == _PREFIX and text.isdigit() else -1


class Checkpoints:
    """``save_check_point`` and ``load_check_point`` of the fleet."""

    _origin_program: Any

    def _program(self, main_program: Any) -> Any:
        program = self._origin_program if main_program is None else main_program
        if program is None:
            raise InvalidValue("fleet: there is no program yet: give main_program, or call minimize first")
        return program

    def _get_last_checkpoint_no(self, root_path: str, fs: FS) -> int:
        return max([_number(name) for name in fs.list_dirs(root_path)] + [-1])

    def save_check_point(self, executor: Any, path: str, train_status: TrainStatus, main_program: Any = None,
                         fs: FS | None = None, local_cache_path: str = ".cache",
                         remain_all_checkpoint: bool = True) -> None:
        """Saves parameters and how far the training is, as the next checkpoint; called by one worker.

        It is written beside and gets its name when it is whole.

        Args:
            executor (Executor): of this process.
            path (str): folder of the checkpoints.
            train_status (TrainStatus): how far the training is.
            main_program (Program, optional): that of ``minimize`` by default.
            fs (FS, optional): where the folder is; this machine.
            local_cache_path (str): folder here for what is copied to another file system. Default ".cache".
            remain_all_checkpoint (bool): keeps the older ones. Default True.

        Raises:
            TypeError: ``train_status`` is none. ValueError: an empty path, or no program.
        """
        if not isinstance(train_status, TrainStatus):
            raise InvalidType("save_check_point: train_status must be a TrainStatus, got %s"
                              % type(train_status).__name__)
        if not path:
            raise InvalidValue("save_check_point: path must not be empty")
        fs = LocalFS() if fs is None else fs
        program = self._program(main_program)
        fs.mkdir(path)
        name = "%s.%d" % (_PREFIX, self._get_last_checkpoint_no(path, fs) + 1)
        beside = os.path.join(path, name + ".tmp")
        fs.delete(beside)
        here = os.path.join(local_cache_path, name) if fs.need_upload_download() else beside
        shutil.rmtree(here, ignore_errors=True)
        os.makedirs(here)
        save_persistables(executor, here, program, _VALUES)
        with open(os.path.join(here, _STATUS), "w") as file:
            json.dump({"epoch_no": train_status._epoch_no}, file)
        if fs.need_upload_download():
            fs.upload(here, beside)
            shutil.rmtree(here)
        fs.mv(beside, os.path.join(path, name))
        if not remain_all_checkpoint:
            self.clean_redundant_check_points(path, fs)

    def load_check_point(self, executor: Any, path: str, trainer_id: int, main_program: Any = None,
                         fs: FS | None = None, local_cache_path: str = ".cache",
                         ignore_empty: bool = True) -> TrainStatus | None:
        """Loads the last checkpoint.

        Args:
            executor (Executor): of this process.
            path (str): folder of the checkpoints.
            trainer_id (int): number of this worker; part of the folder that is copied to.
            main_program (Program, optional): that of ``minimize`` by default.
            fs (FS, optional): where the folder is; this machine.
            local_cache_path (str): folder here for what is copied from another file system. Default ".cache".
            ignore_empty (bool): None is returned where there is no checkpoint, else it is an error. Default True.

        Returns:
            TrainStatus: how far the training was; None.

        Raises:
            AssertionError: no checkpoint, without ``ignore_empty``. ValueError: no program.
        """
        fs = LocalFS() if fs is None else fs
        last = self._get_last_checkpoint_no(path, fs)
        if last < 0:
            if not ignore_empty:
                raise Violated("load_check_point: there is no checkpoint in %s" % path)
            return None
        there = os.path.join(path, "%s.%d" % (_PREFIX, last))
        here = there
        if fs.need_upload_download():
            here = os.path.join(local_cache_path, "%s.%d.load.%d" % (_PREFIX, last, trainer_id))
            shutil.rmtree(here, ignore_errors=True)
            os.makedirs(local_cache_path, exist_ok=True)
            fs.download(there, here)
        load_persistables(executor, here, self._program(main_program), _VALUES)
        with open(os.path.join(here, _STATUS)) as file:
            return TrainStatus(int(json.load(file)["epoch_no"]))

    def clean_redundant_check_points(self, root_path: str, fs: FS | None = None, checkpoint_num: int = 1) -> None:
        """Takes all checkpoints away but the last ones.

        Args:
            root_path (str): folder of the checkpoints.
            fs (FS, optional): where it is; this machine.
            checkpoint_num (int): how many stay, at least 1. Default 1.
        """
        fs = LocalFS() if fs is None else fs
        numbers = sorted(n for n in map(_number, fs.list_dirs(root_path)) if n >= 0)
        for number in numbers[:-max(1, checkpoint_num)]:
            fs.delete(os.path.join(root_path, "%s.%d" % (_PREFIX, number)))
