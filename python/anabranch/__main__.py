"""The command ``anabranch``, also ``python -m anabranch``."""
from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType

#: Name -> (module with parser() and main(arguments), what it does). A module is loaded when its command is asked for.
COMMANDS: dict[str, tuple[str, str]] = {
    "completion": ("shell", "writes what a shell needs to complete these commands"),
    "doctor": ("doctor", "says what this machine and installation are like, and tries them"),
    "draw": ("looking.draw", "draws a saved model, or the program of a script"),
    "explain": ("looking.explain", "says what the passes make of a saved model, or of the program of a script"),
    "export": ("exporting.command", "writes a saved model as an ONNX file"),
    "help": ("help", "tells what an error, a layer, an operator or a flag means"),
    "launch": ("launch", "starts servers and workers of a cluster on this machine"),
    "profile": ("looking.profile", "measures the steps of a script and writes a page for the browser"),
    "ps": ("server_stats", "shows what comes and goes at parameter servers"),
    "run": ("run", "runs a script that was written for Fluid, unchanged"),
    "serve": ("serving.command", "answers over HTTP with a saved model"),
    "strategies": ("tuning.strategies", "compares the strategies of parameter servers on a sample of a script"),
    "summary": ("summary", "says what a saved model holds"),
    "tune": ("tuning.command", "measures a script with other threads, replicas, batches and strategies"),
}


def command(name: str) -> ModuleType:
    """module: the one with parser() and main(arguments) of a command."""
    return import_module("." + COMMANDS[name][0], __package__ or "anabranch")


def parser() -> argparse.ArgumentParser:
    """ArgumentParser: of ``anabranch`` itself."""
    from .version import __version__
    width = max(map(len, COMMANDS))
    listed = "\n".join("  %s  %s" % (name.ljust(width), text) for name, (_, text) in sorted(COMMANDS.items()))
    made = argparse.ArgumentParser(prog="anabranch", usage="anabranch [-h] [--version] COMMAND ...",
                                   description="commands:\n%s\n\nanabranch COMMAND --help says more." % listed,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--version", action="version", version="anabranch " + __version__)
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one of the commands.

    Args:
        argv (list of str, optional): arguments; those of the process by default.

    Returns:
        int: exit code: that of the command; 2 when there is no such command or argument.
    """
    args = sys.argv[1:] if argv is None else list(argv)
    if args and args[0] in COMMANDS:
        code: int = command(args[0]).main(args[1:])
        return code
    made = parser()
    if not args or not args[0].startswith("-"):
        sys.stderr.write("usage: anabranch COMMAND ...; there is: %s\n" % ", ".join(sorted(COMMANDS)))
        return 2
    made.parse_args(args)
    return 2


if __name__ == "__main__":
    sys.exit(main())
