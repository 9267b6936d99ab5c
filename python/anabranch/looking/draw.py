"""Draws a saved model, or the program that a script trains.

    anabranch draw --out net.svg train.py
    anabranch draw --graph --out graph.svg train.py --batch 64
    anabranch draw --out net.svg model
"""
from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from ..drawing import parse_dot, write_picture
from . import models, scripts
from .command_line import ended


def _of_script(args: argparse.Namespace) -> None:
    def see(step: scripts.Step) -> None:
        if not args.graph:
            step.program.draw(args.out, variables=args.variables)
        else:
            if step.dataset is None:
                step.go()
            else:
                scripts.short_pass(step, 1, thread=1)
            graph = parse_dot(engine_of(step).graph_dot())
            write_picture(graph if args.variables else graph.boxes(), args.out)
        raise scripts.Enough
    scripts.watch(args.what, args.args, see)


def engine_of(step: scripts.Step) -> Any:
    """What has run the step: the engine's object, which knows graph and passes."""
    if step.compiled is not None and step.dataset is None:
        return step.compiled._engine
    return step.executor._make_ready(step.program, step.scope).engine


def parser() -> argparse.ArgumentParser:
    """ArgumentParser: of ``anabranch draw``."""
    made = argparse.ArgumentParser(prog="anabranch draw", description=(__doc__ or "").partition("\n")[0])
    made.add_argument("--out", default="program.svg", metavar="FILE",
                      help=".svg or .dot; .png, .pdf with Graphviz. Default %(default)s")
    made.add_argument("--graph", action="store_true",
                      help="of a script: the graph that runs, after all passes, with every replica")
    made.add_argument("--variables", action="store_true", help="draws variables, too")
    models.add_arguments(made, "script that trains, or a saved model: its folder, the prefix of fluid.save, the file")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Runs ``anabranch draw``.

    Args:
        argv (list of str, optional): arguments; those of the process by default.

    Returns:
        int: 0; 1 when there is no such script or model, or nothing to draw.
    """
    made = parser()
    args = made.parse_args(argv)
    if not models.is_script(args.what):
        if args.args or args.graph:
            made.error("a model has no arguments and no graph; options come before it")

    def work() -> int:
        if models.is_script(args.what):
            _of_script(args)
        else:
            models.load(args.what).draw(args.out, variables=args.variables)
        sys.stdout.write(args.out + "\n")
        return 0
    return ended("draw", work)
