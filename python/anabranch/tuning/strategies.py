"""Compares the strategies of parameter servers on a short sample of a script that uses fleet.

    anabranch strategies --servers 2 --workers 2 train.py --epochs 1

Each trial is a cluster of processes on this machine. The script runs as under ``anabranch launch``, except that the
trial replaces the strategy given to ``fleet.distributed_optimizer`` and ends the script after a number of steps. Every
strategy therefore has seen the same number of batches when the results are compared: by the AUC over all workers if
the program computes one, otherwise by the loss that the script fetches, or by the number that ``--metric`` finds in its
output.
"""
from __future__ import annotations

import argparse
import io
import json
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import launch
from .._processes import free_ports
from .._terminal import counted
from .._trials_row import Trials
from ..fluid.areas import roc_area
from ..fluid.errors import InvalidValue, NotAllowed, NotFound, Unavailable
from ..looking.command_line import Parser, ended, no_script
from . import sampled
from .table import aligned

STRATEGIES = ("sync", "half_async", "async", "geo")


class Sampling(NamedTuple):
    """Settings of a trial.

    Attributes:
        script, args: the script and its arguments.
        servers, workers: numbers of processes.
        steps: steps of each worker.
        geo_every: steps between two exchanges of GEO, where the script does not set them.
        metric: regular expression with one group around a number in the output; None: AUC or loss.
    """

    script: str
    args: Sequence[str]
    servers: int = 2
    workers: int = 2
    steps: int = 200
    geo_every: int = 100
    metric: str | None = None


class Outcome(NamedTuple):
    """Result of a trial: ``rows_per_s`` of all workers; ``what`` and ``value``: name and value of the metric."""

    rows_per_s: float
    what: str
    value: float | None
    steps: int


def _learned(how: Sampling, measured: Sequence[dict[str, Any]], logs: str) -> tuple[str, float | None]:
    if how.metric:
        found = []
        for index in range(how.workers):
            with open(os.path.join(logs, "workerlog.%d" % index), errors="replace") as file:
                found += re.findall(how.metric, file.read())[-1:]
        return how.metric, float(np.mean([float(one) for one in found])) if found else None
    if all(one["histograms"] for one in measured):
        up, down = (np.sum([one["histograms"][k] for one in measured], axis=0) for k in (0, 1))
        return "AUC", roc_area(up, down, float("nan"))
    losses = [one["loss"] for one in measured if one["loss"] is not None]
    return "loss", float(np.mean(losses)) if losses else None


def trial(how: Sampling, strategy: str, folder: str) -> Outcome:
    """Runs the script once under a strategy.

    Args:
        how (Sampling): settings.
        strategy (str): one of ``STRATEGIES``.
        folder (str): folder for logs and measurements.

    Returns:
        Outcome: its result.

    Raises:
        RuntimeError: a process failed (the message has the end of its log), or the script made too few steps.
        NotAllowed: the script does not use ``fleet``.
    """
    logs, result = os.path.join(folder, "logs"), os.path.join(folder, "measured")
    shutil.rmtree(logs, ignore_errors=True)
    ports = free_ports(how.servers + how.workers)
    endpoints = ["127.0.0.1:%d" % port for port in ports]
    plan = launch.Plan(endpoints[:how.servers], endpoints[how.servers:],
                       ["-m", sampled.__name__, how.script, *how.args], logs, echo=False)
    given = {sampled.STRATEGY: strategy, sampled.STEPS: str(how.steps), sampled.RESULT: result,
             sampled.GEO_EVERY: str(how.geo_every)}
    said = io.StringIO()
    code = launch.start(plan, given, said)
    if code == 128 + signal.SIGINT:
        raise KeyboardInterrupt
    if code:
        raise Unavailable(said.getvalue().strip())
    measured = []
    for index in range(how.workers):
        with open("%s.%d" % (result, index)) as file:
            measured.append(json.load(file))
    if not all(one["distributed"] for one in measured):
        raise NotAllowed("%s does not call fleet.distributed_optimizer, so no strategy applies to it; `anabranch tune` "
                         "compares settings of such scripts" % how.script)
    made = min(one["steps"] for one in measured)
    if not all(one["rows"] for one in measured):
        raise Unavailable("a worker ran %s, which is too few to time" % counted(made, "step"))
    what, value = _learned(how, measured, logs)
    return Outcome(sum(one["rows"] / max(one["seconds"], 1e-9) for one in measured), what, value, made)


def table(how: Sampling, found: dict[str, list[Outcome]], failed: dict[str, str], rounds: int) -> str:
    """str: the table of all results, the fastest strategy first."""
    best = {name: max(outcomes, key=lambda one: one.rows_per_s) for name, outcomes in found.items()}
    lines = []
    if best:
        first = next(iter(found.values()))[0]
        rows = [("strategy", "rows/s", "of the fastest", first.what)]
        top = max(one.rows_per_s for one in best.values())
        for name, one in sorted(best.items(), key=lambda item: -item[1].rows_per_s):
            value = found[name][0].value
            rows.append((name, format(int(one.rows_per_s), ","), "%.2f" % (one.rows_per_s / top),
                         "-" if value is None else "%.4f" % value))
        lines += ["%s of each worker, %s, %s, best of %s" % (
            counted(min(one.steps for one in best.values()), "step"), counted(how.servers, "server"),
            counted(how.workers, "worker"), counted(rounds, "round")), "", aligned(rows)]
    lines += ["%s failed: %s" % (", ".join(names), text) for names, text in _by_reason(failed)]
    return "\n".join(lines) + "\n"


def _by_reason(failed: dict[str, str]) -> list[tuple[list[str], str]]:
    """(strategies, message) of each reason: the error at the end of a log, after the lines of its traceback."""
    found: dict[str, tuple[list[str], str]] = {}
    for name, text in failed.items():
        reason = re.split(r"\n(?=\S)", text)[-1]
        found.setdefault(reason, ([], text))[0].append(name)
    return list(found.values())


def compare(how: Sampling, only: Sequence[str] = STRATEGIES, rounds: int = 2) -> str:
    """Runs the strategies alternately, so that other load on the machine affects all of them alike.

    Args:
        how (Sampling): settings.
        only (list of str): the strategies.
        rounds (int): runs of each, at least 1.

    Returns:
        str: a table.

    Raises:
        RuntimeError: all of them failed.
    """
    found: dict[str, list[Outcome]] = {}
    failed: dict[str, str] = {}
    folder = tempfile.mkdtemp(prefix="anabranch_strategies_")
    try:
        with Trials(len(only) * rounds, tick_s=1.0) as progress:
            for number in range(rounds):
                for name in (one for one in only if one not in failed):
                    progress.start("%s, round %d of %d" % (name, number + 1, rounds))
                    try:
                        found.setdefault(name, []).append(trial(how, name, folder))
                    except Unavailable as e:
                        failed[name] = e.message
                        found.pop(name, None)
                        progress.skip(rounds - number - 1)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    text = table(how, found, failed, rounds)
    if not found:
        raise Unavailable(text)
    return text


def parser() -> argparse.ArgumentParser:
    """ArgumentParser: the parser of ``anabranch strategies``."""
    made = Parser(prog="anabranch strategies", description=(__doc__ or "").partition("\n")[0])
    made.add_argument("--servers", type=int, default=2, help="Number of parameter servers (default: %(default)s).")
    made.add_argument("--workers", type=int, default=2, help="Number of workers (default: %(default)s).")
    made.add_argument("--steps", type=int, default=200, help="Number of steps of each worker; the first tenth, "
                      "at most ten, is not timed (default: %(default)s).")
    made.add_argument("--rounds", type=int, default=2, help="Number of runs of each strategy (default: %(default)s).")
    made.add_argument("--geo-every", type=int, default=100, metavar="N",
                      help="Number of steps between two exchanges of GEO, "
                      "if the script uses a different strategy (default: %(default)s).")
    made.add_argument("--only", default=",".join(STRATEGIES), metavar="LIST",
                      help="Strategies to try (default: %(default)s).")
    made.add_argument("--metric", metavar="REGEX", help="Regular expression whose group matches the number to "
                      "compare in the output of each worker, such as 'acc ([0-9.]+)'; the last match counts (default: "
                      "the AUC of the program, else its loss).")
    made.add_argument("script", help="Python script that trains with fleet and parameter servers.")
    made.add_argument("args", nargs=argparse.REMAINDER, help="Arguments of the script.")
    return made


def _checked(args: argparse.Namespace) -> list[str]:
    only = [one for one in args.only.split(",") if one]
    for name in only:
        if name not in STRATEGIES:
            raise InvalidValue("--only must name some of %s, got %r" % (", ".join(STRATEGIES), name))
    if not only or min(args.servers, args.workers, args.rounds, args.geo_every) < 1 or args.steps < 2:
        raise InvalidValue("--servers, --workers, --rounds and --geo-every must be at least 1, --steps at least 2, "
                           "--only must name a strategy")
    if args.metric:
        try:
            groups = re.compile(args.metric).groups
        except re.error as e:
            raise InvalidValue("--metric must be a regular expression: %s" % e) from None
        if groups != 1:
            raise InvalidValue("--metric must have one group, around the number, got %d" % groups)
    return only


def main(argv: Sequence[str] | None = None) -> int:
    """Runs ``anabranch strategies``.

    Args:
        argv (list of str, optional): arguments. Default: those of the process.

    Returns:
        int: 0; 1 when the script fails under every strategy.
    """
    made = parser()
    args = made.parse_args(argv)
    try:
        only = _checked(args)
    except InvalidValue as e:
        made.error(e.message)

    def work() -> int:
        if not os.path.exists(args.script):
            raise NotFound(no_script(args.script))
        how = Sampling(args.script, args.args, args.servers, args.workers, args.steps, args.geo_every, args.metric)
        sys.stdout.write(compare(how, only, args.rounds))
        return 0
    return ended("strategies", work)
