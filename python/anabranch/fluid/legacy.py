"""Functions that old Fluid programs call and that have no effect."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import arguments
from .errors import Unsupported
from .user_warnings import warn

if TYPE_CHECKING:
    from .hints import Place

__all__ = ["memory_optimize", "release_memory", "enable_dygraph", "disable_dygraph", "enable_imperative",
           "disable_imperative"]


def memory_optimize(input_program: Any, skip_opt_set: Any = None, print_log: Any = False, level: Any = 0,
                    skip_grads: Any = True) -> None:
    """Does nothing: memory is always reused. Kept, with a warning, for programs of Fluid 1.5 and earlier."""
    warn("memory_optimize does nothing: memory is always reused", DeprecationWarning)


def release_memory(input_program: Any, skip_opt_set: Any = None) -> None:
    """Does nothing: memory is always reused. Kept, with a warning, for programs of Fluid 1.5 and earlier."""
    warn("release_memory does nothing: memory is always reused", DeprecationWarning)


def enable_dygraph(place: Place | None = None) -> Any:
    """Not supported, because this engine runs static programs: raises NotImplementedError."""
    raise Unsupported("enable_dygraph is not supported: this engine only runs static programs")


def disable_dygraph() -> None:
    """Does nothing, because static programs are the only mode.

    >>> disable_dygraph()
    """


enable_imperative = enable_dygraph
disable_imperative = disable_dygraph


arguments.explain(globals())
