"""Says what the passes make of the program that a script trains, or of a saved model.

    anabranch explain train.py
    anabranch explain model
"""
from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from ..predictor import Predictor
from . import models, scripts
from .command_line import ended
from .draw import engine_of


def text_of_script(script: str, args: Sequence[str]) -> str:
    """What the first step of training of a script became.

    Returns:
        str: nodes, replicas, threads and memory, then a line for each pass.
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
    made = argparse.ArgumentParser(prog="anabranch explain", description=(__doc__ or "").partition("\n")[0])
    models.add_arguments(made, "script that trains, or the folder of save_inference_model")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Runs ``anabranch explain``.

    Args:
        argv (list of str, optional): arguments; those of the process by default.

    Returns:
        int: 0; 1 when there is no such script or model.
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
        sys.stdout.write(text.rstrip("\n") + "\n")
        return 0
    return ended("explain", work)
