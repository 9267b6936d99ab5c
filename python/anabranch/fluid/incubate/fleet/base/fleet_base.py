"""Base class of all fleets: the role of this process, its share of the files, the wrapped optimizer."""
from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any

from ..... import _launched
from ....core import CPUPlace
from ....errors import InvalidType, InvalidValue, NotAllowed
from ....executor import Executor
from ....framework import Program
from ....optimizer import Optimizer
from .file_queue import FileQueue
from .mode import Mode
from .role_maker import RoleMakerBase, role_of_environment

__all__ = ["Fleet", "DistributedOptimizer", "Mode"]


class Fleet(abc.ABC):
    """Base class of the fleets.

    Args:
        mode (int): a value of ``Mode``.
    """

    def __init__(self, mode: int) -> None:
        self._mode = mode
        self._is_initialized = False
        self._optimizer: Any = None
        self._role_maker: Any = None
        self._executor: Any = None
        self._queues = 0

    def _role(self) -> RoleMakerBase:
        if self._role_maker is None:
            raise NotAllowed("fleet: call fleet.init first")
        return self._role_maker

    # ---- the role of this process

    def init(self, role_maker: RoleMakerBase | None = None) -> None:
        """Sets the role of this process. May be called again.

        Args:
            role_maker (RoleMakerBase, optional): role maker. Default: PaddleCloudRoleMaker if TRAINING_ROLE is set,
                MPISymetricRoleMaker under mpirun or srun, otherwise LocalRoleMaker, which runs all in this process.

        Raises:
            TypeError: ``role_maker`` is not a role maker.
            ValueError: its environment is incomplete.
        """
        if role_maker is not None and not isinstance(role_maker, RoleMakerBase):
            raise InvalidType("fleet.init: role_maker must be a role maker, got %s" % type(role_maker).__name__)
        _launched.asked()
        role = role_of_environment() if role_maker is None else role_maker
        role.generate_role()
        self._role_maker = role
        self._executor = Executor(CPUPlace())
        self._is_initialized = True
        self._queues = 0

    def is_worker(self) -> bool:
        """bool: whether this process trains."""
        return self._role().is_worker()

    def is_server(self) -> bool:
        """bool: whether this process keeps parameters."""
        return self._role().is_server()

    def is_first_worker(self) -> bool:
        """bool: whether this is worker 0, which saves."""
        return self._role().is_first_worker()

    def worker_index(self) -> int:
        """int: index of this worker."""
        return self._role().worker_index()

    def worker_num(self) -> int:
        """int: number of workers."""
        return self._role().worker_num()

    def server_index(self) -> int:
        """int: index of this server."""
        return self._role().server_index()

    def server_num(self) -> int:
        """int: number of servers."""
        return len(self._role().get_pserver_endpoints())

    def worker_endpoints(self, to_string: bool = False) -> Any:
        """list of str or str: addresses of the workers, as a list or joined by commas."""
        found = self._role().get_trainer_endpoints()
        return ",".join(found) if to_string else found

    def server_endpoints(self, to_string: bool = False) -> Any:
        """list of str or str: addresses of the servers, as a list or joined by commas."""
        found = self._role().get_pserver_endpoints()
        return ",".join(found) if to_string else found

    def split_files(self, files: list[str]) -> list[str]:
        """Returns this worker's share of the files, a contiguous range. If the files cannot be divided equally, the
        first workers get one more.

        Args:
            files (list of str): the same list in all workers.

        Returns:
            list of str: the share.

        Raises:
            TypeError: ``files`` is not a list.
        """
        if not isinstance(files, list):
            raise InvalidType("fleet.split_files: files must be a list of str, got %s" % type(files).__name__)
        each, more = divmod(len(files), self.worker_num())
        mine = self.worker_index()
        begin = mine * each + min(mine, more)
        return files[begin:begin + each + (mine < more)]

    def file_queue(self, files: list[str], name: str | None = None) -> FileQueue:
        """A queue of files for ``QueueDataset.set_filelist``, from which each worker's ``train_from_dataset`` takes one
        file at a time. A file that a worker leaves unfinished, by a crash or by stopping, goes to the next worker.

        A file is done when all its batches are trained and the servers have applied their gradients. A returned file is
        read from its start (at least once): records that were already trained on are trained on again.
        ``anabranch ps top`` shows the number of returned files. No batch holds records of two files, so the last batch
        of a file may be smaller. Each pass over the data set reads all files; a restarted worker finds earlier passes
        empty, and joins the current pass of the others.

        In sync training, a worker does not wait for the files of other workers, because they need its gradients. Its
        pass ends when all files are taken. The files of a dead worker are read when it is restarted.

        Args:
            files (list of str): paths, the same list in all workers; at most 4,096 bytes each.
            name (str, optional): unique name of the queue, the same in all workers. Default: the number of queues that
                this fleet has created before.

        Returns:
            FileQueue: for ``set_filelist``.

        Raises:
            TypeError: ``files`` is not a list of str.
            ValueError: a path is empty, too long or has a zero byte.
            NotImplementedError: there are no servers, so all workers must take the same number of steps.

        Examples:
            >>> import anabranch.fluid as fluid
            >>> from anabranch.fluid.incubate.fleet.base import role_maker
            >>> from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
            >>> fleet.init(role_maker.LocalRoleMaker())
            >>> dataset = fluid.DatasetFactory().create_dataset("QueueDataset")
            >>> dataset.set_filelist(fleet.file_queue(["part-0", "part-1"]))
            >>> dataset.filelist
            ['part-0', 'part-1']
        """
        made = FileQueue(self._role(), files, "%d" % self._queues if name is None else name)
        self._queues += name is None
        return made

    # ---- collective calls

    def barrier_worker(self) -> None:
        """Waits until all workers have called this method."""
        self._role().barrier_worker()

    def all_reduce_worker(self, input: Any, output: Any) -> None:
        """Puts the sum over all workers into ``output``, elementwise.

        Args:
            input (numpy.ndarray|list): numbers, of the same shape in all workers.
            output (numpy.ndarray|list): receives the sum.
        """
        self._role().all_reduce_worker(input, output)

    # ---- abstract methods

    @abc.abstractmethod
    def init_worker(self) -> None:
        """Connects a worker."""

    @abc.abstractmethod
    def init_server(self, model_dir: str | None = None) -> None:
        """Initializes a server's variables."""

    @abc.abstractmethod
    def run_server(self) -> None:
        """Serves until all workers are done."""

    @abc.abstractmethod
    def stop_worker(self) -> None:
        """Closes a worker's connections."""

    @abc.abstractmethod
    def distributed_optimizer(self, optimizer: Any, strategy: Any = None) -> Any:
        """Wraps an optimizer."""

    @abc.abstractmethod
    def save_inference_model(self, executor: Any, dirname: str, feeded_var_names: Sequence[str],
                             target_vars: Sequence[Any], main_program: Program | None = None,
                             export_for_deployment: bool = True) -> Any:
        """Saves a model for inference."""

    @abc.abstractmethod
    def save_persistables(self, executor: Any, dirname: str, main_program: Program | None = None) -> None:
        """Saves all persistable variables."""


def check_optimizer(optimizer: Any) -> None:
    """Raises ValueError unless ``optimizer`` is an Optimizer."""
    # Fluid 1.8.5 also lists the wrapper of mixed precision, which is not an Optimizer there.
    if not isinstance(optimizer, Optimizer) and not hasattr(optimizer, "minimize"):
        raise InvalidValue("fleet.distributed_optimizer: optimizer must be an Optimizer, got %s"
                           % type(optimizer).__name__)


class DistributedOptimizer(abc.ABC):
    """Base class of the wrappers of optimizers.

    Args:
        optimizer (Optimizer): optimizer of the parameters.
        strategy: settings, of the class that the fleet uses.

    Raises:
        ValueError: ``optimizer`` is not an Optimizer.
    """

    def __init__(self, optimizer: Any, strategy: Any = None) -> None:
        check_optimizer(optimizer)
        self._optimizer = optimizer
        self._strategy = strategy

    def set_lr(self, value: float, scope: Any = None) -> None:
        """Changes the learning rate of ``optimizer``."""
        self._optimizer.set_lr(value, scope)

    @abc.abstractmethod
    def backward(self, loss: Any, startup_program: Program | None = None, parameter_list: Any = None,
                 no_grad_set: Any = None, callbacks: Any = None) -> Any:
        """First half of ``minimize``."""

    @abc.abstractmethod
    def apply_gradients(self, params_grads: Any) -> Any:
        """Second half of ``minimize``."""

    @abc.abstractmethod
    def minimize(self, losses: Any, scopes: Any = None, startup_programs: Any = None, parameter_list: Any = None,
                 no_grad_set: Any = None) -> Any:
        """Runs both halves and the steps that the fleet adds."""
