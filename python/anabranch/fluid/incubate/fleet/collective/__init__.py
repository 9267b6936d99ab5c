"""``fleet`` without servers: workers that keep everything and add up their gradients."""
from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from ....compiler import CompiledProgram
from ....errors import InvalidType
from ....executor import Executor
from ....framework import Program, default_startup_program, program_guard
from ....io import save_inference_model as _save_inference_model
from ....io import save_persistables as _save_persistables
from ....optimizer import Optimizer, RecomputeOptimizer
from ....parallel_executor import ParallelExecutor
from ....transpiler import DistributeTranspiler, DistributeTranspilerConfig
from ..base.fleet_base import DistributedOptimizer, Fleet, Mode
from ..base.role_maker import LocalRoleMaker, RoleMakerBase, UserDefinedCollectiveRoleMaker
from .checkpoints import BDFS as BDFS
from .checkpoints import Checkpoints, LocalFS, TrainStatus
from .strategy import DistFCConfig as DistFCConfig
from .strategy import DistributedStrategy, LambConfig, check_strategy

__all__ = ["Collective", "CollectiveOptimizer", "DistributedStrategy", "LambConfig", "DistFCConfig", "TrainStatus",
           "fleet"]

_log = logging.getLogger(__name__)


class Collective(Checkpoints, Fleet):
    """Workers alone; ``fleet`` is the one object of this class.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> from anabranch.fluid.incubate.fleet.base import role_maker
        >>> from anabranch.fluid.incubate.fleet.collective import fleet
        >>> fleet.init(role_maker.UserDefinedCollectiveRoleMaker(0, ["127.0.0.1:6170"]))
        >>> y = fluid.layers.fc(fluid.data("x", [None, 8]), 1)
        >>> optimizer = fleet.distributed_optimizer(fluid.optimizer.SGD(0.1))
        >>> _ = optimizer.minimize(fluid.layers.mean(y))
        >>> type(fleet.main_program).__name__
        'CompiledProgram'
    """

    def __init__(self) -> None:
        super().__init__(Mode.COLLECTIVE)
        self.startup_program: Any = None
        self.main_program: Any = None
        self._origin_program: Any = None
        self._transpiled_program: Any = None

    def init(self, role_maker: RoleMakerBase | None = None) -> None:
        """As ``Fleet.init``; without a role maker and an environment this is the only worker."""
        super().init(role_maker)
        if isinstance(self._role_maker, LocalRoleMaker):
            self._role_maker = UserDefinedCollectiveRoleMaker(0, ["127.0.0.1:6170"])

    # ---- what only fleets with servers have

    def init_worker(self) -> None:
        """Does nothing, with a warning: there are no servers."""
        _log.warning("init_worker does nothing: there are no servers")

    def init_server(self, model_dir: str | None = None) -> None:
        """Does nothing, with a warning: there are no servers."""
        _log.warning("init_server does nothing: there are no servers")

    def run_server(self) -> None:
        """Does nothing, with a warning: there are no servers."""
        _log.warning("run_server does nothing: there are no servers")

    def run_worker(self, main_programs: Any = None, scopes: Any = None) -> None:
        """Does nothing, with a warning: run ``fleet.main_program`` by an executor."""
        _log.warning("run_worker does nothing: run fleet.main_program by an executor")

    def stop_worker(self) -> None:
        """Does nothing, with a warning: there are no servers."""
        _log.warning("stop_worker does nothing: there are no servers")

    # ---- programs

    def distributed_optimizer(self, optimizer: Any, strategy: Any = None) -> CollectiveOptimizer:
        """Wraps an optimizer: its ``minimize`` makes the program of this worker.

        Args:
            optimizer (Optimizer): what updates parameters.
            strategy (DistributedStrategy, optional): settings; the defaults where none is given.

        Returns:
            CollectiveOptimizer: the wrapper.

        Raises:
            TypeError: ``optimizer`` or ``strategy`` is none.
        """
        self._optimizer = CollectiveOptimizer(optimizer, strategy, self)
        return self._optimizer

    # ---- files

    def save_inference_model(self, executor: Any, dirname: str, feeded_var_names: Sequence[str] | None = None,
                             target_vars: Sequence[Any] | None = None, main_program: Program | None = None,
                             export_for_deployment: bool = True) -> Any:
        """As ``fluid.io.save_inference_model``, of the program before it was changed for several workers."""
        _check_executor("save_inference_model", executor)
        program = self._origin_program if main_program is None else main_program
        if not isinstance(program, Program):
            raise InvalidType("fleet.save_inference_model: main_program must be a Program, got %s"
                              % type(program).__name__)
        return _save_inference_model(dirname, feeded_var_names or [], target_vars or [], executor, program, None, None,
                                     export_for_deployment)

    def save_persistables(self, executor: Any, dirname: str, main_program: Program | None = None,
                          filename: str | None = None) -> None:
        """As ``fluid.io.save_persistables``, of the program before it was changed for several workers."""
        _check_executor("save_persistables", executor)
        program = self._origin_program if main_program is None else main_program
        if not isinstance(program, Program):
            raise InvalidType("fleet.save_persistables: main_program must be a Program, got %s"
                              % type(program).__name__)
        _save_persistables(executor, dirname, program, filename)


def _check_executor(what: str, executor: Any) -> None:
    if isinstance(executor, ParallelExecutor) or not isinstance(executor, Executor):
        raise InvalidType("fleet.%s: executor must be an Executor, got %s" % (what, type(executor).__name__))


class CollectiveOptimizer(DistributedOptimizer):
    """An optimizer whose ``minimize`` makes the program of a worker among workers.

    Args:
        optimizer (Optimizer): what updates parameters.
        strategy (DistributedStrategy, optional): settings; the defaults where none is given.

    Raises:
        TypeError: ``optimizer`` or ``strategy`` is none.
    """

    def __init__(self, optimizer: Any, strategy: Any = None, owner: Collective | None = None) -> None:
        if not isinstance(optimizer, Optimizer):
            raise InvalidType("fleet.distributed_optimizer: optimizer must be an Optimizer, got %s"
                              % type(optimizer).__name__)
        super().__init__(optimizer, DistributedStrategy() if strategy is None else strategy)
        if not isinstance(self._strategy, DistributedStrategy):
            raise InvalidType("fleet.distributed_optimizer: strategy must be a DistributedStrategy, got %s"
                              % type(strategy).__name__)
        self._owner = fleet if owner is None else owner

    def backward(self, loss: Any, startup_program: Program | None = None, parameter_list: Any = None,
                 no_grad_set: Any = None, callbacks: Any = None) -> Any:
        """As ``Optimizer.backward``."""
        return self._optimizer.backward(loss, startup_program, parameter_list, no_grad_set, callbacks)

    def apply_gradients(self, params_grads: Any) -> Any:
        """As ``Optimizer.apply_gradients``."""
        return self._optimizer.apply_gradients(params_grads)

    def minimize(self, loss: Any, startup_program: Program | None = None,  # type: ignore[override]
                 parameter_list: Any = None, no_grad_set: Any = None) -> Any:
        """Appends gradients and updates, then what adds up gradients over all workers.

        Args:
            loss (Variable): [1], what to make small.
            startup_program (Program, optional): the default startup program.
            parameter_list (list, optional): what to train; all by default.
            no_grad_set (set, optional): what gets no gradient.

        Returns:
            tuple: (operators, [(parameter, gradient)]).

        Raises:
            ValueError: settings that do not fit each other. NotImplementedError: settings that are not offered.
        """
        startup = default_startup_program() if startup_program is None else startup_program
        main = loss.block.program
        check_strategy(self._strategy, self._owner.worker_num())
        with program_guard(main, startup):
            optimizer = self._optimizer
            if self._strategy.forward_recompute:
                optimizer = RecomputeOptimizer(optimizer)
                optimizer._set_checkpoints(list(self._strategy.recompute_checkpoints))
            found = optimizer.minimize(loss, startup, parameter_list, no_grad_set)
        owner = self._owner
        owner._origin_program, owner.startup_program = main.clone(), startup
        owner._transpiled_program = main
        self._transpile(main, startup)
        owner.main_program = self._compiled(main, loss)
        return found

    def _transpile(self, main: Program, startup: Program) -> None:
        owner, strategy = self._owner, self._strategy
        if owner.worker_num() == 1:
            return
        config = DistributeTranspilerConfig()
        config.mode, config.collective_mode = strategy.mode, strategy.collective_mode
        config.nccl_comm_num = strategy.nccl_comm_num
        config.use_hierarchical_allreduce = strategy.use_hierarchical_allreduce
        config.hierarchical_allreduce_inter_nranks = strategy.hierarchical_allreduce_inter_nranks
        config.wait_port = False
        endpoints = owner.worker_endpoints()
        DistributeTranspiler(config).transpile(
            trainer_id=owner.worker_index(), trainers=",".join(endpoints), startup_program=startup, program=main,
            current_endpoint=endpoints[owner.worker_index()])

    def _compiled(self, main: Program, loss: Any) -> Any:
        """The program by which replicas of this worker add up; with ops of collectives the program itself."""
        owner, strategy = self._owner, self._strategy
        if strategy.mode == "collective" and owner.worker_num() > 1:
            return main
        if owner.worker_num() > 1:
            strategy.num_trainers, strategy.trainer_id = owner.worker_num(), owner.worker_index()
            strategy.trainers_endpoints = list(owner.worker_endpoints())
        return CompiledProgram(main).with_data_parallel(loss_name=loss.name, build_strategy=strategy,
                                                        exec_strategy=strategy.exec_strategy)


class CollectiveOpBasedOptimizer(CollectiveOptimizer):
    """As :class:`CollectiveOptimizer`: with mode "collective" sums are ops of the program."""


fleet = Collective()

#: Names that Fluid's module has besides.
REACHABLE = (LambConfig, LocalFS, TrainStatus)
