"""Warnings that name the line of the user's script, however deep in this package they arise."""
from __future__ import annotations

import contextlib
import os
import sys
import warnings

from .. import _core

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def _is_ours(path: str) -> bool:
    """Whether a file belongs to this package, or to the standard library's context managers that it uses."""
    return os.path.abspath(path).startswith(_PACKAGE) or path == contextlib.__file__


def advise(message: str) -> None:
    """Issues a warning about a program that Fluid 1.8.5 runs without one, unless ``FLAGS_fluid_exact`` asks for Fluid's
    behavior.

    Args:
        message (str): text of the warning, with what to do.
    """
    if _core.all_flags()["FLAGS_fluid_exact"][0] != "1.8.5":
        warn(message)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Issues a warning at the innermost caller outside of this package.

    Args:
        message (str): text of the warning.
        category (type): class of the warning. Default UserWarning.
    """
    level, frame = 2, sys._getframe(1)
    while frame is not None and _is_ours(frame.f_code.co_filename):
        level, frame = level + 1, frame.f_back  # type: ignore[assignment]
    warnings.warn(message, category, stacklevel=level)
