"""Checkpoints of workers and servers: a consistent state of all of them, for any number of servers."""
from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from ...... import _cluster
from ......distributed.fs_wrapper import FS, LocalFS
from .....compiler import CompiledProgram
from .....io.remote import load_mine, save_remote
from .....scope import global_scope
from ...base.checkpoints import VALUES, CheckpointFolders, TrainStatus, check_arguments
from .checks import check_executor


class ServerCheckpoints(CheckpointFolders):
    """``save_check_point`` and ``load_check_point`` of the fleet with servers."""

    main_program: Any
    _role: Callable[[], Any]
    _check_ready: Callable[[str], None]
    is_first_worker: Callable[[], bool]
    worker_index: Callable[[], int]

    def save_check_point(self, executor: Any, path: str, train_status: TrainStatus, main_program: Any = None,
                         fs: FS | None = None, local_cache_path: str = ".cache",
                         remain_all_checkpoint: bool = True) -> None:
        """Saves the variables of the servers and the progress of each worker as the next checkpoint. All workers call
        it between two steps.

        Servers first apply all gradients that workers have sent, and no worker continues before the checkpoint is
        complete, so it is consistent. It holds parameters and optimizer state as whole variables, so training may
        resume with a different number of servers, and the random state and ``train_status`` of each worker.

        Args:
            executor (Executor): executor of this process.
            path (str): folder of the checkpoints; the first worker writes it.
            train_status (TrainStatus): progress of this worker.
            main_program (Program|CompiledProgram, optional): program of this worker. Default: ``fleet.main_program``.
            fs (FS, optional): file system of the folder. Default: the local file system.
            local_cache_path (str): local folder for copies to another file system. Default ".cache".
            remain_all_checkpoint (bool): whether to keep older checkpoints. Default True.

        Raises:
            TypeError: ``train_status`` has the wrong type.
            ValueError: the path is empty.
            RuntimeError: ``minimize`` was not called, or, in all workers, the first worker could not save.
        """
        check_executor("save_check_point", executor)
        check_arguments(path, train_status)
        self._check_ready("save_check_point")
        _cluster.communicator_flush()
        mine = {"epoch_no": train_status._epoch_no, "steps": train_status.steps,
                "random": list(_engine(executor, self._trained(main_program)).random_state())}
        status = {"workers": _cluster.all_gather(self._role(), mine)}
        _cluster.by_first_worker(self._role(), "save_check_point", lambda: self._write_folder(
            path, status, fs, local_cache_path, remain_all_checkpoint,
            lambda folder: self._write_values(executor, os.path.join(folder, VALUES))))

    def load_check_point(self, executor: Any, path: str, trainer_id: int | None = None, main_program: Any = None,
                         fs: FS | None = None, local_cache_path: str = ".cache",
                         ignore_empty: bool = True) -> TrainStatus | None:
        """Restores the progress of this worker. Call it after the startup program. Servers restore their shards in
        ``init_server(path)``, or from the folder of ``anabranch launch --resume``.

        Args:
            executor (Executor): executor of this process.
            path (str): folder of the checkpoints.
            trainer_id (int, optional): index of this worker. A worker that the checkpoint does not hold starts from the
                progress of the first one.
            main_program (Program|CompiledProgram, optional): program of this worker. Default: ``fleet.main_program``.
            fs (FS, optional): file system of the folder. Default: the local file system.
            local_cache_path (str): local folder for copies from another file system. Default ".cache".
            ignore_empty (bool): whether to return None if there is no checkpoint; if not, it raises. Default True.

        Returns:
            TrainStatus: progress of this worker, or None. Skip its ``steps`` batches of the next epoch.

        Raises:
            AssertionError: there is no checkpoint, without ``ignore_empty``.
            RuntimeError: ``minimize`` was not called.
        """
        check_executor("load_check_point", executor)
        self._check_ready("load_check_point")
        number = self.worker_index() if trainer_id is None else trainer_id
        found = self._read_folder(path, number, fs, local_cache_path, ignore_empty)
        if found is None:
            return None
        folder, status = found
        load_mine(executor, os.path.join(folder, VALUES), self.main_program)
        workers = status["workers"]
        mine = workers[number if number < len(workers) else 0]
        _engine(executor, self._trained(main_program)).set_random_state(*mine["random"])
        return TrainStatus(int(mine["epoch_no"]), int(mine["steps"]))

    def _trained(self, main_program: Any) -> Any:
        return self.main_program if main_program is None else main_program

    def _write_values(self, executor: Any, folder: str) -> None:
        save_remote(executor, folder, self.main_program, None)

    def _values_in(self, folder: str) -> str:
        """The folder of whole variables from which a server starts: the last checkpoint, if there is one."""
        last = self._last_folder(folder, LocalFS())
        return folder if last is None else os.path.join(last, VALUES)


def _engine(executor: Any, program: Any) -> Any:
    """The engine's object of a program, as ``Executor.run`` would use it."""
    if isinstance(program, CompiledProgram):
        return program._compile(global_scope(), executor.place)._engine
    return executor._bind(program, global_scope()).engine
