"""Runs a script written for PaddlePaddle Fluid, unchanged.

    anabranch run train.py --epochs 3
    anabranch run -m package.train --epochs 3

``import paddle.fluid as fluid`` imports the modules of this package. A script that requests a GPU runs on the CPU, with
one warning. Names of Fluid that this package does not have raise an error when they are used, and are listed at the
end.
"""
from __future__ import annotations

import argparse
import os
import runpy
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from .looking.command_line import Parser, no_script

#: Set for the processes that a launcher starts, so that they run their scripts in the same way.
VARIABLE = "ANABRANCH_RUN"
_LOADING = (os.path.join(os.path.dirname(__file__), "_legacy", ""), "<frozen importlib")


def parser() -> argparse.ArgumentParser:
    """ArgumentParser: the parser of ``anabranch run``."""
    made = Parser(prog="anabranch run", description=(__doc__ or "").partition("\n")[0],
                                   usage="anabranch run [-h] [--data DIR] (script | -m module) [args ...]")
    made.add_argument("--data", metavar="DIR", help="Folder of the archives that paddle.dataset reads "
                                                    "(default: the environment variable ANABRANCH_DATA).")
    made.add_argument("-m", dest="module", action="store_true", help="Run a module by its name.")
    made.add_argument("script", help="Python script, or the name of a module.")
    made.add_argument("args", nargs=argparse.REMAINDER, help="Arguments of the script.")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Runs ``anabranch run``.

    Args:
        argv (list of str, optional): arguments. Default: those of the process.

    Returns:
        int: exit code 0. A script that fails or exits ends the process as it does without this command.
    """
    made = parser()
    args = made.parse_args(argv)
    if not args.module and not os.path.exists(args.script):
        made.error(no_script(args.script))
    if args.data is not None and not os.path.isdir(args.data):
        made.error("--data: there is no folder %s" % args.data)
    if args.data is not None:
        os.environ["ANABRANCH_DATA"] = os.path.abspath(args.data)
    hide_launcher()
    execute(args.script, args.args, args.module)
    return 0


def hide_launcher() -> None:
    """From now on, tracebacks start in the script, without the frames of this command and of ``runpy``."""
    show = sys.excepthook

    def excepthook(kind: Any, error: Any, trace: TracebackType | None) -> None:
        trace = None if isinstance(error, SyntaxError) else below_launcher(trace)
        show(kind, error.with_traceback(trace), trace)
    sys.excepthook = excepthook


def below_launcher(trace: TracebackType | None) -> TracebackType | None:
    """The traceback from the script's frame on, or the whole traceback if it has no such frame."""
    at, launched = trace, False
    while at is not None:
        name = at.tb_frame.f_code.co_filename
        launched = launched or name == __file__
        if launched and name not in (__file__, "<frozen runpy>", runpy.__file__) and not name.startswith(_LOADING):
            return _without_loading(at)
        at = at.tb_next
    return trace


def _without_loading(trace: TracebackType) -> TracebackType:
    """A traceback without the frames that load the user's modules, or stand for an expression of the script."""
    at: TracebackType | None = trace
    while at is not None:
        while at.tb_next is not None and at.tb_next.tb_frame.f_code.co_filename.startswith(_LOADING):
            at.tb_next = at.tb_next.tb_next
        at = at.tb_next
    return trace


def offer_to_children() -> None:
    """Lets the processes that the script starts import ``paddle``, such as the pipe command of a data set."""
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_legacy", "children")
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    if folder not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([*paths, folder])
    if folder not in sys.path:  # processes that multiprocessing spawns take over this list
        sys.path.append(folder)


def execute(script: str, args: Sequence[str], module: bool = False) -> None:
    """Runs a script in this process, as its main module, under the names of Fluid and of this package.

    Args:
        script (str): path, or the name of a module.
        args (list of str): its arguments.
        module (bool): whether it is a module. Default False.
    """
    os.environ[VARIABLE] = "1"
    offer_to_children()
    from ._legacy import loading, names, user_files
    names.install()
    sys.argv = [script, *args]
    if module:
        sys.path.insert(0, os.getcwd())
        runpy.run_module(names.real_name(script), run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
        if user_files.is_text(script):
            loading.run_file(script)
        else:
            runpy.run_path(script, run_name="__main__")
