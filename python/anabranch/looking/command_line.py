"""Error handling that commands share: an error becomes one line and exit code 1."""
from __future__ import annotations

import sys
from collections.abc import Callable


def ended(command: str, work: Callable[[], int]) -> int:
    """Runs the work of a command.

    Returns:
        int: what it returns; 1 after an error, whose message is written to stderr.
    """
    try:
        return work()
    except KeyboardInterrupt:
        return 130
    except Exception as e:
        sys.stderr.write("anabranch %s: %s\n" % (command, e))
        return 1
