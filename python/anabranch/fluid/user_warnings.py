"""Warnings that name the line of the user's script, however deep in this package they arise."""
from __future__ import annotations

import contextlib
import os
import sys
import warnings

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def _is_ours(path: str) -> bool:
    """Whether a file belongs to this package, or to the standard library's context managers that it uses."""
    return os.path.abspath(path).startswith(_PACKAGE) or path == contextlib.__file__


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
