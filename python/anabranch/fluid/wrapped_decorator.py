"""Decorators that keep the signature of the decorated function. The names of ``fluid.wrapped_decorator``."""
from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

__all__ = ["wrap_decorator", "signature_safe_contextmanager"]


def wrap_decorator(decorator_func: Callable[..., Any]) -> Callable[..., Any]:
    """Converts a decorator to one whose results keep the name, the documentation and the signature of the decorated
    function.

    Args:
        decorator_func (callable): function -> function.

    Returns:
        callable: the converted decorator.

    Examples:
        >>> from anabranch.fluid.wrapped_decorator import wrap_decorator
        >>> @wrap_decorator
        ... def twice(function):
        ...     return lambda *args: 2 * function(*args)
        >>> @twice
        ... def one(x):
        ...     return x
        >>> one(3), one.__name__
        (6, 'one')
    """
    @functools.wraps(decorator_func)
    def decorate(function):
        return functools.wraps(function)(decorator_func(function))
    return decorate


def signature_safe_contextmanager(func: Callable[..., Any]) -> Callable[..., Any]:
    """``contextlib.contextmanager`` with Fluid's name.

    Args:
        func (callable): generator function with one ``yield``.

    Returns:
        callable: a function that returns context managers.

    Examples:
        >>> from anabranch.fluid.wrapped_decorator import signature_safe_contextmanager
        >>> @signature_safe_contextmanager
        ... def seven():
        ...     yield 7
        >>> with seven() as x:
        ...     x
        7
    """
    return contextlib.contextmanager(func)
