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
from .command_line import Parser, ended


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
    """The engine object that ran the step; it has the graph and the passes."""
    if step.compiled is not None and step.dataset is None:
        return step.compiled._engine
    return step.executor._bind(step.program, step.scope).engine


def parser() -> argparse.ArgumentParser:
    """ArgumentParser: the parser of ``anabranch draw``."""
    made = Parser(prog="anabranch draw", description=(__doc__ or "").partition("\n")[0])
    made.add_argument("--out", default="program.svg", metavar="FILE",
                      help="File to write: .svg or .dot, and .png or .pdf if Graphviz is installed "
                           "(default: %(default)s).")
    made.add_argument("--graph", action="store_true",
                      help="Draw the graph that a script runs, after all passes and with all replicas.")
    made.add_argument("--variables", action="store_true", help="Draw variables as well.")
    models.add_arguments(made, "Script that trains, or a saved model: its folder, the prefix given to fluid.save, or "
                               "its file.")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Runs ``anabranch draw``.

    Args:
        argv (list of str, optional): arguments. Default: those of the process.

    Returns:
        int: 0; 1 when the script or model does not exist, or there is nothing to draw.
    """
    made = parser()
    args = made.parse_args(argv)
    if not models.is_script(args.what):
        if args.args or args.graph:
            made.error("a model takes no arguments and has no graph; options come before it")

    def work() -> int:
        if models.is_script(args.what):
            _of_script(args)
        else:
            models.load(args.what).draw(args.out, variables=args.variables)
        sys.stdout.write(args.out + "\n")
        return 0
    return ended("draw", work)
