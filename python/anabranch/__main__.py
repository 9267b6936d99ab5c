"""The command ``anabranch``, also ``python -m anabranch``."""
from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType

from ._near import near
from ._terminal import wrapped
from .looking.command_line import Parser

#: Name -> (module with parser() and main(arguments), description). A module is imported when its command runs.
COMMANDS: dict[str, tuple[str, str]] = {
    "completion": ("shell", "writes the completion script of a shell, or a manual page"),
    "data": ("starting.data_command", "describes the columns of files, and proposes a schema"),
    "doctor": ("doctor", "reports on this machine and this installation, and tests them"),
    "draw": ("looking.draw", "draws a saved model or the program of a script"),
    "explain": ("looking.explain", "shows what the graph passes did to a model or a script"),
    "export": ("exporting.command", "writes a saved model as an ONNX file"),
    "help": ("help", "explains an error, a layer, an operator or a flag"),
    "launch": ("launch", "starts the servers and workers of a cluster"),
    "profile": ("looking.profile", "profiles the steps of a script and writes an HTML page"),
    "publish": ("following.publish_command", "copies checkpoints for serving, with smaller rows"),
    "ps": ("server_stats", "shows the traffic and the tables of parameter servers"),
    "run": ("run", "runs a script written for PaddlePaddle Fluid, unchanged"),
    "serve": ("serving.command", "serves a saved model over HTTP"),
    "strategies": ("tuning.strategies", "compares parameter-server strategies on a sample of a script"),
    "summary": ("summary", "lists the inputs, operators and parameters of a saved model"),
    "table": ("looking.table", "shows, copies and compares growable embedding tables"),
    "train": ("starting.train_command", "trains a first model on a CSV or libsvm file"),
    "tune": ("tuning.command", "finds the fastest settings for a script on this machine"),
    "versions": ("following.command", "lists checkpoints, and pins the one that models follow"),
}


def command(name: str) -> ModuleType:
    """module: the module of a command, with parser() and main(arguments)."""
    return import_module("." + COMMANDS[name][0], __package__ or "anabranch")


def parser() -> argparse.ArgumentParser:
    """ArgumentParser: the parser of ``anabranch`` itself."""
    from .version import __version__
    width = max(map(len, COMMANDS))
    listed = "\n".join("  %s  %s" % (name.ljust(width), text) for name, (_, text) in sorted(COMMANDS.items()))
    made = Parser(prog="anabranch", usage="anabranch [-h] [--version] COMMAND ...",
                                   description="Runs, inspects and serves models of PaddlePaddle Fluid.\n\n"
                                   "commands:\n%s\n\n%s" % (
                                       listed, "Run `anabranch COMMAND --help` for the options of a command."),
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--version", action="version", version="anabranch " + __version__)
    return made


def _missing(error: ImportError) -> str | None:
    """The missing part of the installation and the command that installs it; None for any other error."""
    python = "Python %s (%s)" % (platform.python_version(), sys.executable)
    if error.name == "numpy" and isinstance(error, ModuleNotFoundError):
        return "NumPy is not installed for %s\n  Install it: %s -m pip install 'numpy>=1.17'" % (python, sys.executable)
    package = __package__ or "anabranch"
    if error.name == package + "._core" or (error.name == package and "'_core'" in str(error)):
        return ("the compiled module anabranch._core is missing or cannot be loaded by %s: %s\n  Install the package "
                "for this Python: in a clone of the repository, run %s -m pip install ."
                % (python, error, sys.executable))
    return None


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one of the commands.

    Args:
        argv (list of str, optional): arguments. Default: those of the process.

    Returns:
        int: exit code: that of the command; 1 if NumPy or the compiled module is missing; 2 when the command or an
        argument does not exist.
    """
    args = sys.argv[1:] if argv is None else list(argv)
    if args and args[0] in COMMANDS:
        try:
            code: int = command(args[0]).main(args[1:])
        except ImportError as error:
            missing = _missing(error)
            if not missing:
                raise
            sys.stderr.write("anabranch %s: %s\n" % (args[0], missing))
            return 1
        return code
    made = parser()
    if args and not args[0].startswith("-"):
        sys.stderr.write("anabranch: unknown command %r%s\n" % (args[0], near(args[0], COMMANDS))
                         + wrapped("usage: anabranch COMMAND ...; commands: %s" % ", ".join(sorted(COMMANDS))) + "\n")
        return 2
    made.parse_args(args)
    sys.stderr.write(made.format_help())
    return 2


if __name__ == "__main__":
    sys.exit(main())
