"""Callbacks that write the logged values to files: JSON lines, and the text format of Prometheus."""
from __future__ import annotations

import json
import math
import os
import re
import time
from collections.abc import Callable
from typing import Any

from .callbacks import Callback
from .fluid import arguments
from .fluid.errors import InvalidValue
from .loops import Loop
from .profiling.files import write_whole
from .progress import is_first_process

__all__ = ["JsonLines", "Prometheus"]


def _is_first(loop):
    """Whether this process writes for all workers, whose values are means at the end of an epoch."""
    return is_first_process() if loop.fleet is None else loop.fleet.worker_index() == 0


class JsonLines(Callback):
    """Appends the logged values to a file, one JSON object per line, for example for pandas.read_json(lines=True).

    Each line has ``time`` (seconds since 1970), ``epoch`` (from 0), ``step`` (completed steps) and the values. Lines at
    the end of an epoch have ``"epoch_end": true``, and the values of :meth:`Loop.log_epoch <anabranch.Loop.log_epoch>`.
    A value that is NaN or infinite is null. If :class:`anabranch.Checkpoints` resumes a run, the lines after the
    checkpoint are removed, because its steps are repeated. In a cluster, the first worker writes.

    Args:
        path (str): the file. Its folder is created if missing.
        every (int): number of steps between two lines, at least 1. Default 10.

    Raises:
        ValueError: ``every`` is below 1.

    Examples:
        >>> import anabranch, json
        >>> from anabranch.callbacks import JsonLines
        >>> loop = anabranch.Loop([JsonLines("values.jsonl", every=2)], show=False)
        >>> for epoch in loop.epochs(1):
        ...     for batch in loop.steps([1.0, 0.5, 0.25]):
        ...         loop.log(loss=batch)
        >>> lines = [json.loads(line) for line in open("values.jsonl")]
        >>> [(line["step"], line["loss"]) for line in lines]
        [(2, 0.5), (3, 0.25)]
    """

    def __init__(self, path: str, every: int = 10) -> None:
        if isinstance(every, bool) or not isinstance(every, int) or every < 1:
            raise InvalidValue("JsonLines: every must be an int of at least 1, got %r" % (every,))
        self._path, self._every, self._writes = os.fspath(path), every, True

    def begin(self, loop: Loop) -> None:
        self._writes = _is_first(loop)
        os.makedirs(os.path.dirname(os.path.abspath(self._path)), exist_ok=True)

    def step_end(self, loop: Loop) -> None:
        if loop.step % self._every == 0:
            self._append(loop, {name: loop.values[name] for name in loop.smoothed})

    def epoch_end(self, loop: Loop) -> None:
        self._append(loop, {"epoch_end": True, **loop.values})

    def state(self) -> dict[str, Any]:
        return {"bytes": os.path.getsize(self._path) if os.path.exists(self._path) else 0}

    def set_state(self, state: dict[str, Any]) -> None:
        if self._writes and os.path.exists(self._path) and os.path.getsize(self._path) > state["bytes"]:
            os.truncate(self._path, state["bytes"])

    def _append(self, loop, values):
        if not self._writes:
            return
        line = {"time": round(time.time(), 3), "epoch": loop.epoch, "step": loop.step}
        line.update((name, value if math.isfinite(value) else None) for name, value in values.items())
        with open(self._path, "a", encoding="utf-8") as file:   # opened again each time, so that it may be moved
            file.write(json.dumps(line) + "\n")


class Prometheus(Callback):
    """Writes the newest values as gauges in the text format of Prometheus, for the textfile collector of its
    node_exporter. The file is replaced as a whole, so that a reader never sees a part of it.

    The value ``loss`` becomes ``anabranch_train_loss``: characters that Prometheus does not allow become ``_``. The
    gauges ``anabranch_train_epoch`` and ``anabranch_train_step`` count as :class:`anabranch.Loop` does, and
    ``anabranch_train_time_seconds`` is the time at which the file was written: an alert on its age finds a run that has
    stopped. In a cluster, the first worker writes.

    Args:
        path (str): the file. Its name must end in ``.prom`` for node_exporter. Its folder is created if missing.
        every_s (float): least number of seconds between two versions of the file, at least 0. Default 15. The file is
            also written at the end of each epoch.
        now (callable): clock that returns seconds. Default ``time.time``.

    Raises:
        ValueError: ``every_s`` is below 0.

    Examples:
        >>> import anabranch
        >>> from anabranch.callbacks import Prometheus
        >>> loop = anabranch.Loop([Prometheus("train.prom")], show=False)
        >>> for epoch in loop.epochs(1):
        ...     for batch in loop.steps([1.0, 0.5]):
        ...         loop.log(loss=batch)
        >>> [line for line in open("train.prom").read().splitlines() if "loss" in line]
        ['# TYPE anabranch_train_loss gauge', 'anabranch_train_loss 0.5']
    """

    def __init__(self, path: str, every_s: float = 15.0, now: Callable[[], float] = time.time) -> None:
        if isinstance(every_s, bool) or not isinstance(every_s, (int, float)) or not every_s >= 0:
            raise InvalidValue("Prometheus: every_s must be a number of at least 0, got %r" % (every_s,))
        self._path, self._every_s, self._now, self._written = os.fspath(path), every_s, now, -math.inf

    def step_end(self, loop: Loop) -> None:
        if self._now() - self._written >= self._every_s:
            self._write(loop)

    def epoch_end(self, loop: Loop) -> None:
        self._write(loop)

    def _write(self, loop):
        if not _is_first(loop):
            return
        self._written = self._now()
        values = {"epoch": loop.epoch, "step": loop.step, "time_seconds": self._written, **loop.values}
        gauges = {"anabranch_train_" + re.sub(r"[^a-zA-Z0-9_:]", "_", name): value for name, value in values.items()}
        write_whole(self._path, "".join("# TYPE %s gauge\n%s %s\n" % (name, name, _number(value))
                                        for name, value in gauges.items()).encode())


def _number(value):
    if math.isfinite(value):
        return repr(value)
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"


arguments.explain(globals())
