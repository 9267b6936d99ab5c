"""``fleet`` with parameter servers: the role of this process, programs of workers and servers, saving."""
from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...... import _cluster
from ......checkpoints.servers import save as save_links
from ..... import remote
from .....communicator import Communicator
from .....compiler import CompiledProgram
from .....errors import InvalidType, InvalidValue, NotAllowed
from .....executor import Executor
from .....framework import Program, default_main_program, default_startup_program, program_guard
from .....io import save_inference_model as _save_inference_model
from .....io import save_persistables as _save_persistables
from .....io.remote import is_remote, load_shards
from .....optimizer import Optimizer
from .....parallel_executor import ParallelExecutor
from .....scope import global_scope
from .....transpiler import DistributeTranspiler as OriginTranspiler
from .....transpiler import DistributeTranspilerConfig
from .....transpiler.config import DistributedMode, ServerRuntimeConfig
from .....transpiler.details import wait_server_ready
from .....transpiler.geo_sgd_transpiler import GeoSgdTranspiler
from ...base.checkpoints import TrainStatus as TrainStatus
from ...base.fleet_base import DistributedOptimizer, Fleet, Mode
from ...base.role_maker import MPISymetricRoleMaker as MPISymetricRoleMaker
from .checkpoints import ServerCheckpoints
from .checks import check_executor, check_program
from .distributed_strategy import (
    AsyncStrategy,
    DistributedStrategy,
    GeoStrategy,
    HalfAsyncStrategy,
    StrategyFactory,
    SyncStrategy,
)
from .distributed_strategy import TrainerRuntimeConfig as TrainerRuntimeConfig

if TYPE_CHECKING:
    from ......schema import Schema

__all__ = ["DistributedTranspiler", "TranspilerOptimizer", "fleet"]

_STRATEGIES = (SyncStrategy, HalfAsyncStrategy, AsyncStrategy, GeoStrategy)


class DistributedTranspiler(ServerCheckpoints, Fleet):
    """Workers and parameter servers; ``fleet`` is the one object of this class.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> from anabranch.fluid.incubate.fleet.base import role_maker
        >>> from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler import StrategyFactory, fleet
        >>> fleet.init(role_maker.UserDefinedRoleMaker(
        ...     current_id=0, role=role_maker.Role.SERVER, worker_num=2, server_endpoints=["127.0.0.1:6174"]))
        >>> y = fluid.layers.fc(fluid.data("x", [None, 8]), 1)
        >>> optimizer = fleet.distributed_optimizer(fluid.optimizer.SGD(0.1), StrategyFactory.create_async_strategy())
        >>> _ = optimizer.minimize(fluid.layers.mean(y))
        >>> fleet.main_program.global_block().ops[0].type
        'listen_and_serv'
    """

    def __init__(self) -> None:
        super().__init__(Mode.TRANSPILER)
        self._transpile_config: Any = None
        self._transpiler: Any = None
        self._origin_program: Any = None
        self._communicator: Any = None
        self._serving: Any = None           # the transpiler whose servers run in this process
        self.startup_program: Any = None
        self.main_program: Any = None
        self._opt_info: Any = None

    # ---- workers

    def init_worker(self) -> None:
        """Connects a worker to all servers and starts its communicator.

        Raises:
            RuntimeError: ``minimize`` was not called, or servers do not listen in time.
            ValueError: the worker is already connected.
        """
        self._check_ready("init_worker")
        self._transpile_config.get_trainer_runtime_config().set_deadline()
        if self._communicator is not None and self._communicator.is_running():
            raise InvalidValue("fleet.init_worker: the communicator runs already")
        role = self._role()
        if getattr(role, "is_local", False):
            self._serve_locally()
        elif self._transpile_config.get_program_config().wait_port:
            wait_server_ready(role.get_pserver_endpoints())
        _cluster.describe(role.worker_index(), getattr(self.main_program, "_job", None) or [])
        _cluster.connect(role.worker_index(), role.get_pserver_endpoints())
        self._communicator = self._make_communicator()
        if not self._communicator.is_running():
            self._communicator.start()

    def _serve_locally(self) -> None:
        """Starts the servers of the local role maker: for ``init_worker``, or for a program that runs before it."""
        if self._serving is self._transpiler:
            return
        self._serving = self._transpiler
        remote.serve_locally([self._transpiler.get_pserver_programs(e) for e in self._role().get_pserver_endpoints()],
                             self._start_server)

    def _start_server(self, main: Program, startup: Program) -> None:
        Executor().run(startup)
        self._resume(main)

    def _make_communicator(self) -> Communicator:
        settings: dict[str, Any] = {}
        trainer = self._transpile_config.get_trainer_runtime_config()
        if isinstance(self._transpile_config, GeoStrategy):
            settings = {"push_vars": self._transpiler.vars_info, "trainers": self.worker_num(),
                        "push_nums": self._transpile_config.get_program_config().geo_sgd_need_push_nums}
        elif isinstance(self._transpile_config, SyncStrategy):
            settings = {"pserver_endpoints": self.server_endpoints(to_string=True), "trainer_id": self.worker_index()}
        return Communicator(self.main_program, trainer.mode, settings, trainer.get_communicator_flags())

    def stop_worker(self) -> None:
        """Sends pending gradients, notifies the servers that this worker is done, and closes its connections."""
        if self._communicator is not None and self._communicator.is_running():
            self._communicator.stop()
        self._communicator = None
        if self._transpiler is not None:
            _cluster.complete(self.worker_index())
            _cluster.wait_for_local_servers()
        if self._executor is not None:
            self._executor.close()

    # ---- servers

    def init_server(self, model_dir: str | None = None) -> None:
        """Runs a server's startup program, and loads its shards of a saved model.

        Args:
            model_dir (str, optional): folder of ``save_persistables``, or folder of checkpoints, whose last one is
                loaded; any number of servers may have written it. Default: the folder of ``anabranch launch --resume``,
                if any.

        Raises:
            ValueError: ``minimize`` was not called, there is no such folder, or a file has the wrong shape.
        """
        if self.startup_program is None:
            raise InvalidValue("fleet.init_server: there is no program yet: call minimize of the distributed optimizer")
        _resume_folder(model_dir)
        self._executor.run(self.startup_program)
        self._resume(self.main_program, model_dir)

    def _resume(self, program: Program, model_dir: str | None = None) -> None:
        """Loads a server's shards of a saved model, if there is one."""
        folder = _resume_folder(model_dir)
        if folder:
            load_shards(self._values_in(folder), program, program._ps_endpoint)

    def run_server(self) -> None:
        """Serves until all workers are done.

        Raises:
            ValueError: ``minimize`` was not called.
        """
        if self.main_program is None:
            raise InvalidValue("fleet.run_server: there is no program yet: call minimize of the distributed optimizer")
        remote.serve(self.main_program, global_scope())

    def _endpoint(self) -> str:
        return str(self.server_endpoints()[self.server_index()])

    # ---- programs

    def _check_ready(self, what: str) -> None:
        if self._transpiler is None or self.main_program is None:
            raise NotAllowed("fleet.%s: call minimize of the distributed optimizer first" % what)

    def distributed_optimizer(self, optimizer: Any, strategy: Any = None) -> TranspilerOptimizer:
        """Wraps an optimizer so that its ``minimize`` builds the programs of this process.

        Args:
            optimizer (Optimizer): optimizer of the parameters, which runs on the servers.
            strategy (DistributedStrategy|DistributeTranspilerConfig, optional): a strategy of ``StrategyFactory``.
                Default: sync.

        Returns:
            TranspilerOptimizer: the wrapper.

        Raises:
            ValueError: ``optimizer`` is not an Optimizer.
            TypeError: ``strategy`` has the wrong type.
        """
        self._optimizer = TranspilerOptimizer(optimizer, strategy, self)
        return self._optimizer

    def _set_strategy(self, strategy: DistributedStrategy) -> None:
        self._transpile_config = strategy

    def _set_opt_info(self, opt_info: Any) -> None:
        self._opt_info = opt_info

    def _transpile(self, strategy: DistributedStrategy, main: Program, startup: Program) -> None:
        self._origin_program = main
        self._set_strategy(strategy)
        config = strategy.get_program_config()
        transpiler = (GeoSgdTranspiler if config.geo_sgd_mode else OriginTranspiler)(config)
        transpiler.transpile(trainer_id=self.worker_index() if self.is_worker() else 0, program=main,
                             pservers=self.server_endpoints(to_string=True), trainers=self.worker_num(),
                             sync_mode=config.sync_mode, startup_program=startup)
        self._transpiler = transpiler
        if self.is_worker():
            self.main_program = transpiler.get_trainer_program(wait_port=False)
            self.startup_program = startup
            if getattr(self._role(), "is_local", False):
                startup._serve_locally = self.main_program._serve_locally = self._serve_locally
            self._note_debug(strategy)
        else:
            self.main_program, self.startup_program = transpiler.get_pserver_programs(self._endpoint())

    def _note_debug(self, strategy: DistributedStrategy) -> None:
        if strategy.get_debug_opt():
            self._set_opt_info({"trainer": "DistMultiTrainer", "device_worker": "DownpourSGDOPT",
                                **strategy.get_debug_opt()})
            self.main_program._fleet_opt = self._opt_info

    # ---- files

    def save_inference_model(self, executor: Any, dirname: str, feeded_var_names: Sequence[str],
                             target_vars: Sequence[Any], main_program: Program | None = None,
                             export_for_deployment: bool = True, schema: Schema | None = None) -> Any:
        """Saves a model for inference, with parameters from the servers. Call it in the first worker.

        Args:
            executor (Executor): executor of this process.
            dirname (str): folder.
            feeded_var_names (list of str): names of the fed variables.
            target_vars (list of Variable): results of the model.
            main_program (Program, optional): the program before it was split. Default: that of ``minimize``.
            export_for_deployment (bool): whether to drop the parts that only training needs. Default True.
            schema (Schema, optional): as for ``fluid.io.save_inference_model``.

        Returns:
            list of str: names of the targets.

        Raises:
            TypeError: the executor or program has the wrong type.
        """
        check_executor("save_inference_model", executor)
        check_program("save_inference_model", main_program)
        program = main_program if main_program is not None else self._transpiler_source("save_inference_model")
        names = _save_inference_model(dirname, feeded_var_names, target_vars, executor, program, None, None,
                                      export_for_deployment, True, schema)
        self.save_persistables(executor, dirname, self.main_program)
        return names

    def _transpiler_source(self, what: str) -> Any:
        self._check_ready(what)
        return self._transpiler._source

    def save_persistables(self, executor: Any, dirname: str, main_program: Program | None = None,
                          mode: int | None = None, keep: int = 3) -> None:
        """Saves all persistable variables for any number of servers. Call it in the first worker, which sends its
        pending gradients to the servers first.

        With ``mode``, ``dirname`` is a folder of numbered checkpoints, in the format of :class:`anabranch.Checkpoints`,
        which a model can follow. On each server, all rows of growable tables have the values of the same moment. In
        synchronous training, this moment is the same on all servers, because the other workers wait for this one.

        Args:
            executor (Executor): executor of this process.
            dirname (str): folder, created if missing.
            main_program (Program, optional): the program. Default: that of the worker.
            mode (int, optional): 0: a checkpoint with all rows of growable tables; 1: a checkpoint with the rows that
                have changed since the one before, or with all rows if the servers were started after that, or if the
                changes have become larger than all rows. Default: no checkpoint, but one file for each variable.
            keep (int): with ``mode``, number of latest checkpoints to keep, in addition to the checkpoints that these
                need. Default 3.

        Raises:
            TypeError: the executor or program has the wrong type.
            ValueError: ``mode`` is neither 0 nor 1, or ``keep`` is below 1.
            RuntimeError: ``minimize`` was not called.
        """
        check_executor("save_persistables", executor)
        check_program("save_persistables", main_program)
        self._check_ready("save_persistables")
        if mode not in (None, 0, 1) or isinstance(mode, bool):
            raise InvalidValue("fleet.save_persistables: mode must be None, 0 or 1, got %r" % (mode,))
        if not isinstance(keep, int) or keep < 1:
            raise InvalidValue("fleet.save_persistables: keep must be a number from 1, got %r" % (keep,))
        program = self.main_program if main_program is None else main_program
        if not is_remote(program):
            raise InvalidValue("fleet.save_persistables: main_program must be the program of this fleet")
        _cluster.communicator_flush()
        if mode is None:
            _save_persistables(executor, dirname, program)
        else:
            save_links(os.fspath(dirname), program, mode == 0, keep)


class TranspilerOptimizer(DistributedOptimizer):
    """An optimizer with a ``minimize`` that builds the programs of a worker or server.

    Args:
        optimizer (Optimizer): optimizer of the parameters.
        strategy (DistributedStrategy|DistributeTranspilerConfig, optional): the strategy. Default: sync.

    Raises:
        ValueError: ``optimizer`` is not an Optimizer.
        TypeError: ``strategy`` has the wrong type.
    """

    def __init__(self, optimizer: Any, strategy: Any = None, owner: DistributedTranspiler | None = None) -> None:
        super().__init__(optimizer, strategy)
        self._strategy = _strategy_of(strategy)
        self._owner = fleet if owner is None else owner
        self._owner._set_strategy(self._strategy)

    def backward(self, loss: Any, startup_program: Program | None = None, parameter_list: Any = None,
                 no_grad_set: Any = None, callbacks: Any = None) -> Any:
        """Like ``Optimizer.backward``."""
        return self._optimizer.backward(loss, startup_program, parameter_list, no_grad_set, callbacks)

    def apply_gradients(self, params_grads: Any) -> Any:
        """Like ``Optimizer.apply_gradients``."""
        return self._optimizer.apply_gradients(params_grads)

    def minimize(self, loss: Any, scopes: Any = None, startup_program: Program | None = None,
                 parameter_list: Any = None, no_grad_set: Any = None) -> Any:
        """Appends gradients and updates, then splits the program for this process.

        Args:
            loss (Variable): the value to minimize, of shape [1].
            scopes: not used.
            startup_program (Program, optional): the default startup program.
            parameter_list (list, optional): parameters to train. Default: all.
            no_grad_set (set, optional): variables that get no gradient.

        Returns:
            tuple: (operators, [(parameter, gradient)]).

        Raises:
            TypeError: ``loss`` is a list.
            RuntimeError: ``fleet.init`` was not called.
        """
        if isinstance(loss, list):
            raise InvalidType("minimize: loss must be a single Variable with parameter servers, got a list")
        startup = default_startup_program() if startup_program is None else startup_program
        main = loss.block.program
        with program_guard(main, startup):
            chosen = () if parameter_list is None and no_grad_set is None else (parameter_list, no_grad_set)
            found = self._optimizer.minimize(loss, startup, *chosen)  # LookaheadOptimizer takes no choice
        self._owner._transpile(self._strategy, main, startup)
        return found


def _resume_folder(model_dir: str | None) -> str | None:
    folder = model_dir or os.environ.get("ANABRANCH_RESUME_DIR")
    if folder and not os.path.isdir(folder):
        raise InvalidValue("fleet.init_server: there is no folder %s" % folder)
    return folder


def _strategy_of(given: Any) -> DistributedStrategy:
    """DistributedStrategy: the argument of ``distributed_optimizer`` as a strategy."""
    if not given:
        given = DistributeTranspilerConfig()
    if isinstance(given, _STRATEGIES):
        return given
    if not isinstance(given, DistributeTranspilerConfig):
        raise InvalidType("fleet.distributed_optimizer: strategy must be a SyncStrategy, HalfAsyncStrategy, "
                          "AsyncStrategy, GeoStrategy or DistributeTranspilerConfig, got %s" % type(given).__name__)
    strategy: DistributedStrategy
    if given.sync_mode:
        strategy = SyncStrategy()
    elif given.runtime_split_send_recv and given.geo_sgd_mode:
        strategy = GeoStrategy(given.geo_sgd_need_push_nums)
    elif given.runtime_split_send_recv and not given.half_async:
        strategy = AsyncStrategy()
    else:
        strategy = HalfAsyncStrategy()
    strategy.set_program_config(given)
    return strategy


fleet = DistributedTranspiler()

#: Other names that Fluid's module exports.
REACHABLE = (CompiledProgram, DistributedMode, Executor, Optimizer, ParallelExecutor, ServerRuntimeConfig,
             StrategyFactory, default_main_program)
