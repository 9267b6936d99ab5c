"""``fleet`` without servers: every worker keeps all parameters, and gradients are summed over the workers."""
from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ....compiler import CompiledProgram
from ....errors import InvalidType, InvalidValue
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

if TYPE_CHECKING:
    from .....schema import Schema

__all__ = ["Collective", "CollectiveOptimizer", "DistributedStrategy", "LambConfig", "DistFCConfig", "TrainStatus",
           "fleet"]

_log = logging.getLogger(__name__)


class Collective(Checkpoints, Fleet):
    """A fleet of workers without servers; ``fleet`` is the one object of this class.

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
        """Like ``Fleet.init``; without a role maker and environment, this is the only worker."""
        super().init(role_maker)
        if isinstance(self._role_maker, LocalRoleMaker):
            self._role_maker = UserDefinedCollectiveRoleMaker(0, ["127.0.0.1:6170"])

    # ---- methods for fleets with servers

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
        """Wraps an optimizer so that its ``minimize`` builds the program of this worker.

        Args:
            optimizer (Optimizer): optimizer of the parameters.
            strategy (DistributedStrategy, optional): settings. Default: the default settings.

        Returns:
            CollectiveOptimizer: the wrapper.

        Raises:
            TypeError: ``optimizer`` or ``strategy`` has the wrong type.
        """
        self._optimizer = CollectiveOptimizer(optimizer, strategy, self)
        return self._optimizer

    # ---- files

    def save_inference_model(self, executor: Any, dirname: str, feeded_var_names: Sequence[str] | None = None,
                             target_vars: Sequence[Any] | None = None, main_program: Program | None = None,
                             export_for_deployment: bool = True, schema: Schema | None = None) -> Any:
        """Like ``fluid.io.save_inference_model``, for the program before it was changed for several workers."""
        _check_executor("save_inference_model", executor)
        program = self._origin_program if main_program is None else main_program
        if not isinstance(program, Program):
            raise InvalidType("fleet.save_inference_model: main_program must be a Program, got %s"
                              % type(program).__name__)
        return _save_inference_model(dirname, feeded_var_names or [], target_vars or [], executor, program, None, None,
                                     export_for_deployment, schema=schema)

    def save_persistables(self, executor: Any, dirname: str, main_program: Program | None = None,
                          filename: str | None = None) -> None:
        """Like ``fluid.io.save_persistables``, for the program before it was changed for several workers."""
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
    """An optimizer with a ``minimize`` that builds the program of a worker among workers.

    Args:
        optimizer (Optimizer): optimizer of the parameters.
        strategy (DistributedStrategy, optional): settings. Default: the default settings.

    Raises:
        TypeError: ``optimizer`` or ``strategy`` has the wrong type.
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
        """Like ``Optimizer.backward``."""
        return self._optimizer.backward(loss, startup_program, parameter_list, no_grad_set, callbacks)

    def apply_gradients(self, params_grads: Any) -> Any:
        """Like ``Optimizer.apply_gradients``."""
        return self._optimizer.apply_gradients(params_grads)

    def minimize(self, loss: Any, startup_program: Program | None = None,  # type: ignore[override]
                 parameter_list: Any = None, no_grad_set: Any = None) -> Any:
        """Appends gradients, updates, and ops that sum gradients over all workers.

        Args:
            loss (Variable): the value to minimize, of shape [1].
            startup_program (Program, optional): the default startup program.
            parameter_list (list, optional): parameters to train. Default: all.
            no_grad_set (set, optional): variables that get no gradient.

        Returns:
            tuple: (operators, [(parameter, gradient)]).

        Raises:
            ValueError: settings contradict each other.
            NotImplementedError: a setting is not supported.
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

    def raiseOptimizeError(self, strategy_name: str, optimize_name: str) -> None:
        """Raises ValueError: an optimizer and a setting of the strategy exclude each other."""
        raise InvalidValue("can not use %s when you set DistStrategy.%s as True" % (optimize_name, strategy_name))

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
        """The compiled program whose replicas sum their gradients; with collective ops, the program itself."""
        owner, strategy = self._owner, self._strategy
        if strategy.mode == "collective" and owner.worker_num() > 1:
            return main
        if owner.worker_num() > 1:
            strategy.num_trainers, strategy.trainer_id = owner.worker_num(), owner.worker_index()
            strategy.trainers_endpoints = list(owner.worker_endpoints())
        return CompiledProgram(main).with_data_parallel(loss_name=loss.name, build_strategy=strategy,
                                                        exec_strategy=strategy.exec_strategy)


class CollectiveOpBasedOptimizer(CollectiveOptimizer):
    """Like :class:`CollectiveOptimizer`; with mode "collective", sums are ops of the program."""

    def minimize(self, losses: Any, scopes: Any = None, startup_programs: Any = None,  # type: ignore[override]
                 parameter_list: Any = None, no_grad_set: Any = None) -> Any:
        """Like :meth:`CollectiveOptimizer.minimize`. ``scopes`` is ignored."""
        return super().minimize(losses, startup_programs, parameter_list, no_grad_set)


fleet = Collective()

#: Other names that Fluid's module exports.
REACHABLE = (LambConfig, LocalFS, TrainStatus)
