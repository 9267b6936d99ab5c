"""Processes that ``anabranch launch`` has started. If the script of the first worker never asks for its role, this
process says so at its end: each of them has then trained by itself."""
from __future__ import annotations

import atexit
import os
import sys

#: The script that the launcher runs in several processes. A process that such a script starts runs another one.
SCRIPT = "ANABRANCH_LAUNCHED"

_asked = False


def asked() -> None:
    """Called when a script joins the other processes: it makes a role, or splits its program."""
    global _asked
    _asked = True


def watch() -> None:
    """Registers the message, if this process is the first worker of a launched script."""
    script = os.environ.get(SCRIPT)
    if script and os.environ.get("PADDLE_TRAINER_ID") == "0" and os.path.abspath(sys.argv[0]) == script:
        atexit.register(_say)


def _say() -> None:
    if not _asked:
        sys.stderr.write("launch: %s never called fleet.init: the processes did not work together, each of them has "
                         "run the whole script by itself. See docs/clusters.md, \"A script\"\n"
                         % os.path.basename(os.environ[SCRIPT]))
