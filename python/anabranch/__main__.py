"""The command ``anabranch``, also ``python -m anabranch``."""
from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from . import launch, run


def _doctor(argv: Sequence[str]) -> int:
    from . import doctor  # loads the engine, which the others do not need
    return doctor.main(argv)


#: Name -> what it runs with the arguments after it.
COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {"doctor": _doctor, "launch": launch.main, "run": run.main}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one of the commands.

    Args:
        argv (list of str, optional): arguments; those of the process by default.

    Returns:
        int: exit code.
    """
    args = sys.argv[1:] if argv is None else list(argv)
    if not args or args[0] not in COMMANDS:
        sys.stderr.write("usage: anabranch COMMAND ...; there is: %s\n" % ", ".join(sorted(COMMANDS)))
        return 2
    return COMMANDS[args[0]](args[1:])


if __name__ == "__main__":
    sys.exit(main())
