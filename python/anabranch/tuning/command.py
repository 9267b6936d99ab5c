"""Finds the fastest settings for a script on its own data: threads, replicas, batch size and strategy.

    anabranch tune train.py --epochs 1

The script runs for a number of steps. Their batches are then replayed under each setting, and a table shows how fast
each setting is and how to choose it. Larger batches and bfloat16 change the training result; the other settings do not.
"""
from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from .._terminal import counted
from .._trials_row import Trials
from ..looking import scripts
from ..looking.command_line import Parser, ended
from . import batches
from .passes import tune_pass
from .table import table
from .trials import Trial, cores, settings


class _Collected:
    """Collects the batches of a script's steps, and the last step."""

    def __init__(self, count: int) -> None:
        self._count = count
        self.feeds: list[dict[str, Any]] = []
        self.step: Any = None

    def see(self, step: scripts.Step) -> Any:
        """Called for each step of the script."""
        self.step = step
        if step.dataset is not None:
            raise scripts.Enough
        self.feeds.append(batches.whole(step.feed))
        result = step.go()
        if len(self.feeds) == self._count:
            raise scripts.Enough
        return result


def _tried(step: scripts.Step, feeds: list[dict[str, Any]], rounds: int, seconds: float) -> str:
    """Measures the settings alternately, so that other load on the machine affects all of them alike."""
    names = batches.by_rows(step.program, feeds[0])
    dense = batches.halves(feeds[0], names) is not None
    trials, failed = [], []
    tried = settings(cores(), step.compiled is not None, dense)
    with Trials(len(tried) * (1 + rounds)) as progress:
        for setting in tried:
            progress.start("%s, first steps" % setting.text())
            try:
                trial = Trial(step, feeds, setting)
                trial.run(8)            # kernels and threads are chosen in the first steps
                trials.append(trial)
            except Exception as e:
                failed.append((setting, str(getattr(e, "message", e)).splitlines()[0]))
                progress.skip(rounds)
        for number in range(rounds):
            for trial in trials:
                progress.start("%s, round %d of %d" % (trial.setting.text(), number + 1, rounds))
                trial.measure(seconds)
    rows = sum(batches.rows_of(feed, names) for feed in feeds) // len(feeds)
    title = "%s of %s, %s, best of %s" % (counted(len(feeds), "batch", "batches"), counted(rows, "row"),
                                          counted(cores(), "core"), counted(rounds, "round"))
    return "%s\n\n%s" % (title, table(trials, failed, rows))


def tune(script: str, args: Sequence[str], count: int = 8, rounds: int = 3, seconds: float = 0.5) -> str:
    """Runs a script for some steps, ends it, and measures settings on their batches.

    Args:
        script (str): path.
        args (list of str): its arguments.
        count (int): number of batches, at least 1.
        rounds (int): measurements of each setting, at least 1.
        seconds (float): duration of a measurement, which takes at least three steps.

    Returns:
        str: a table, and the code that sets the fastest setting.

    Raises:
        Unsupported: the step feeds nothing. Otherwise as :func:`scripts.watch`.
    """
    collected = _Collected(count)
    scripts.watch(script, args, collected.see)
    if collected.step.dataset is not None:
        return tune_pass(collected.step, count * 8, rounds)
    return _tried(collected.step, collected.feeds, rounds, seconds)


def parser() -> argparse.ArgumentParser:
    """ArgumentParser: the parser of ``anabranch tune``."""
    made = Parser(prog="anabranch tune", description=(__doc__ or "").partition("\n")[0])
    made.add_argument("--batches", type=int, default=8, help="Number of batches to read from the script "
                      "and replay (default: %(default)s).")
    made.add_argument("--rounds", type=int, default=3,
                      help="Number of measurements of each setting (default: %(default)s).")
    made.add_argument("--seconds", type=float, default=0.5,
                      help="Duration of a measurement in seconds (default: %(default)s).")
    made.add_argument("script", help="Python script that trains.")
    made.add_argument("args", nargs=argparse.REMAINDER, help="Arguments of the script.")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Runs ``anabranch tune``.

    Args:
        argv (list of str, optional): arguments. Default: those of the process.

    Returns:
        int: 0; 1 when the script fails, or makes no training step that can be replayed.
    """
    made = parser()
    args = made.parse_args(argv)
    if args.batches < 1 or args.rounds < 1 or args.seconds < 0:
        made.error("--batches and --rounds must be at least 1, --seconds at least 0")

    def work() -> int:
        sys.stdout.write(tune(args.script, args.args, args.batches, args.rounds, args.seconds))
        return 0
    return ended("tune", work)
