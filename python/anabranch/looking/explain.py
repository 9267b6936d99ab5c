"""Shows what the graph passes did to the program that a script trains, or to a saved model.

    anabranch explain train.py
    anabranch explain model
"""
from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from .._terminal import WIDTH, columns, wrapped
from ..predictor import Predictor
from . import models, scripts
from .command_line import Parser, ended
from .draw import engine_of
from .passes import shortened


def text_of_script(script: str, args: Sequence[str]) -> str:
    """Explains the first training step of a script.

    Returns:
        str: nodes, replicas, threads and memory, then one line per pass.
    """
    texts = []

    def see(step: scripts.Step) -> None:
        if step.dataset is None:
            step.go()
        else:
            scripts.short_pass(step, 1, thread=1)
        texts.append("%d operators\n%s" % (len(step.program.global_block().ops), engine_of(step).explain()))
        raise scripts.Enough
    scripts.watch(script, args, see)
    return texts[0]


def parser() -> argparse.ArgumentParser:
    """ArgumentParser: of ``anabranch explain``."""
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
        made.error("a model has no arguments")

    def work() -> int:
        if models.is_script(args.what):
            text = text_of_script(args.what, args.args)
        else:
            predictor = Predictor(args.what)
            predictor.run(models.zeros(predictor))
            text = predictor.explain()
        text = text if args.all else shortened(text)
        width = columns(sys.stdout) if sys.stdout.isatty() else WIDTH
        sys.stdout.write(wrapped(text.rstrip("\n"), width) + "\n")
        return 0
    return ended("explain", work)
