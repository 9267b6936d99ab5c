"""ParallelExecutor: data-parallel training with a single object. This is the interface of Fluid 0.x to 1.5, which all
1.x programs can use."""
from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import _core, _launched
from . import arguments
from .compiler import CompiledProgram
from .described import Described
from .errors import InvalidType, InvalidValue, Unsupported, Violated
from .executor import Executor
from .framework import Program, Variable, cpu_places, cuda_places, default_main_program, gpu
from .scope import global_scope
from .strategies import BuildStrategy, ExecutionStrategy
from .user_warnings import warn

if TYPE_CHECKING:
    from .._core import Scope

__all__ = ["ParallelExecutor"]


class ParallelExecutor(Described):
    """Runs a program on several replicas, each with a slice of the batch.

    Args:
        use_cuda (bool): False: one replica for each of ``cpu_places()`` (environment variable ``CPU_NUM``). True: one
            replica for each of ``cuda_places()``, which requires a device plug-in.
        loss_name (str, optional): name of the loss. Required for training.
        main_program (Program, optional): program to run. Default: the default main program.
        share_vars_from (ParallelExecutor, optional): ParallelExecutor whose variables are used, for tests during
            training.
        exec_strategy (ExecutionStrategy, optional): settings. Default: the default settings.
        build_strategy (BuildStrategy, optional): settings. Default: the default settings.
        num_trainers (int): number of processes. Default 1.
        trainer_id (int): number of this process. Default 0.
        scope (Scope, optional): scope of the variables. Default ``global_scope()``. Ignored, with a warning, if
            ``share_vars_from`` is given.

    Raises:
        AssertionError: ``use_cuda`` is set without a device plug-in.
        TypeError: an argument has the wrong type.
        ValueError: arguments of very old versions, which belong to the strategies.

    Examples:
        >>> import numpy, anabranch.fluid as fluid
        >>> main = fluid.Program()
        >>> with fluid.program_guard(main, fluid.Program()):
        ...     x = fluid.data("x", [None, 2])
        ...     y = fluid.layers.scale(x, 2.0)
        >>> pe = fluid.ParallelExecutor(use_cuda=False, main_program=main)
        >>> pe.run([y.name], feed={"x": numpy.ones((2, 2), "float32")})[0].shape
        (2, 2)
    """

    def __init__(self, use_cuda: bool, loss_name: str | None = None, main_program: Program | None = None,
                 share_vars_from: Any = None, exec_strategy: ExecutionStrategy | None = None,
                 build_strategy: BuildStrategy | None = None, num_trainers: int = 1, trainer_id: int = 0,
                 scope: Scope | None = None, **kwargs: Any) -> None:
        if kwargs:
            raise InvalidValue("ParallelExecutor: unknown arguments %s; set them in ExecutionStrategy or BuildStrategy"
                               % ", ".join(sorted(kwargs)))
        if use_cuda and not _core.devices_offered():
            gpu.ask("ParallelExecutor(use_cuda=True)", "use_cuda=False", Violated)
            use_cuda = False
        if share_vars_from is not None and not isinstance(share_vars_from, ParallelExecutor):
            raise InvalidType("ParallelExecutor: share_vars_from must be a ParallelExecutor, got %s"
                              % type(share_vars_from).__name__)
        if main_program is not None and not isinstance(main_program, Program):
            raise InvalidType("ParallelExecutor: main_program must be a Program, got %s" % type(main_program).__name__)
        if scope is not None and not isinstance(scope, _core.Scope):
            raise InvalidType("ParallelExecutor: scope must be a Scope, got %s" % type(scope).__name__)
        build = self._strategy(build_strategy, BuildStrategy, "build_strategy")
        execution = self._strategy(exec_strategy, ExecutionStrategy, "exec_strategy")
        self._set_trainers(build, num_trainers, trainer_id)
        self._scope = self._choose_scope(scope, share_vars_from)
        self._share_vars_from = share_vars_from
        self._places: list[Any] = share_vars_from._places if share_vars_from is not None else (
            cuda_places() if use_cuda else cpu_places())
        compiled = CompiledProgram(main_program or default_main_program())
        self._compiled_program: CompiledProgram = compiled.with_data_parallel(
            loss_name=loss_name, build_strategy=build, exec_strategy=execution,
            share_vars_from=share_vars_from._compiled_program if share_vars_from is not None else None,
            places=self._places)
        self._executor = Executor(self._places[0])
        self._drop_after = execution.num_iteration_per_drop_scope
        self._runs_since_drop: int | None = None

    @staticmethod
    def _strategy(strategy, cls, what):
        if strategy is None:
            return cls()
        if not isinstance(strategy, cls):
            raise InvalidType("ParallelExecutor: %s must be a %s, got %s"
                              % (what, cls.__name__, type(strategy).__name__))
        return strategy

    @staticmethod
    def _set_trainers(build, num_trainers, trainer_id):
        if num_trainers != 1:
            _launched.asked()
        if num_trainers != 1 and build.num_trainers != num_trainers:
            sys.stderr.write("ParallelExecutor: build_strategy.num_trainers becomes %s\n" % num_trainers)
            build.num_trainers = num_trainers
        if trainer_id != 0 and build.trainer_id != trainer_id:
            sys.stderr.write("ParallelExecutor: build_strategy.trainer_id becomes %s\n" % trainer_id)
            build.trainer_id = trainer_id

    @staticmethod
    def _choose_scope(scope, share_vars_from):
        if share_vars_from is not None:
            if scope is not None:
                warn("ParallelExecutor: scope is ignored, that of share_vars_from is used")
            return share_vars_from._scope
        return global_scope() if scope is None else scope

    def _ready(self):
        if self._share_vars_from is not None:
            self._share_vars_from._ready()
        self._compiled_program._compile(self._scope, self._executor.place)

    def run(self, fetch_list: Sequence[Any], feed: dict[str, Any] | Sequence[dict[str, Any]] | None = None,
            feed_dict: Any = None, return_numpy: bool = True) -> list[Any]:
        """Runs one step on all replicas.

        Args:
            fetch_list (list): Variables or names to return.
            feed (dict|list of dict, optional): a whole batch, which is split into one slice per replica, or one dict
                per replica.
            feed_dict (optional): old name of ``feed``.
            return_numpy (bool): returns numpy arrays; otherwise LoDTensors. Default True.

        Returns:
            list: for each fetched variable, the values of all replicas, concatenated along axis 0.

        Raises:
            ValueError: the length of a feed list is not ``device_count``. Other errors are those of ``Executor.run``.
        """
        if feed_dict is not None:
            if feed is None:
                feed = feed_dict
            warn("ParallelExecutor.run: feed_dict is the old name of feed", DeprecationWarning)
        if isinstance(fetch_list, (Variable, str)):
            fetch_list = [fetch_list]
        self._ready()
        values = self._executor.run(self._compiled_program, feed=feed, fetch_list=fetch_list, scope=self._scope,
                                    return_numpy=return_numpy)
        self._runs_since_drop = ((self._runs_since_drop or 0) + 1) % max(self._drop_after, 1)
        return values

    @property
    def device_count(self) -> int:
        """int: number of replicas."""
        return len(self._places)

    def drop_local_exe_scopes(self) -> None:
        """Releases the memory of all temporaries. The next run allocates new memory."""
        if self._compiled_program._engine is not None:
            self._compiled_program._engine.drop_temporaries()
        self._runs_since_drop = 0

    def _need_create_local_exe_scopes(self) -> bool:
        """Whether Fluid 1.8.5 would create new scopes in the next run: after :meth:`drop_local_exe_scopes`, and after
        each ``num_iteration_per_drop_scope`` runs."""
        if self._runs_since_drop is None:
            raise InvalidType("ParallelExecutor: no scopes before the first run")
        return self._runs_since_drop == 0


ParallelExecutor.ExecutionStrategy = ExecutionStrategy  # type: ignore[attr-defined]
ParallelExecutor.BuildStrategy = BuildStrategy  # type: ignore[attr-defined]


class CoreParallelExecutor:
    """``core.ParallelExecutor``: the settings of :class:`ParallelExecutor`, under another name.

    >>> import anabranch.fluid as fluid
    >>> fluid.core.ParallelExecutor.ExecutionStrategy is fluid.ExecutionStrategy
    True
    """

    ExecutionStrategy, BuildStrategy = ExecutionStrategy, BuildStrategy

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise Unsupported("core.ParallelExecutor is not available: use fluid.ParallelExecutor or fluid.CompiledProgram")


arguments.explain(globals())
