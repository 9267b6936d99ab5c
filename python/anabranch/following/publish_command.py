"""The command ``anabranch publish``."""
from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections.abc import Sequence

from ..fluid.errors import EnforceNotMet
from ..looking.command_line import Parser, complain
from .publishing import FORMS, Publisher


def parser() -> argparse.ArgumentParser:
    """ArgumentParser: the parser of ``anabranch publish``."""
    made = Parser(prog="anabranch publish",
                  description="Copies the checkpoints of a training run for serving: without optimizer state, and "
                              "optionally with smaller rows of growable tables. Models follow the folder of the copies "
                              "(anabranch serve --follow).")
    made.add_argument("run", help="Folder of checkpoints that were saved with changed rows (delta, or mode=1).")
    made.add_argument("target", help="Folder of the copies; created if it does not exist.")
    made.add_argument("--model", required=True, help="Folder written by fluid.io.save_inference_model.")
    made.add_argument("--rows", choices=sorted(FORMS), default="float32",
                      help="Type of the numbers in a row: float32, bfloat16, or int8 with a scale for each row "
                           "(default: %(default)s).")
    made.add_argument("--keep", type=int, default=3,
                      help="Number of latest copies to keep, in addition to the copies that these need "
                           "(default: %(default)s).")
    made.add_argument("--watch", action="store_true", help="Copies new checkpoints until the command is stopped.")
    made.add_argument("--poll", type=float, default=0.2,
                      help="Seconds between two checks of the run with --watch (default: %(default)s).")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Runs ``anabranch publish``.

    Args:
        argv (list of str, optional): arguments. Default: those of the process.

    Returns:
        int: 0, also after SIGTERM or Ctrl-C with ``--watch``; 1 when a checkpoint cannot be copied.
    """
    made = parser()
    args = made.parse_args(argv)
    if args.poll <= 0:
        made.error("--poll must be above 0")
    try:
        publisher = Publisher(args.run, args.target, args.model, args.rows, args.keep)
        if args.watch:
            return _watch(publisher, args.poll)
        _tell(publisher.publish())
    except (EnforceNotMet, OSError) as e:
        return complain("publish", e)
    return 0


def _tell(numbers):
    for number in numbers:
        sys.stdout.write("copied %d\n" % number)
    sys.stdout.flush()


def _watch(publisher, poll_s):
    stopped, told = threading.Event(), None
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    while not stopped.wait(poll_s):
        try:
            _tell(publisher.publish())
            told = None
        except (EnforceNotMet, OSError) as e:   # it may be incomplete, or just have been deleted
            if str(e) != told:
                told = str(e)
                complain("publish", e)
    return 0
