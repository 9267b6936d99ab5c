"""Runs one process of a script that uses ``fleet`` for some steps, under a different strategy.

    python -m anabranch.tuning.sampled train.py --epochs 1

``anabranch strategies`` starts it as servers and workers. A server runs as the script defines it. A worker makes
``ANABRANCH_SAMPLE`` steps, ends the script, and writes its measurements as JSON to the file
``ANABRANCH_SAMPLE_RESULT`` with its number as the suffix.
"""
from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import _cluster, run
from ..fluid.fetching import fetch_names
from ..fluid.incubate.fleet.parameter_server import distribute_transpiler as servers
from ..fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import (
    GeoStrategy,
    StrategyFactory,
)
from ..fluid.reading import metric_states
from ..fluid.reading.reader_source import ReaderSource
from ..looking import scripts
from . import batches

STRATEGY, STEPS, RESULT, GEO_EVERY = ("ANABRANCH_SAMPLE_STRATEGY", "ANABRANCH_SAMPLE", "ANABRANCH_SAMPLE_RESULT",
                                      "ANABRANCH_SAMPLE_GEO_EVERY")


def _first_reader(program: Any, source: ReaderSource) -> list[str] | None:
    """The variables into which the program reads the batches of this source, if it reads from it first."""
    for op in program.desc.block(0).ops():
        if op._type == "read":
            return op.output("Out") if program._readers.get(op.input("Reader")[0]) is source else None
    return None


class Sample:
    """Counts and times the steps of a worker.

    Args:
        steps (int): number of steps, at least 2. The first tenth, at most ten, is not timed: kernels and threads are
            chosen there.
    """

    def __init__(self, steps: int) -> None:
        self._steps, self._warm = steps, min(max(1, steps // 10), 10)
        self._made, self._rows, self._began_s, self._last_s = 0, 0, 0.0, 0.0
        self._losses: list[float] = []
        self._step: Any = None
        self._by_rows: list[str] | None = None
        self._read: list[dict[str, Any]] = []
        self._note_batches()

    def _note_batches(self) -> None:
        """From now on ``_read`` has the batches, one per replica, that a step has taken from its first reader."""
        taken = ReaderSource.take

        def take(source: ReaderSource, replicas: Any) -> Any:
            found = taken(source, replicas)
            names = _first_reader(self._step.program, source) if self._step is not None else None
            if names is not None:
                self._read = [dict(zip(names, batch)) for batch in found]
            return found
        setattr(ReaderSource, "take", take)  # noqa: B010

    def see(self, step: scripts.Step) -> Any:
        """Called for each step of the script."""
        self._step = step
        if step.dataset is not None:
            done = scripts.short_pass(step, self._steps)
            self._rows, self._made = int(done["rows"]), int(done["batches"])
            self._last_s = time.perf_counter()
            self._began_s = self._last_s - done["seconds"]
            raise scripts.Enough
        if self._made == self._warm:
            self._began_s = time.perf_counter()
        result = step.go()
        self._made += 1
        if self._made > self._warm:
            self._last_s = time.perf_counter()
            self._count(step, result)
        if self._made == self._steps:
            raise scripts.Enough
        return result

    def _count(self, step: scripts.Step, result: Any) -> None:
        feeds: list[Any] = [step.feed] if isinstance(step.feed, Mapping) else list(step.feed or ())
        feeds = feeds if any(feeds) else self._read or [{}]
        if self._by_rows is None:
            self._by_rows = batches.by_rows(step.program, feeds[0])
        self._rows += sum(batches.rows_of(feed, self._by_rows) for feed in feeds)
        names = fetch_names(step.fetch_list)[0]
        if step.loss in names and result is not None:
            self._losses.append(float(np.mean(np.asarray(result[names.index(step.loss)]))))

    def sent(self) -> None:
        """Sends the pending gradients to the servers; the time this takes counts."""
        _cluster.communicator_flush()
        self._last_s = time.perf_counter()

    def result(self) -> dict[str, Any]:
        """dict: the measurements."""
        last = self._losses[-max(1, len(self._losses) // 4):]
        return {"steps": self._made, "rows": self._rows, "seconds": self._last_s - self._began_s,
                "loss": float(np.mean(last)) if last else None, "histograms": self._histograms()}

    def _histograms(self) -> list[list[int]] | None:
        found = next((op for op in metric_states.aucs(self._step.program) if op.over_all), None)
        if found is None:
            return None
        held = [self._step.scope.find_var(name) for name in (found.positives, found.negatives)]
        return [np.asarray(one.get_tensor()).ravel().tolist() for one in held]


def _under(strategy: str, geo_every: int) -> list[Any]:
    """From now on ``fleet.distributed_optimizer`` uses this strategy instead of the script's.

    Returns:
        list: gets the optimizers that the script distributes.
    """
    distributed: list[Any] = []
    given = servers.DistributedTranspiler.distributed_optimizer

    def distributed_optimizer(self: Any, optimizer: Any, own: Any = None) -> Any:
        distributed.append(optimizer)
        if strategy == "geo":
            every = own.get_program_config().geo_sgd_need_push_nums if isinstance(own, GeoStrategy) else geo_every
            return given(self, optimizer, StrategyFactory.create_geo_strategy(every))
        return given(self, optimizer, getattr(StrategyFactory, "create_%s_strategy" % strategy)())
    setattr(servers.DistributedTranspiler, "distributed_optimizer", distributed_optimizer)  # noqa: B010
    return distributed


def main(script: str, args: list[str]) -> None:
    """Runs the script as a server or a worker, as the environment variables define."""
    run.hide_launcher()
    distributed = _under(os.environ[STRATEGY], int(os.environ[GEO_EVERY]))
    if os.environ.get("TRAINING_ROLE") == "PSERVER":
        run.execute(script, args)
        return
    sample = Sample(int(os.environ[STEPS]))
    if scripts.watch(script, args, sample.see):
        sample.sent()
        measured = sample.result()
        if distributed:
            servers.fleet.stop_worker()
    else:                       # the script made fewer steps, and has stopped the worker itself
        measured = sample.result()
    with open("%s.%s" % (os.environ[RESULT], os.environ["PADDLE_TRAINER_ID"]), "w") as file:
        json.dump(dict(measured, distributed=bool(distributed)), file)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
