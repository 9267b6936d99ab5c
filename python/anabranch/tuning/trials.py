"""The settings that are tried, and the measurement of one of them."""
from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from .. import fluid
from .._terminal import counted
from ..fluid.fetching import fetch_names
from ..looking import scripts
from . import batches


class Setting(NamedTuple):
    """A way to run a step.

    Attributes:
        replicas, threads: of a compiled program; 0 replicas: the plain Executor, which has no thread setting; -1: the
            script's own setting.
        factor: size of a batch relative to the script's.
        bfloat16: value of ``BuildStrategy.use_bfloat16``.
    """

    replicas: int = 0
    threads: int = 0
    factor: float = 1
    bfloat16: bool = False

    def text(self) -> str:
        """str: for the table.

        >>> Setting(2, 2, 0.5).text()
        '2 replicas, 2 threads, batch / 2'
        """
        parts = ["Executor" if not self.replicas else "the script"] if self.replicas < 1 else [
            "%d replica%s" % (self.replicas, "s" * (self.replicas > 1)),
            "%d thread%s" % (self.threads, "s" * (self.threads != 1))]
        parts += ["batch * %d" % self.factor] if self.factor > 1 else ["batch / 2"] if self.factor < 1 else []
        return ", ".join(parts + ["bfloat16"] * self.bfloat16)

    def code(self, rows: int) -> list[str]:
        """list of str: the lines that choose the setting in a script whose batches have ``rows`` rows."""
        lines = []
        if self.replicas > 0:
            lines += ["execution = fluid.ExecutionStrategy()", "execution.num_threads = %d" % self.threads,
                      "build = fluid.BuildStrategy()"]
            lines += ["build.use_bfloat16 = True"] if self.bfloat16 else []
            lines += ["program = fluid.CompiledProgram(program).with_data_parallel(",
                      "    loss_name=loss.name, build_strategy=build,",
                      "    exec_strategy=execution, places=fluid.cpu_places(%d))" % self.replicas]
        elif not self.replicas:
            lines.append("executor.run(program, ...)   # without CompiledProgram")
        if self.factor != 1:
            lines.append("# batches of %s, which may need a different learning rate"
                         % counted(int(rows * self.factor), "row"))
        return lines


def settings(cores: int, compiled: bool, dense: bool) -> list[Setting]:
    """Lists the settings to try.

    Args:
        cores (int): usable cores.
        compiled (bool): the script runs a CompiledProgram, so the plain Executor is a different setting.
        dense (bool): batches can be halved.

    Returns:
        list of Setting: the script's own first.
    """
    found = [Setting(-1), *([Setting()] if compiled else []), Setting(1, 1)]
    many = 2
    while many <= cores:
        found += [Setting(1, many), Setting(many, many)]
        many *= 2
    found += [Setting(-1, 0, 2), Setting(-1, 0, 4)] + ([Setting(-1, 0, 0.5)] if dense else [])
    if cores > 1:
        found += [Setting(cores, cores, 2), Setting(cores, cores, 4)]
    return [*found, Setting(1, cores, 1, True)]


class Trial:
    """A setting that is ready to run: its program is compiled and its batches are made.

    Args:
        step (Step): a step of the script.
        feeds (list of dict): its batches.
        setting (Setting): the setting.
    """

    def __init__(self, step: scripts.Step, feeds: Sequence[dict[str, Any]], setting: Setting) -> None:
        names = batches.by_rows(step.program, feeds[0])
        self.setting = setting
        self._feeds = _resized(feeds, names, setting.factor)
        self._rows = [batches.rows_of(feed, names) for feed in self._feeds]
        self._step, self._executor = step, fluid.Executor()
        own = step.program if step.compiled is None or setting.replicas == 0 else step.compiled
        self._program = _compiled(step, setting) if setting.replicas > 0 else own
        self._fetches = fetch_names(step.fetch_list)[0] or ([step.loss] if step.loss else [])
        self.times: list[float] = []        # seconds a row, one for each round
        self.busy: list[float] = []         # cores at work
        self.step_s: list[float] = []
        self._at = 0

    def run(self, steps: int) -> None:
        """Runs steps without a measurement."""
        for _ in range(steps):
            self._executor.run(self._program, feed=self._feeds[self._at % len(self._feeds)],
                               fetch_list=self._fetches, scope=self._step.scope, return_numpy=False)
            self._at += 1

    def measure(self, seconds: float) -> None:
        """Runs steps for ``seconds``, at least three steps, and records their speed."""
        rows = steps = 0
        wall, cpu = time.perf_counter(), time.process_time()
        while steps < 3 or time.perf_counter() - wall < seconds:
            rows += self._rows[self._at % len(self._feeds)]
            self.run(1)
            steps += 1
        took, worked = time.perf_counter() - wall, time.process_time() - cpu
        self.times.append(took / max(rows, 1))
        self.busy.append(worked / took)
        self.step_s.append(took / steps)

    @property
    def rows_per_s(self) -> float:
        """float: speed of the best round, which other load on the machine affected least."""
        return 1 / min(self.times)


def _resized(feeds, names, factor):
    if factor < 1:
        return [half for feed in feeds for half in batches.halves(feed, names) or []]
    many = int(factor)
    groups = [[feeds[(i * many + k) % len(feeds)] for k in range(many)] for i in range(max(len(feeds) // many, 1))]
    return [batches.joined(group, names) for group in groups]


def _compiled(step, setting):
    build, execution = fluid.BuildStrategy(), fluid.ExecutionStrategy()
    execution.num_threads = setting.threads
    if setting.bfloat16:
        build.use_bfloat16 = True
    return fluid.CompiledProgram(step.program).with_data_parallel(
        loss_name=step.loss, build_strategy=build, exec_strategy=execution,
        places=fluid.cpu_places(setting.replicas))


def cores() -> int:
    """int: number of cores that this process may use."""
    return len(os.sched_getaffinity(0))
