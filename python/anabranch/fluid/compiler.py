"""CompiledProgram: a program prepared for data-parallel runs, or for runs with another BuildStrategy."""
from __future__ import annotations

import weakref
from typing import Any

from .. import _cluster
from . import arguments
from .bound import Bound
from .errors import InvalidType, InvalidValue, NotAllowed, NotOffered, Violated
from .fetching import fetch_names
from .framework import OpRole, Program, Variable, cpu_places, cuda_places
from .framework.places import CUDAPlace, check_places, devices_of
from .strategies import BuildStrategy, ExecutionStrategy

__all__ = ["CompiledProgram", "ExecutionStrategy", "BuildStrategy"]


def _program_of(given: Any) -> Program:
    """The program of a Program or of a core.Graph."""
    if isinstance(given, Program) and not isinstance(given, CompiledProgram):
        return given
    from .framework.graph_nodes import Graph
    from .framework.graph_walks import program_of
    if isinstance(given, Graph):
        return Program._construct_from_desc(program_of(given)[0])
    raise InvalidType("CompiledProgram: program_or_graph must be a Program or a core.Graph, got %s"
                      % type(given).__name__)


class CompiledProgram:
    """A Program together with the settings for its runs. It is compiled when it first runs.

    Args:
        program_or_graph (Program|core.Graph): program to run, or a graph, which must not be changed afterwards.
        build_strategy (BuildStrategy, optional): settings. Default: the default settings.

    Raises:
        TypeError: an argument has the wrong type.

    Examples:
        >>> import numpy, anabranch.fluid as fluid
        >>> main = fluid.Program()
        >>> with fluid.program_guard(main, fluid.Program()):
        ...     x = fluid.data("x", [None, 2])
        ...     y = fluid.layers.scale(x, 2.0)
        >>> compiled = fluid.CompiledProgram(main).with_data_parallel(places=fluid.cpu_places(2))
        >>> exe = fluid.Executor(fluid.CPUPlace())
        >>> exe.run(compiled, feed={"x": numpy.ones((4, 2), "float32")}, fetch_list=[y])[0].shape
        (4, 2)
    """

    def __init__(self, program_or_graph: Any, build_strategy: BuildStrategy | None = None) -> None:
        self._program = _program_of(program_or_graph)
        self._build_strategy = self._strategy(build_strategy, BuildStrategy, "build_strategy")
        self._exec_strategy = None
        self._is_data_parallel = False
        self._is_inference = False
        self._loss_name: str | None = None
        self._share_vars_from: CompiledProgram | None = None
        self._places: list[Any] | None = None
        self._bound: Bound | None = None
        self._scope = None
        self._place = None

    @property
    def _engine(self):
        return None if self._bound is None else self._bound.engine

    _executor = _engine

    def __repr__(self) -> str:
        from .._terminal import counted
        return "CompiledProgram(%s%s%s)" % (
            counted(len(self._program.global_block().ops), "op"), ", data parallel" if self._is_data_parallel else "",
            ", loss %s" % self._loss_name if self._loss_name else "")

    @staticmethod
    def _strategy(strategy, cls, what):
        if strategy is not None and not isinstance(strategy, cls):
            raise InvalidType("CompiledProgram: %s must be a %s, got %s"
                              % (what, cls.__name__, type(strategy).__name__))
        return strategy

    # ---- settings

    def with_data_parallel(self, loss_name: str | None = None, build_strategy: BuildStrategy | None = None,
                           exec_strategy: ExecutionStrategy | None = None,
                           share_vars_from: CompiledProgram | None = None, places: Any = None) -> CompiledProgram:
        """Makes the program run on several replicas, each with a slice of the batch.

        Args:
            loss_name (str, optional): name of the loss; required if the program trains. ``""``: there is none.
            build_strategy (BuildStrategy, optional): replaces the strategy of the constructor.
            exec_strategy (ExecutionStrategy, optional): settings. Default: the default settings.
            share_vars_from (CompiledProgram, optional): program whose variables are used. It must be data parallel,
                and it must have run before.
            places (list of CPUPlace|list of CUDAPlace|CPUPlace|CUDAPlace, optional): places of the replicas, which
                must be of the same kind as the executor's place. Default: ``cpu_places()`` or ``cuda_places()`` at
                the first run.

        Returns:
            CompiledProgram: this one.

        Raises:
            AssertionError: the method is called twice, after an inference compile, or without a place; or, at run
                time, the places and the executor are of different kinds.
            TypeError: an argument has the wrong type.
        """
        if self._is_data_parallel:
            raise Violated("CompiledProgram.with_data_parallel must be called only once")
        if self._is_inference:
            raise Violated("CompiledProgram.with_data_parallel must not follow with_inference_optimize")
        if isinstance(loss_name, Variable):
            loss_name = loss_name.name
        if loss_name is not None and not isinstance(loss_name, str):
            raise InvalidType("with_data_parallel: loss_name must be a str, got %s" % type(loss_name).__name__)
        if share_vars_from is not None and not isinstance(share_vars_from, CompiledProgram):
            raise InvalidType("with_data_parallel: share_vars_from must be a CompiledProgram, got %s"
                              % type(share_vars_from).__name__)
        if build_strategy is not None:
            self._build_strategy = self._strategy(build_strategy, BuildStrategy, "build_strategy")
        self._exec_strategy = self._strategy(exec_strategy, ExecutionStrategy, "exec_strategy")
        if places is not None:
            self._places = check_places(places, "with_data_parallel")
        self._loss_name = loss_name
        self._share_vars_from = share_vars_from
        self._is_data_parallel = True
        return self

    def with_inference_optimize(self, config: Any) -> None:
        """Raises an error: other inference engines are not supported.

        Raises:
            AssertionError: it follows ``with_data_parallel``.
            TypeError: ``config`` is not supported.
        """
        if self._is_data_parallel:
            raise Violated("CompiledProgram.with_inference_optimize must not follow with_data_parallel")
        raise InvalidType("with_inference_optimize: config must be a NativeConfig or AnalysisConfig, got %s: run the "
                          "program of load_inference_model with an Executor" % type(config).__name__)

    _with_inference_optimize = with_inference_optimize

    # ---- compiling

    def _compile(self, scope, place):
        """Binds the program to a scope. ValueError if it is bound to another one."""
        if self._bound is not None:
            if scope is not self._scope:
                raise InvalidValue("CompiledProgram: it was compiled for another scope: create another CompiledProgram")
            if place != self._place:
                raise InvalidValue("CompiledProgram: it was compiled for another place: create another CompiledProgram")
            return self
        build = self._build_strategy or BuildStrategy()
        execution = self._exec_strategy or ExecutionStrategy()
        share = None
        if self._is_data_parallel:
            self._choose_places(place)
            self._check_program()
            share = self._shared_engine()
            self._check_trainers(build)
            _cluster.join_trainers(build)
        if build._passes is not None:
            build._passes.check(self._program)
            if build._passes.graphviz_path():
                build._values["debug_graphviz_path"] = build._passes.graphviz_path()
        settings = build._to_core()
        if self._program._takes_steps_together:
            settings.async_mode = False
        devices = devices_of(self._places if self._is_data_parallel else [place])
        self._bound = Bound(self._program, scope, self._replicas(), self._loss_name or "", settings,
                            execution._to_core(bool(devices)), share, devices)
        self._scope, self._place = scope, place
        self._build_strategy, self._exec_strategy = build, execution
        build._compiled = weakref.ref(self)
        build._finalize()
        return self

    def _choose_places(self, place):
        """Returns the places of the replicas: the given ones, or all places of the executor's kind."""
        if self._places is None:
            self._places = cuda_places() if isinstance(place, CUDAPlace) else cpu_places()
        elif type(self._places[0]) is not type(place):
            raise Violated("with_data_parallel: places are of a different kind than the executor's: %s and %s"
                           % (self._places[0], place))

    def _replicas(self):
        """The number of replicas; 0 without data parallelism."""
        return len(self._places) if self._is_data_parallel else 0

    def _check_program(self):
        """Checks that the program supports data parallelism."""
        desc = self._program.desc
        if self._loss_name is None:
            for op in desc.block(0).ops():
                if op.has_attr("op_role") and op.attr("op_role") & OpRole.Backward:
                    raise Violated("with_data_parallel: loss_name must be given for a program with a backward part")
        elif self._loss_name and desc.block(0)._find_var(self._loss_name) is None:
            raise InvalidValue("with_data_parallel: loss_name must be a variable of the program, got %r"
                               % self._loss_name)
        if self._replicas() > 1:
            for i in range(1, desc.num_blocks()):
                for op in desc.block(i).ops():
                    if op.has_attr("op_role") and op.attr("op_role") & OpRole.Optimize and op.attr("op_role_var"):
                        raise NotOffered("with_data_parallel: %s updates a parameter inside control flow, which is "
                                         "not supported on several replicas" % op._type)

    def _check_trainers(self, build):
        endpoints = self._program._trainers_endpoints
        if endpoints and not build._finalized:
            if build.num_trainers > 1 and build.num_trainers != len(endpoints):
                raise Violated("BuildStrategy.num_trainers must be the number of trainers of the program (%d), got %d"
                               % (len(endpoints), build.num_trainers))
            build.trainers_endpoints = list(endpoints)

    def _shared_engine(self):
        other = self._share_vars_from
        if other is None:
            return None
        if not other._is_data_parallel:
            raise InvalidValue("share_vars_from must be a data-parallel CompiledProgram")
        if other._engine is None:
            raise InvalidValue("share_vars_from: the CompiledProgram has not run yet: run it first")
        return other._engine

    # ---- running

    def _run(self, executor, feed, fetch_list, scope, return_numpy, return_merged):
        self._compile(scope, executor.place)
        if not feed and self._exec_strategy._dry_run:
            return self._bound.run_nothing()
        names, _ = fetch_names(fetch_list)
        result = self._bound.run(feed, names, return_numpy, bool(return_merged) or not self._is_data_parallel)
        if self._build_strategy.debug_graphviz_path:
            from ..drawing import draw_new  # few programs draw
            draw_new(self._build_strategy.debug_graphviz_path)
        return result

    def draw(self, path: str, variables: bool = True) -> None:
        """Draws the graph of the last run, after all passes: every replica's operators and the sums between them.

        Args:
            path (str): file to write: .svg or .dot, or, if Graphviz is installed, .png, .pdf, .ps or .jpg.
            variables (bool): draws variables between operators. If False, edges connect operators directly. Default
                True.

        Returns:
            None.

        Raises:
            RuntimeError: nothing has run yet.
            ValueError: the suffix is unknown.
            NotImplementedError: the suffix needs Graphviz, which is not installed.
            OSError: the file cannot be written.
        """
        dot = self._engine.graph_dot() if self._engine is not None else ""
        if not dot:
            raise NotAllowed("CompiledProgram.draw: there is no graph yet: run the program first")
        from ..drawing import parse_dot, write_picture
        graph = parse_dot(dot)
        write_picture(graph if variables else graph.boxes(), path)

    def explain(self) -> str:
        """Lists the graph passes that were applied to the graph of the last run, and those that were not, with reasons.

        Returns:
            str: nodes, replicas, threads and memory of temporaries, then one line per pass; before the first run, the
            text of ``BuildStrategy.explain``.
        """
        if self._engine is None:
            return (self._build_strategy or BuildStrategy()).explain()
        return self._engine.explain()


arguments.explain(globals())
