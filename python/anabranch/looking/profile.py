"""Profiles the steps of a script, prints a table and writes an HTML page: table, timeline, graph and memory.

    anabranch profile --steps 20 --out profile.html train.py
"""
from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any

from .. import _core, profiling
from .._terminal import counted
from ..drawing import parse_dot
from ..fluid.errors import NotAllowed
from ..fluid.memory import memory_report
from ..profiling.tables import short_text
from . import scripts
from .command_line import Parser, ended
from .draw import engine_of


class _Measured:
    """Runs the steps of a script: some to warm up, then those that are measured."""

    def __init__(self, warm: int, steps: int) -> None:
        self._warm, self._steps, self._made = warm, steps, 0
        self.step: Any = None
        self.steps = 0                  # number of steps that were measured
        self.report: Any = None

    def see(self, step: scripts.Step) -> Any:
        if step.dataset is not None:
            scripts.short_pass(step, self._warm, thread=1)
            _core.start_profiler()
            scripts.short_pass(step, self._steps, thread=1)
            self._end(step)
        if self._made == self._warm:
            _core.start_profiler()
        result = step.go()
        self._made += 1
        self.step = step
        if self._made == self._warm + self._steps:
            self._end(step)
        return result

    def _end(self, step: scripts.Step) -> None:
        self.finish(step)
        raise scripts.Enough

    def finish(self, step: scripts.Step) -> None:
        """Ends the measurement."""
        self.step = step
        self.steps = self._steps if step.dataset is not None else self._made - self._warm
        _core.stop_profiler()
        self.report = profiling.take()


def profile(script: str, args: Sequence[str], path: str, warm: int = 5, steps: int = 20) -> int:
    """Runs a script for some steps and writes a page about the last of them.

    Args:
        script (str): path.
        args (list of str): its arguments.
        path (str): page to write.
        warm (int): number of steps before the measurement, in which kernels and threads are chosen; at least 0.
        steps (int): number of measured steps, at least 1; fewer if the script ends.

    Returns:
        int: steps that were measured.

    Raises:
        NotAllowed: the script ended before a step was measured. Otherwise as :func:`scripts.watch`.
    """
    return _profile(script, args, path, warm, steps)[0]


def _profile(script: str, args: Sequence[str], path: str, warm: int, steps: int) -> tuple[int, Any]:
    """(steps that were measured, Report)."""
    measured = _Measured(warm, steps)
    _core.reset_profiler()
    if not scripts.watch(script, args, measured.see):
        if not _core.profiler_on():
            raise NotAllowed("%s ended after %s, before the measurement; reduce --warm"
                             % (script, counted(measured._made, "step")))
        measured.finish(measured.step)
    step = measured.step
    graph = parse_dot(engine_of(step).graph_dot()).boxes()
    measured.report.page(path, os.path.basename(script), graph, memory_report(step.program, step.scope))
    return measured.steps, measured.report


def parser() -> argparse.ArgumentParser:
    """ArgumentParser: the parser of ``anabranch profile``."""
    made = Parser(prog="anabranch profile", description=(__doc__ or "").partition("\n")[0])
    made.add_argument("--out", default="profile.html", metavar="FILE", help="Page to write (default: %(default)s).")
    made.add_argument("--warm", type=int, default=5,
                      help="Number of steps before the measurement (default: %(default)s).")
    made.add_argument("--steps", type=int, default=20, help="Number of steps to measure (default: %(default)s).")
    made.add_argument("script", help="Python script that trains.")
    made.add_argument("args", nargs=argparse.REMAINDER, help="Arguments of the script.")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Runs ``anabranch profile``.

    Args:
        argv (list of str, optional): arguments. Default: those of the process.

    Returns:
        int: 0; 1 when the script fails or makes no training step.
    """
    made = parser()
    args = made.parse_args(argv)
    if args.warm < 0 or args.steps < 1:
        made.error("--warm must be at least 0 and --steps at least 1")

    def work() -> int:
        steps, report = _profile(args.script, args.args, args.out, args.warm, args.steps)
        sys.stdout.write("%s\n%s measured; written: %s\n" % (
            short_text(report), counted(steps, "step"), args.out))
        return 0
    return ended("profile", work)
