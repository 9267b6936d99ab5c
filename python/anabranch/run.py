"""Runs a script that was written for Fluid, unchanged.

    anabranch run train.py --epochs 3
    anabranch run -m package.train --epochs 3

``import paddle.fluid as fluid`` gives the modules of this package; where the script asks for a GPU it is given the
CPU, with one warning. What it imports and is not offered raises when it is used, and is listed at the end.
"""
from __future__ import annotations

import argparse
import os
import runpy
import sys
from collections.abc import Sequence

#: Set for the processes that a launcher starts: they run their scripts in the same way.
VARIABLE = "ANABRANCH_RUN"


def parser() -> argparse.ArgumentParser:
    """ArgumentParser: of ``anabranch run``."""
    made = argparse.ArgumentParser(prog="anabranch run", description=(__doc__ or "").partition("\n")[0],
                                   usage="anabranch run [-h] [--data DIR] (script | -m module) [args ...]")
    made.add_argument("--data", metavar="DIR", help="where paddle.dataset finds its archives; "
                                                    "default: the environment variable ANABRANCH_DATA")
    made.add_argument("-m", dest="module", action="store_true", help="script is the name of a module")
    made.add_argument("script", help="a Python script, or a module")
    made.add_argument("args", nargs=argparse.REMAINDER, help="its arguments")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Runs ``anabranch run``.

    Args:
        argv (list of str, optional): arguments; those of the process by default.

    Returns:
        int: exit code 0; a script that fails or exits ends the process as it would by itself.
    """
    made = parser()
    args = made.parse_args(argv)
    if not args.module and not os.path.exists(args.script):
        made.error("there is no script %s" % args.script)
    if args.data is not None and not os.path.isdir(args.data):
        made.error("--data: there is no folder %s" % args.data)
    if args.data is not None:
        os.environ["ANABRANCH_DATA"] = os.path.abspath(args.data)
    execute(args.script, args.args, args.module)
    return 0


def execute(script: str, args: Sequence[str], module: bool = False) -> None:
    """Runs a script in this process, as its main module, under the names of Fluid and of this package.

    Args:
        script (str): path, or the name of a module.
        args (list of str): its arguments.
        module (bool): whether it is a module. Default False.
    """
    os.environ[VARIABLE] = "1"
    from ._legacy import names
    names.install()
    sys.argv = [script, *args]
    if module:
        sys.path.insert(0, os.getcwd())
        runpy.run_module(names.real_name(script), run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
        runpy.run_path(script, run_name="__main__")
