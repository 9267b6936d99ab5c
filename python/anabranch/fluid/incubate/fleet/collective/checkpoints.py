"""Checkpoints of fleets without servers."""
from __future__ import annotations

from typing import Any

from .....distributed.fs_wrapper import BDFS as BDFS
from .....distributed.fs_wrapper import FS
from .....distributed.fs_wrapper import LocalFS as LocalFS
from ....errors import InvalidValue
from ....io import load_persistables, save_persistables
from ..base.checkpoints import VALUES, CheckpointFolders, TrainStatus, check_arguments


class Checkpoints(CheckpointFolders):
    """``save_check_point`` and ``load_check_point`` of the fleet."""

    _origin_program: Any

    def _program(self, main_program: Any) -> Any:
        program = self._origin_program if main_program is None else main_program
        if program is None:
            raise InvalidValue("fleet: there is no program yet: pass main_program, or call minimize first")
        return program

    def save_check_point(self, executor: Any, path: str, train_status: TrainStatus, main_program: Any = None,
                         fs: FS | None = None, local_cache_path: str = ".cache",
                         remain_all_checkpoint: bool = True) -> None:
        """Saves parameters and training progress as the next checkpoint. Call it in one worker.

        The folder is renamed when it is complete.

        Args:
            executor (Executor): executor of this process.
            path (str): folder of the checkpoints.
            train_status (TrainStatus): training progress.
            main_program (Program, optional): program to save. Default: that of ``minimize``.
            fs (FS, optional): file system of the folder. Default: the local file system.
            local_cache_path (str): local folder for copies to another file system. Default ".cache".
            remain_all_checkpoint (bool): whether to keep older checkpoints. Default True.

        Raises:
            TypeError: ``train_status`` has the wrong type.
            ValueError: the path is empty, or there is no program.
        """
        check_arguments(path, train_status)
        program = self._program(main_program)
        status = {"epoch_no": train_status._epoch_no, "steps": train_status.steps}
        self._write_folder(path, status, fs, local_cache_path, remain_all_checkpoint,
                           lambda folder: save_persistables(executor, folder, program, VALUES))

    def load_check_point(self, executor: Any, path: str, trainer_id: int, main_program: Any = None,
                         fs: FS | None = None, local_cache_path: str = ".cache",
                         ignore_empty: bool = True) -> TrainStatus | None:
        """Loads the last checkpoint.

        Args:
            executor (Executor): executor of this process.
            path (str): folder of the checkpoints.
            trainer_id (int): index of this worker; part of the name of the local copy.
            main_program (Program, optional): program to load. Default: that of ``minimize``.
            fs (FS, optional): file system of the folder. Default: the local file system.
            local_cache_path (str): local folder for copies from another file system. Default ".cache".
            ignore_empty (bool): whether to return None if there is no checkpoint; if not, it raises. Default True.

        Returns:
            TrainStatus: training progress, or None.

        Raises:
            AssertionError: there is no checkpoint, without ``ignore_empty``.
            ValueError: there is no program.
        """
        found = self._read_folder(path, trainer_id, fs, local_cache_path, ignore_empty)
        if found is None:
            return None
        here, status = found
        load_persistables(executor, here, self._program(main_program), VALUES)
        return TrainStatus(int(status["epoch_no"]), int(status.get("steps", 0)))
