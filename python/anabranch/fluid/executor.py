"""Executor: runs programs, one after another, in scopes."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy

from .. import _cluster, _core
from . import arguments, before_run, remote, second_networks
from .bound import Bound
from .compiler import CompiledProgram
from .errors import EnforceNotMet, InvalidType, NotAllowed, Violated
from .fetching import FeedAndFetchOps, as_numpy, fetch_names
from .framework import Program, default_main_program
from .framework.dtype import numpy_dtype
from .framework.places import CUDAPlace, _current_expected_place, devices_of
from .framework.pruning import update_ops
from .reading import run_faults
from .reading.dataset_loop import FetchHandler, Pass
from .reading.feeding import one_feed
from .scope import _switch_scope, global_scope, scope_guard  # noqa: F401
from .user_warnings import warn

if TYPE_CHECKING:
    from .._core import Scope
    from ..checkpoints import Checkpoints
    from ..ranking import RankingMetrics
    from .framework import Variable
    from .hints import Place
    from .reading.dataset_base import DatasetBase
    from .reading.pass_result import PassResult

__all__ = ["Executor", "FetchHandler", "global_scope", "scope_guard"]


def _as_lodtensor(data: Any, place: Any, dtype: Any = None) -> Any:
    """Converts an array to a tensor without sequences. Lists are rejected, because they may contain sequences."""
    if isinstance(data, list):
        raise NotAllowed("a list cannot become a tensor: use numpy.array, or fluid.create_lod_tensor for sequences")
    tensor = _core.LoDTensor()
    tensor.set(numpy.asarray(data, dtype and numpy_dtype(dtype)), place)
    return tensor


def _fetch_var(name: str, scope: Any = None, return_numpy: bool = True) -> Any:
    """Returns the value of a variable of a scope. Default: the global scope."""
    if not isinstance(name, str):
        raise Violated("_fetch_var: name must be a str, got %s" % type(name).__name__)
    found = (global_scope() if scope is None else scope).find_var(name)
    if found is None:
        raise Violated("_fetch_var: the scope has no variable %s; is it persistable?" % name)
    return as_numpy(found.get_tensor()) if return_numpy else found.get_tensor()


#: Programs that one Executor keeps bound; the one not bound for longest goes first.
_KEPT = 64


class _Kept(NamedTuple):
    """A bound program. The arguments of the caller stay alive, so that their ids are not reused."""

    program: Any
    scope: Any
    bound: Bound


class Executor(FeedAndFetchOps):
    """Runs Programs and CompiledPrograms.

    Args:
        place (CPUPlace|CUDAPlace, optional): place of the runs. Default: the first device of a plug-in, or else the
            CPU.

    Raises:
        TypeError: ``place`` has the wrong type.

    Examples:
        >>> import numpy, anabranch.fluid as fluid
        >>> main, startup = fluid.Program(), fluid.Program()
        >>> with fluid.program_guard(main, startup):
        ...     x = fluid.data("x", [None, 2])
        ...     y = fluid.layers.scale(x, 2.0)
        >>> exe = fluid.Executor(fluid.CPUPlace())
        >>> _ = exe.run(startup)
        >>> exe.run(main, feed={"x": numpy.ones((1, 2), "float32")}, fetch_list=[y])[0].tolist()
        [[2.0, 2.0]]
    """

    def __init__(self, place: Place | None = None) -> None:
        if place is None:
            place = _current_expected_place()
        if not isinstance(place, (_core.CPUPlace, CUDAPlace)):
            raise InvalidType("Executor: place must be a CPUPlace or CUDAPlace, got %s" % type(place).__name__)
        self.place = place
        # (id of program, id of scope, and of a part or copy: what it was made for) -> _Kept, the last one at the end
        self._bound: dict[tuple[Any, ...], _Kept] = {}
        self._trainers = remote.Trainers()
        self._closed = False

    def close(self) -> None:
        """Frees all compiled programs. If the executor has run the program of a worker, the parameter servers are
        notified that the worker has finished. A later ``run`` raises RuntimeError.

        Examples:
            >>> import anabranch.fluid as fluid
            >>> fluid.Executor().close()
        """
        self._closed = True
        self._trainers.complete()
        self._bound.clear()

    @arguments.collects_unknown
    def run(self, program: Program | CompiledProgram | None = None,
            feed: dict[str, Any] | Sequence[dict[str, Any]] | None = None,
            fetch_list: Sequence[Any] | Variable | str | None = None, feed_var_name: str = "feed",
            fetch_var_name: str = "fetch", scope: Scope | None = None, return_numpy: bool = True,
            use_program_cache: bool = False, return_merged: bool = True, use_prune: bool = False,
            **unknown: arguments.Unpack[arguments.Nothing]) -> list[Any]:
        """Runs all ops of a program in an order that respects their inputs and outputs.

        Args:
            program (Program|CompiledProgram, optional): program to run. Default: the default main program.
            feed (dict, optional): name -> numpy array, LoDTensor or number. For a data-parallel program, also a list
                with one dict per replica. Names that the program does not have are ignored with a warning.
            fetch_list (list|tuple|Variable|str, optional): values to return: Variables, names, or the result of
                ``minimize``, which enables pruning.
            feed_var_name (str), fetch_var_name (str): ignored, because feeds and fetches need no variables.
            scope (Scope, optional): scope of the persistable variables. Default ``global_scope()``.
            return_numpy (bool): returns numpy arrays; otherwise LoDTensors. Default True.
            use_program_cache (bool): ignored, because compiled programs are always cached and changes are detected.
                Default False.
            return_merged (bool): concatenates the values of the replicas along axis 0. Otherwise returns a list with
                one value per replica. Default True.
            use_prune (bool): runs only the ops that the fetched variables and the program's updates need. Default
                False, which runs all ops.

        Returns:
            list: one value for each item of ``fetch_list``.

        Raises:
            RuntimeError: the executor is closed, a Python list is fed, or a fetched variable has LoD with
                ``return_numpy``.
            TypeError: ``program`` or ``feed`` has the wrong type, or a fetch item is not a Variable or name.
            ValueError: a value differs from its ``fluid.data`` in rank, extent or dtype.
            AssertionError: a program without data parallelism gets several feeds, or ``fetch_list`` has the wrong type.
            EnforceNotMet: all other errors of the program: a missing input, parameters without a value (run the startup
                program first), an unknown fetch, or an error of an op.
            EOFException: a reader in the program has no more data.

        Examples:
            >>> import anabranch.fluid as fluid
            >>> main = fluid.Program()
            >>> with fluid.program_guard(main, fluid.Program()):
            ...     one = fluid.layers.fill_constant([1], "float32", 1.0)
            >>> fluid.Executor().run(main, fetch_list=[one])[0].tolist()
            [1.0]
        """
        if unknown:
            arguments.refuse(Executor.run, unknown)
        if program is None:
            program = default_main_program()
        if scope is None:
            scope = global_scope()
        if before_run.WAITING:
            before_run.tell(program, scope)
        known = self._bound.get((id(program), id(scope)))
        try:
            if known is not None and return_merged and not use_prune:
                result = known[2].again(feed, fetch_list, return_numpy)
                if result is not None:
                    return result
            return self._run(program, feed, fetch_list, scope, return_numpy, return_merged, use_prune)
        except EnforceNotMet as e:
            run_faults.refuse(e, program, feed)
            raise

    def _run(self, program, feed, fetch_list, scope, return_numpy, return_merged, use_prune):
        """Makes a call that is not known yet, or whose values must be converted."""
        if self._closed:
            raise NotAllowed("Executor.run: the executor is closed")
        if not isinstance(scope, _core.Scope):
            raise InvalidType("Executor.run: scope must be a Scope, got %s" % type(scope).__name__)
        if isinstance(program, CompiledProgram):
            self._trainers.note(program._program)
            if (id(program), id(scope)) not in self._bound:
                second_networks.note(program._program, scope)
            result = program._run(self, feed, fetch_list, scope, return_numpy, return_merged)
            self._keep((id(program), id(scope)), _Kept(program, scope, program._bound)).remember(feed, fetch_list)
            return result
        if not isinstance(program, Program):
            raise InvalidType("Executor.run: program must be a Program or CompiledProgram, got %s"
                              % type(program).__name__)
        feed = one_feed(feed)
        names, ops = fetch_names(fetch_list)
        pruned = use_prune or ops
        bound = (self._bind(program, scope, (tuple(feed), tuple(names), tuple(id(op) for op in ops), use_prune),
                            lambda: program._prune_with_input(
                                list(feed), names + ops + (update_ops(program) if use_prune else []))) if pruned
                 else self._bind(program, scope))
        if bound.serves:
            remote.serve(bound.program, scope)
            return []
        self._trainers.note(bound.program)
        result = bound.run(feed, names, return_numpy, True)
        if bound.starts_geo:
            _cluster.begin_geo(remote.trainers_of(bound.program))
        elif not pruned:
            bound.remember(feed, fetch_list)
        return result

    def _bind(self, program, scope, part=(), make=None):
        """Returns the Bound of a program, or of the part or copy of it that ``make`` returns, which ``part`` names."""
        key = (id(program), id(scope), program.desc.version, *part) if part else (id(program), id(scope))
        kept = self._bound.get(key)
        if kept is None:
            made = make() if make else program
            second_networks.note(program, scope)
            if not made.global_block().ops:
                warn("Executor.run: the program is empty; was the layer code run under another program_guard?")
            kept = _Kept(program, scope, Bound(made, scope, 0, "", _core.BuildStrategy(), _core.ExecutionStrategy(),
                                               None, devices_of([self.place])))
        return self._keep(key, kept)

    def _keep(self, key, kept):
        self._bound.pop(key, None)
        self._bound[key] = kept
        if len(self._bound) > _KEPT:
            del self._bound[next(iter(self._bound))]
        return kept.bound

    def train_from_dataset(self, program: Program | CompiledProgram | None = None, dataset: DatasetBase | None = None,
                           scope: Scope | None = None, thread: int = 0, debug: bool = False,
                           fetch_list: Sequence[Variable | str] | None = None, fetch_info: Sequence[str] | None = None,
                           print_period: int = 100, fetch_handler: FetchHandler | None = None,
                           deterministic: bool = False, progress: bool | None = None,
                           checkpoints: Checkpoints | None = None,
                           metrics: RankingMetrics | Sequence[RankingMetrics] | None = None) -> PassResult:
        """Trains on every batch of a Dataset once, without returning to Python. Threads read and parse the files
        while trainers run the program.

        One trainer gives the same bits as feeding the same batches to ``run``. If there are several trainers, each
        takes the next batch that is ready. The trainers share the rows of tables with sparse gradients, and each
        update of a row is atomic. They merge all other parameters every few batches. The results of several trainers
        differ slightly from pass to pass, unless ``deterministic`` is set.

        Args:
            program (Program|CompiledProgram, optional): program to run. Default: the default main program.
            dataset (DatasetBase): data set of ``DatasetFactory``.
            scope (Scope, optional): scope of the persistable variables. Default ``global_scope()``.
            thread (int): number of trainers. Default 0: the number of threads of the dataset. A device has one
                trainer.
            debug (bool): prints the times of the program and of the reader every 100 batches. Default False.
            fetch_list (list of Variable|str, optional): values of the first trainer to print.
            fetch_info (list of str, optional): text for each of these values. Default: their names.
            print_period (int): number of batches of the first trainer between two prints. Default 100.
            fetch_handler (FetchHandler, optional): handler that receives values periodically.
            deterministic (bool): gives the same bits for any value of ``thread``, because only one trainer runs, and
                its ops share the threads. Default False.
            progress (bool, optional): prints a line on stderr with the loss, AUC, samples/s, share of time spent
                waiting for the reader, and time left. Default: prints it continuously in a terminal, and every five
                seconds elsewhere.
            checkpoints (anabranch.Checkpoints, optional): also saves the run in the middle of a pass, and can resume
                it there. Batches are then distributed in the order of the files, even to several trainers.
            metrics (anabranch.RankingMetrics or list of them, optional): further metrics of the pass: exact AUC, AUC by
                group, normalized entropy, calibration. In a pass that trains, predictions are those before the update.

        Returns:
            PassResult: loss, AUC and counts of this pass. Fluid 1.8.5 returns None.

        Raises:
            RuntimeError: there is no dataset, there are no threads, or the executor is closed.
            AssertionError: the lengths of ``fetch_list`` and ``fetch_info`` differ.
            TypeError: an argument has the wrong type.
            EnforceNotMet: errors of the program, of files (with file, line, column and slot) and of commands. The
                first error ends the pass.

        Examples:
            >>> import os, tempfile, anabranch.fluid as fluid
            >>> x, y = fluid.data("x", [None, 1]), fluid.data("y", [None, 1])
            >>> loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y))
            >>> _ = fluid.optimizer.SGD(0.1).minimize(loss)
            >>> exe = fluid.Executor(fluid.CPUPlace())
            >>> _ = exe.run(fluid.default_startup_program())
            >>> path = os.path.join(tempfile.mkdtemp(), "part-0")
            >>> with open(path, "w") as file:
            ...     _ = file.write("1 0.5 1 1.0\\n1 1.0 1 2.0\\n")
            >>> dataset = fluid.DatasetFactory().create_dataset("QueueDataset")
            >>> dataset.set_use_var([x, y])
            >>> dataset.set_filelist([path])
            >>> result = exe.train_from_dataset(fluid.default_main_program(), dataset)
            >>> sorted(result.metrics), result.rows
            (['loss'], 2)
        """
        return self._from_dataset(Pass("train_from_dataset", program, dataset, scope, thread, debug, fetch_list,
                                       fetch_info, print_period, fetch_handler, deterministic, progress, checkpoints,
                                       metrics))

    def infer_from_dataset(self, program: Any = None, dataset: Any = None, scope: Any = None, thread: Any = 0,
                           debug: Any = False, fetch_list: Any = None, fetch_info: Any = None, print_period: Any = 100,
                           fetch_handler: Any = None, deterministic: Any = False, progress: Any = None,
                           metrics: Any = None) -> PassResult:
        """Runs the forward part of a program on every batch of a Dataset. It never trains: the ops of the backward part
        and of optimizers are removed, and the others run in test mode.

        The histograms of ``auc`` start empty and contain the samples of this pass afterwards. The next run that trains
        continues with those of the training. With ``FLAGS_fluid_exact=1.8.5``, both accumulate into the same ones.

        Arguments, result and errors are those of :meth:`train_from_dataset`. The result contains the loss if the
        program minimizes one, or if ``fetch_list`` contains it.
        """
        call = Pass("infer_from_dataset", program, dataset, scope, thread, debug, fetch_list, fetch_info, print_period,
                    fetch_handler, deterministic, progress, metrics=metrics)
        return self._from_dataset(call)

    def _from_dataset(self, call):
        if self._closed:
            raise NotAllowed("Executor.%s: the executor is closed" % call.what)
        program = call.program
        if before_run.WAITING:
            before_run.tell(program, call.scope, call.trains())
        bound = (self._bind(program, call.scope) if call.trains()
                 else self._bind(program, call.scope, ("test",), lambda: program.clone(for_test=True)))
        call.set_program(bound.program)
        one = call.trainers == 1 or call.deterministic or isinstance(self.place, CUDAPlace)
        fetches, averaged, ranked = call.fetches(), call.averaged(), call.ranked()
        key = (call.program.desc.version, 1 if one else call.trainers, tuple(fetches), call.print_period,
               tuple(averaged), tuple(ranked))
        if bound.loop is None or bound.loop[0] != key:
            desc = call.program.desc
            how = {"fetch": fetches, "show_every": call.print_period, "averaged": averaged, "ranked": ranked}
            loop = (_core.TrainLoop.of_one(bound.engine, desc, **how) if one else
                    _core.TrainLoop.of_many(desc, call.scope, call.trainers, **how))
            bound.loop = (key, loop)
        return call.run(bound.loop[1])


arguments.explain(globals())
