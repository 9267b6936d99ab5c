"""Shows what the graph passes did to the program that a script trains, or to a saved model.

    anabranch explain train.py
    anabranch explain model
"""
from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from .. import _core, profiling
from .._terminal import WIDTH, columns, counted, wrapped
from ..predictor import Predictor
from . import models, scripts
from .command_line import Parser, ended
from .draw import engine_of
from .passes import shortened


def fused_operators(run: Callable[[], Any]) -> str:
    """Runs one step and lists the fused operators that it ran.

    Args:
        run (callable): runs the step.

    Returns:
        str: a line for each kind of fused operator: their number, their type, and the operators that each of them
            replaces.
    """
    _core.reset_profiler()
    _core.start_profiler()
    try:
        run()
    finally:
        _core.stop_profiler()
    plan = profiling.take().main_plan()
    _core.reset_profiler()
    kinds: Counter[tuple[str, str]] = Counter()
    for node in plan["nodes"] if plan else ():
        ops = Counter(re.findall(r"^ *#\d+ (\w+)", node["place"].partition(", which stands for\n")[2], re.M))
        if ops:
            kinds[node["type"], ", ".join(op if n == 1 else "%d x %s" % (n, op) for op, n in ops.items())] += 1
    width = max((len(kind) for kind, _ in kinds), default=0)
    lines = ["  %-4d %-*s  %s" % (count, width, kind, ops) for (kind, ops), count in kinds.items()]
    return "\n".join(["\nfused operators: number, type and the operators that each one replaces",
                      *(lines or ["  none"])])


def text_of_script(script: str, args: Sequence[str]) -> str:
    """Explains the first training step of a script.

    Returns:
        str: nodes, replicas, threads and memory, then one line per pass, then the fused operators.
    """
    texts = []

    def see(step: scripts.Step) -> None:
        fused = fused_operators(step.go if step.dataset is None else lambda: scripts.short_pass(step, 1, thread=1))
        texts.append("%s\n%s%s" % (counted(len(step.program.global_block().ops), "operator"),
                                   engine_of(step).explain(), fused))
        raise scripts.Enough
    scripts.watch(script, args, see)
    return texts[0]


def parser() -> argparse.ArgumentParser:
    """ArgumentParser: the parser of ``anabranch explain``."""
    made = Parser(prog="anabranch explain", description=(__doc__ or "").partition("\n")[0])
    made.add_argument("--all", action="store_true",
                      help="Show every pass with what it does, also those that changed nothing or were skipped.")
    models.add_arguments(made, "Script that trains, or folder written by save_inference_model.")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Runs ``anabranch explain``.

    Args:
        argv (list of str, optional): arguments. Default: those of the process.

    Returns:
        int: 0; 1 when the script or model does not exist.
    """
    made = parser()
    args = made.parse_args(argv)
    if not models.is_script(args.what) and args.args:
        made.error("a model takes no arguments")

    def work() -> int:
        if models.is_script(args.what):
            text = text_of_script(args.what, args.args)
        else:
            predictor = Predictor(args.what)
            fused = fused_operators(lambda: predictor.run(models.zeros(predictor)))
            text = predictor.explain() + fused
        text = text if args.all else shortened(text)
        width = columns(sys.stdout) if sys.stdout.isatty() else WIDTH
        sys.stdout.write(wrapped(text.rstrip("\n"), width) + "\n")
        return 0
    return ended("explain", work)
