"""Decorators for deprecated functions. The names of ``fluid.annotations``."""
from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

__all__ = ["deprecated"]


def deprecated(since: str, instead: str, extra_message: str = "") -> Callable[..., Any]:
    """Returns a decorator. Each call of the decorated function prints on stderr since when it is deprecated, and its
    replacement.

    Args:
        since (str): version that deprecated the function.
        instead (str): name of the replacement.
        extra_message (str): text to append. Default "".

    Returns:
        callable: the decorator.

    Examples:
        >>> from anabranch.fluid.annotations import deprecated
        >>> @deprecated(since="1.0", instead="new")
        ... def old(x):
        ...     return x + 1
        >>> old(1)
        2
    """
    def decorate(function):
        text = "API %s is deprecated since %s. Please use %s instead." % (function.__name__, since, instead)
        if extra_message:
            text += "\n" + extra_message

        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            sys.stderr.write(text + "\n")
            return function(*args, **kwargs)
        wrapped.__doc__ = (function.__doc__ or "") + "\n    Warning: %s\n" % text
        return wrapped
    return decorate
