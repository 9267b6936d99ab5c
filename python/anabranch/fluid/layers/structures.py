"""Lists, tuples and dicts of Variables, which functions for branches and loops take and return."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any


def flat(value: Any) -> list[Any]:
    """Returns the leaves; those of a dict in the order of its keys."""
    if isinstance(value, dict):
        value = [value[k] for k in sorted(value)]
    if not isinstance(value, (list, tuple)):
        return [value]
    return [leaf for v in value for leaf in flat(v)]


def rebuilt(value: Any, leaves: Iterator[Any]) -> Any:
    """Returns the structure of ``value`` with other leaves, in the order of :func:`flat`."""
    if isinstance(value, dict):
        made = {k: rebuilt(value[k], leaves) for k in sorted(value)}
        return {k: made[k] for k in value}
    if isinstance(value, (list, tuple)):
        items = [rebuilt(v, leaves) for v in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return next(leaves)


def mapped(fn: Callable[..., Any], *structures: Any) -> Any:
    """Applies ``fn`` to the leaves at the same position of several equal structures, and returns the results in this
    structure."""
    values = [flat(s) for s in structures]
    return rebuilt(structures[0], iter([fn(*leaves) for leaves in zip(*values)]))


def skeleton(value: Any) -> Any:
    """Returns the structure without its leaves. It is equal for values with the same structure."""
    if isinstance(value, dict):
        return {k: skeleton(v) for k, v in value.items()}
    return [skeleton(v) for v in value] if isinstance(value, (list, tuple)) else None
