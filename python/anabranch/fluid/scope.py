"""The scope that executors use when none is given."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .. import _core
from . import arguments
from .errors import InvalidType

if TYPE_CHECKING:
    from .._core import Scope

_global = _core.Scope()


def global_scope() -> Any:
    """Scope: the current global scope, which the innermost ``scope_guard`` sets. Outside of all guards, it is the
    scope of the process.

    Examples:
        >>> import numpy, anabranch.fluid as fluid
        >>> with fluid.scope_guard(fluid.Scope()):
        ...     fluid.global_scope().var("x").get_tensor().set(numpy.ones((2, 2)), fluid.CPUPlace())
        ...     float(numpy.array(fluid.global_scope().find_var("x").get_tensor()).sum())
        4.0
    """
    return _global


def _switch_scope(scope):
    """Replaces the current scope and returns the previous one."""
    global _global
    if not isinstance(scope, _core.Scope):
        raise InvalidType("the scope must be a Scope, got %s" % type(scope).__name__)
    old, _global = _global, scope
    return old


@contextlib.contextmanager
def scope_guard(scope: Scope) -> Iterator[None]:
    """Context manager in which ``scope`` is the global scope. Afterwards, the previous scope is restored, even after an
    exception.

    Args:
        scope (Scope): scope to use.

    Raises:
        TypeError: ``scope`` is not a Scope.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> scope = fluid.Scope()
        >>> with fluid.scope_guard(scope):
        ...     fluid.global_scope() is scope
        True
    """
    old = _switch_scope(scope)
    try:
        yield
    finally:
        _switch_scope(old)


arguments.explain(globals())
