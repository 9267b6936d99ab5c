"""The command ``anabranch versions``."""
from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence

from ..checkpoints import folders
from ..fluid.errors import EnforceNotMet, InvalidValue
from ..looking.command_line import Parser, complain
from . import folder


def parser() -> argparse.ArgumentParser:
    """ArgumentParser: the parser of ``anabranch versions``."""
    made = Parser(prog="anabranch versions",
                  description="Lists the checkpoints of a folder, and verifies all of their files. Models that follow "
                              "the folder (anabranch serve --follow) use the latest one, or the one that is pinned.")
    made.add_argument("folder", help="Folder of anabranch.Checkpoints.")
    chosen = made.add_mutually_exclusive_group()
    chosen.add_argument("--pin", type=int, metavar="VERSION",
                        help="Version that all followers use from now on, for example an older one.")
    chosen.add_argument("--unpin", action="store_true", help="Lets all followers use the latest version again.")
    return made


def _bytes(path):
    return sum(entry.stat().st_size for entry in os.scandir(path))


def _line(root, number):
    path = folders.path(root, number)
    try:
        status = folder.check(root, number)
    except (EnforceNotMet, OSError) as e:
        return "%9d  incomplete or damaged: %s" % (number, str(e).split("\n")[0])
    chain = status.get("chain")
    kind = "all rows" if chain is None or chain["whole"] else "changes since %d" % chain["previous"]
    trained = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(status["time"])) if "time" in status else "-"
    return "%9d  %9d  %-19s  %13d  %s" % (number, status["step"], trained, _bytes(path), kind)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs ``anabranch versions``.

    Args:
        argv (list of str, optional): arguments. Default: those of the process.

    Returns:
        int: 0; 1 when the folder does not exist, or does not have the version to pin.
    """
    args = parser().parse_args(argv)
    try:
        if not os.path.isdir(args.folder):
            raise InvalidValue("the folder %s does not exist" % args.folder)
        if args.pin is not None or args.unpin:
            folder.pin(args.folder, args.pin)
        pinned = folder.pinned(args.folder)
        numbers = folders.numbers(args.folder)
        sys.stdout.write("  version       step  trained                      bytes  rows of growable tables\n")
        for number in numbers:
            sys.stdout.write(_line(args.folder, number) + ("  pinned" if number == pinned else "") + "\n")
    except (EnforceNotMet, OSError) as e:
        return complain("versions", e)
    return 0
