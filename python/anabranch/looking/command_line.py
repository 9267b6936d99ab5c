"""Shared parts of commands: a parser that proposes similar options, and errors that fit the terminal."""
from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from .._near import near
from .._terminal import columns, wrapped


class Parser(argparse.ArgumentParser):
    """A parser whose errors fit the terminal and propose similar options and values. The arguments of a script
    (REMAINDER) may be absent."""

    def add_argument(self, *names: Any, **settings: Any) -> argparse.Action:
        """Adds an argument, as ArgumentParser does."""
        action = super().add_argument(*names, **settings)
        action.required = action.required and action.nargs != argparse.REMAINDER
        return action

    def error(self, message: str) -> NoReturn:
        """Ends the process with exit code 2, after the usage and the message."""
        self.print_usage(sys.stderr)
        sys.stderr.write(_fitted("%s: error: %s%s" % (self.prog, message, self._meant(message))) + "\n")
        sys.exit(2)

    def _meant(self, message: str) -> str:
        known = {name: self._option_string_actions for name in re.findall(r"(?:^|\s)(--[^\s=]+)", message)
                 if message.startswith("unrecognized")}
        chosen = re.search(r"invalid choice: '(.*?)'", message)
        if chosen:
            return near(chosen.group(1), [one for action in self._actions for one in action.choices or ()])
        return next((found for found in (near(name, options) for name, options in known.items()) if found), "")


def _fitted(text: str) -> str:
    """A message whose lines are cut at spaces in a terminal. Elsewhere it stays as it is, so it can be searched."""
    return wrapped(text, columns(sys.stderr)) if sys.stderr.isatty() else text


def complain(command: str, error: object) -> int:
    """Writes an error of a command to stderr.

    Returns:
        int: 1, the exit code.
    """
    sys.stderr.write(_fitted("anabranch %s: %s" % (command, error)) + "\n")
    return 1


def no_script(path: str) -> str:
    """str: the message about a script that does not exist; it names a file with a similar name."""
    folder, name = os.path.split(path)
    try:
        files = os.listdir(folder or ".")
    except OSError:
        files = []
    return "there is no script %s%s" % (path, near(name, files, 1))


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
        return complain(command, e)
