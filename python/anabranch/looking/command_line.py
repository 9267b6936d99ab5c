"""What the commands of this package share: errors become one line and exit code 1."""
from __future__ import annotations

import sys
from collections.abc import Callable


def ended(command: str, work: Callable[[], int]) -> int:
    """Runs a command's work.

    Returns:
        int: what it returns; 1, with the reason on the standard error, where it raises.
    """
    try:
        return work()
    except KeyboardInterrupt:
        return 130
    except Exception as e:
        sys.stderr.write("anabranch %s: %s\n" % (command, e))
        return 1
