"""Passes over a Dataset, as ``train_from_dataset`` and ``infer_from_dataset`` run them."""
from __future__ import annotations

import math
import sys
from typing import Any

from ... import _core
from ..areas import warn_of_one_class
from ..compiler import CompiledProgram
from ..errors import InvalidType, InvalidValue, NotAllowed, NotFound, Unsupported, Violated, require
from ..fetching import fetch_names
from ..framework import OpRole, Program, Variable, default_main_program
from ..framework.dtype import VarType
from ..framework.updates import trains
from ..scope import global_scope
from ..user_warnings import warn
from . import metric_states, missing_feeds, same_data, test_data
from .dataset_base import whole_number
from .pass_output import PassOutput, text_of
from .pass_result import PassResult

_AVERAGED = (VarType.FP32, VarType.FP64, VarType.INT32, VarType.INT64)


class FetchHandler:
    """Receives values of variables periodically while a program trains on a Dataset.

    Derive from it and override ``handler``, which a separate thread calls with values of the first trainer thread.

    Args:
        var_dict (dict): variables to receive: name -> Variable.
        period_secs (int): seconds between calls. Default 60.

    Raises:
        AssertionError: ``var_dict`` is None.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> class Show(fluid.executor.FetchHandler):
        ...     def handler(self, res_dict):
        ...         print(sorted(res_dict))
        >>> Show({"loss": fluid.data("x", [1])}, period_secs=5).period_secs
        5
    """

    def __init__(self, var_dict: dict[str, Any] | None = None, period_secs: int = 60) -> None:
        if var_dict is None:
            raise Violated("FetchHandler: var_dict must be a dict from name to Variable, got None")
        self.var_dict = var_dict
        self.period_secs = period_secs

    def handler(self, res_dict: Any) -> None:
        """Override it. ``res_dict`` maps names to numpy arrays, or to None while there is no value."""
        for name, value in res_dict.items():
            sys.stdout.write("%s: %s\n" % (name, "nothing yet" if value is None else text_of(value)))

    @staticmethod
    def help() -> None:
        """Prints an example."""
        sys.stdout.write("class Show(fluid.executor.FetchHandler):\n"
                         "    def handler(self, res_dict):\n"
                         "        print(res_dict['loss'])\n"
                         "exe.train_from_dataset(main, dataset, fetch_handler=Show({'loss': loss}, period_secs=60))\n")


def loss_of(program: Program) -> str | None:
    """Name of the loss that a program minimizes; None if it does not train."""
    for op in program.desc.block(0).ops():
        if op._type == "fill_constant" and _role(op) == OpRole.Backward | OpRole.Loss:
            return str(op.output("Out")[0][:-len("@GRAD")])
    return None


def _role(op):
    return op.attr("op_role") if op.has_attr("op_role") else 0


class Pass:
    """One call of ``train_from_dataset`` or ``infer_from_dataset``, with checked arguments.

    Args: those of the call, and ``what``, its name. Raises as documented there.
    """

    def __init__(self, what: Any, program: Any, dataset: Any, scope: Any, thread: Any, debug: Any, fetch_list: Any,
                 fetch_info: Any, print_period: Any, fetch_handler: Any, deterministic: Any, progress: Any,
                 checkpoints: Any = None, metrics: Any = None) -> None:
        self.what = what
        if dataset is None:
            raise NotAllowed("%s: dataset must be given" % what)
        if not hasattr(dataset, "_open"):
            raise InvalidType("%s: dataset must be made by DatasetFactory, got %s" % (what, type(dataset).__name__))
        self.dataset = dataset
        program = default_main_program() if program is None else program
        self.program = program._program if isinstance(program, CompiledProgram) else program
        if not isinstance(self.program, Program):
            raise InvalidType("%s: program must be a Program or CompiledProgram, got %s"
                              % (what, type(program).__name__))
        self.set_program(self.program)
        self.scope = global_scope() if scope is None else scope
        if not isinstance(self.scope, _core.Scope):
            raise InvalidType("%s: scope must be a Scope, got %s" % (what, type(scope).__name__))
        self.trainers = self._trainers(thread)
        self.deterministic = bool(deterministic)
        self.debug = bool(debug)
        self._set_fetches(fetch_list, fetch_info)
        self._set_metrics(metrics)
        require(isinstance(print_period, int) and print_period > 0,
                "%s: print_period must be a number of batches, at least 1, got %r" % (what, print_period))
        self.print_period = print_period
        if fetch_handler is not None and not isinstance(fetch_handler, FetchHandler):
            raise InvalidType("%s: fetch_handler must be a FetchHandler, got %s" % (what, type(fetch_handler).__name__))
        self.handler = fetch_handler
        self.progress = progress
        if not (checkpoints is None or hasattr(checkpoints, "_prepare")):
            raise InvalidType("%s: checkpoints must be anabranch.Checkpoints, got %s"
                              % (what, type(checkpoints).__name__))
        if checkpoints is not None and dataset._queue is not None:
            raise Unsupported("%s: checkpoints are not supported with a file_queue, whose order of files is not fixed: "
                              "use set_filelist(fleet.split_files(files))" % what)
        self.checkpoints = checkpoints

    def _trainers(self, thread):
        require(isinstance(thread, int), "%s: thread must be an int, got %r" % (self.what, thread))
        thread = whole_number(thread, "%s: thread" % self.what)
        count = thread if thread > 0 else self.dataset.thread_num
        if count <= 0:
            raise NotAllowed("%s: thread is 0 and the dataset sets none: call dataset.set_thread(n)" % self.what)
        return count

    def _set_fetches(self, fetch_list, fetch_info):
        if isinstance(fetch_list, (Variable, str)):
            fetch_list = [fetch_list]
        self.shown = fetch_names(fetch_list)[0]
        if isinstance(fetch_info, str):
            fetch_info = [fetch_info]
        self.info = self.shown if fetch_info is None else list(fetch_info)
        require(len(self.info) == len(self.shown), "%s: fetch_info must have one text for each of "
                "fetch_list (%d), got %d" % (self.what, len(self.shown), len(self.info)))

    def _set_metrics(self, metrics):
        self._metrics = [] if metrics is None else list(metrics) if isinstance(metrics, (list, tuple)) else [metrics]
        for one in self._metrics:
            if not hasattr(one, "_variables"):
                raise InvalidType("%s: metrics must be anabranch.RankingMetrics, got %s"
                                  % (self.what, type(one).__name__))
            if one._variables[0] is None:
                raise InvalidValue("%s: metrics must name the variables of the prediction and the label" % self.what)
        prefixes = [one.prefix for one in self._metrics]
        if len(set(prefixes)) < len(prefixes):
            raise InvalidValue("%s: metrics must have different prefixes, got %r" % (self.what, prefixes))

    def trains(self) -> bool:
        """Whether the pass trains: it is one of ``train_from_dataset``."""
        return self.what == "train_from_dataset"

    def set_program(self, program: Any) -> None:
        """Sets the program that runs: the given one, or its copy for tests."""
        loss = loss_of(self.program)
        self.program = program
        self._loss = loss if loss is not None and program.global_block().has_var(loss) else None
        self.aucs = metric_states.aucs(program)
        self._auc = next((op.area for op in self.aucs if op.over_all), None)

    # ---- fetches: printed variables, those of the handler, and those of the progress line

    def watched(self) -> Any:
        """(loss, auc): names of the program's loss and of its running AUC, each None if there is none."""
        return self._loss, self._auc

    def fetches(self) -> Any:
        """Every name once, in a fixed order."""
        names = dict.fromkeys(self.shown)
        names.update(dict.fromkeys(name for name in self.watched() if name))
        names.update(dict.fromkeys(name for one in self._metrics for name in one._variables if name))
        if self.handler is not None:
            names.update(dict.fromkeys(fetch_names(list(self.handler.var_dict.values()))[0]))
        return list(names)

    def ranked(self) -> list[tuple[int | None, ...]]:
        """list of tuple: for each of the metrics the fetches of the prediction, the label and the group, or None."""
        places = {name: place for place, name in enumerate(self.fetches())}
        return [tuple(places.get(name) for name in one._variables) for one in self._metrics]

    def averaged(self) -> list[int]:
        """list of int: the fetches with a mean over the pass: the loss, and shown variables of one element."""
        areas = {op.area for op in self.aucs}
        return [i for i, name in enumerate(self.fetches())
                if name not in areas and (name == self._loss or name in self.shown) and self._is_number(name)]

    def _is_number(self, name):
        variable = self.program.global_block()._find_var_recursive(name)
        return (variable is not None and variable.type == VarType.LOD_TENSOR and tuple(variable.shape) in ((1,), ())
                and variable.dtype in _AVERAGED)

    def run(self, loop: Any) -> PassResult:
        """Runs the pass to its end."""
        if self.trains():
            if not trains(self.program) and self.program.global_block().ops:
                warn("%s: the program trains nothing: pass the program on which minimize was called, not one that was "
                     "cloned for tests; infer_from_dataset evaluates without training" % self.what)
            if self.checkpoints is None and getattr(self.program, "_saved_by_runs", False):
                warn("train_from_dataset: a run of Checkpoints does not count the steps of this pass, so that it saves "
                     "nothing before its end and resumes in the wrong place: pass checkpoints=")
            self.dataset._warn_of_rows(self.what, self.program)
            test_data.warn_of_test_files(self._trained_on(), self.dataset.filelist)
            metric_states.restore(self.program, self.scope)
            done = self._measured(loop)
            same_data.remember(self._trained_on(), self.dataset.filelist, self.dataset._share)
            return done
        same_data.warn_of_trained_lines(self._trained_on(), self.dataset.filelist, self.dataset._share)
        with metric_states.Fresh(self.aucs, self.scope):
            return self._measured(loop)

    def _trained_on(self):
        return getattr(self.program, "_trained_on", {})

    def _measured(self, loop):
        self.dataset._warn_before_a_pass(self.what)
        before = metric_states.histograms(self.aucs, self.scope)
        done = self._run_whole(loop)
        counts = metric_states.counts(self.aucs, before, metric_states.histograms(self.aucs, self.scope))
        names = self.fetches()
        values = {name: found.area() for name, found in counts.items()}
        values.update({names[i]: mean for i, mean in zip(self.averaged(), done["means"])})
        known = {"loss": self._loss, "auc": self._auc}
        known.update(zip(self.info, self.shown))
        if done["rows"] and self._loss is not None and math.isnan(values.get(self._loss, 0)):
            warn("%s: the mean loss of the pass is NaN. With FLAGS_check_nan_inf=1, a run stops at the first operator "
                 "whose output has NaN" % self.what)
        ranked = [one._result(found) for one, found in zip(self._metrics, loop.ranking())]
        chosen = {name: counts[variable] for name, variable in known.items() if variable in counts}
        labels = [(one.positives.sum(), one.negatives.sum()) for one in chosen.values()]
        for pair in [*labels, *(result._labels() for result in ranked)][:1]:
            warn_of_one_class(self.what, *pair)
        if not self.trains():
            for result in ranked:
                result._warn_of_reversed_ranks()
        return PassResult({name: values[variable] for name, variable in known.items() if variable in values},
                          done, self.dataset.statistics()["bad_rows"],
                          chosen, ranked, self.dataset._lines_of_a_pass())

    def _run_whole(self, loop):
        """Returns the progress at the end of the pass, with the means of the averaged fetches."""
        watch = PassOutput(self, loop)
        if self.dataset._queue is not None:
            return self._run_queue(loop, watch)
        if self.checkpoints is not None:
            self.checkpoints._prepare(self.dataset)
        stream = self.dataset._open(ordered=self.deterministic or self.trainers == 1 or self.checkpoints is not None)
        try:
            done = self._train(loop, stream, watch)
        except BaseException as error:
            watch.interrupted()
            self.dataset._warn_of_uneven_rows(stream.uneven())  # they may be the cause
            if isinstance(error, NotFound):
                missing_feeds.refuse(error, self.program, [name for name, *_ in self.dataset._slots], self.what)
            raise
        finally:
            stream.close()
            watch.end()
        watch.close(done)
        return done

    def _run_queue(self, loop, watch):
        """Runs one file after the other, each a part of the pass, done when the servers have its gradients."""
        queue = self.dataset._queue
        try:
            with queue._pass() as files:
                path = files.take()
                done = self._run_file(loop, watch, path, files, first=True)  # an empty part if there is no file
                while path is not None:
                    files.trained()
                    path = files.take()
                    if path is not None:
                        done = self._run_file(loop, watch, path, files, first=False)
        except BaseException:
            watch.interrupted()
            raise
        finally:
            watch.end()
        queue._passed()
        done = dict(done, share_done=1.0)
        watch.close(done)
        return done

    def _run_file(self, loop, watch, path, files, first):
        """Runs one file. dict: progress of the pass so far."""
        count = max(1, len(self.dataset.filelist))

        def whole(progress):
            return dict(progress, share_done=1 - (files.left - progress["share_done"]) / count)
        stream = self.dataset._open_next(path, self.deterministic or self.trainers == 1, first)
        try:
            return loop.run(stream, lambda p: watch.tick(whole(p)),
                            lambda batch, values, p: watch.show(batch, values, whole(p)), not first)
        finally:
            stream.close()

    def _train(self, loop, stream, watch):
        if self.checkpoints is None:
            return loop.run(stream, watch.tick, watch.show)

        def tick(progress):
            watch.tick(progress)
            self.checkpoints._tick()
        return self.checkpoints._train(stream, lambda part, go_on: loop.run(part, tick, watch.show, go_on))
