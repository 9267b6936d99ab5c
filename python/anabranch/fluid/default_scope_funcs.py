"""A stack of scopes for each thread, with the names of ``fluid.default_scope_funcs``."""
from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from .. import _core
from .errors import NotAllowed

__all__ = ["get_cur_scope", "enter_local_scope", "leave_local_scope", "var", "find_var", "scoped_function"]

_threads = threading.local()


def _stack():
    if not hasattr(_threads, "scopes"):
        _threads.scopes = [_core.Scope()]
    return _threads.scopes


def get_cur_scope() -> Any:
    """Scope: the innermost scope of this thread. Each thread starts with its own scope.

    Examples:
        >>> from anabranch.fluid import default_scope_funcs as scopes
        >>> scopes.get_cur_scope().find_var("nothing") is None
        True
    """
    return _stack()[-1]


def enter_local_scope() -> None:
    """Enters a new scope inside the current one.

    Examples:
        >>> from anabranch.fluid import default_scope_funcs as scopes
        >>> scopes.enter_local_scope()
        >>> scopes.leave_local_scope()
    """
    _stack().append(get_cur_scope().new_scope())


def leave_local_scope() -> None:
    """Leaves the current scope and deletes its variables.

    Raises:
        RuntimeError: no scope was entered.

    Examples:
        >>> from anabranch.fluid import default_scope_funcs as scopes
        >>> scopes.enter_local_scope()
        >>> scopes.leave_local_scope()
    """
    if len(_stack()) == 1:
        raise NotAllowed("leave_local_scope: this thread has not entered a scope")
    _stack().pop()
    get_cur_scope().drop_kids()


def var(name: str) -> Any:
    """Returns a variable of the current scope, which is created if it does not exist.

    Args:
        name (str): name of the variable.

    Returns:
        Variable: the result of ``Scope.var``.

    Examples:
        >>> from anabranch.fluid import default_scope_funcs as scopes
        >>> scopes.var("x").get_tensor().shape()
        [0]
    """
    return get_cur_scope().var(name)


def find_var(name: str) -> Any:
    """Returns a variable of the current scope or of an enclosing one, or None.

    Args:
        name (str): name of the variable.

    Returns:
        Variable: the result of ``Scope.find_var``.

    Examples:
        >>> from anabranch.fluid import default_scope_funcs as scopes
        >>> scopes.find_var("nothing") is None
        True
    """
    return get_cur_scope().find_var(name)


def scoped_function(func: Callable[[], Any]) -> None:
    """Calls a function in a new scope, and leaves the scope when the function returns or raises.

    Args:
        func (callable): function without arguments.

    Examples:
        >>> from anabranch.fluid import default_scope_funcs as scopes
        >>> scopes.scoped_function(lambda: scopes.var("inner"))
        >>> scopes.find_var("inner") is None
        True
    """
    enter_local_scope()
    try:
        func()
    finally:
        leave_local_scope()
