"""The attributes of every appended op that context managers set: role, name scope, device."""
from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator
from typing import Any

from .. import arguments
from ..errors import InvalidValue, Violated


class OpRole(enum.IntFlag):
    """Bits of the attribute ``op_role``."""

    Forward = 0x0000
    Backward = 0x0001
    Optimize = 0x0002
    RPC = 0x0004
    Dist = 0x0008
    LRSched = 0x0010
    Loss = 0x0100
    NotSpecified = 0x1000

    def __str__(self) -> str:
        return "OpRole.%s" % self.name if self.name else str(int(self))


class _NameScope:
    """A node of the tree of name scopes; equal names under one parent are numbered."""

    def __init__(self, path="/"):
        self.path = path
        self.counts = {}

    def child(self, prefix):
        number = self.counts.get(prefix, 0)
        self.counts[prefix] = number + 1
        name = prefix if number == 0 else "%s_%d" % (prefix, number)
        return _NameScope(self.path + name + "/")


_scope = _NameScope()
_device = None
#: The default main and startup program; ``defaults`` creates and replaces them.
_programs: dict[str, Any] = {}


def default_programs() -> list[Any]:
    """The default main and startup program."""
    return list(_programs.values())


@contextlib.contextmanager
def name_scope(prefix: str | None = None) -> Iterator[None]:
    """Context manager that sets ``op_namescope`` = "/outer/prefix/" on its ops, to structure graphs; names do not
    change.

    Args:
        prefix (str): name of the scope; if repeated at one level, it becomes ``prefix_1``, ``prefix_2`` ...

    Raises:
        AssertionError: ``prefix`` is empty or missing.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> with fluid.name_scope("encoder"):
        ...     pass
    """
    global _scope
    if not prefix:
        raise Violated("name_scope: prefix must be a non-empty str, got %r" % (prefix,))
    outer = _scope
    _scope = outer.child(prefix)
    try:
        yield
    finally:
        _scope = outer


@contextlib.contextmanager
def device_guard(device: str | None = None) -> Iterator[None]:
    """Context manager that sets the attribute ``op_device`` on its ops.

    Args:
        device (str, optional): "cpu" runs the ops and their gradients on the CPU even if the program runs on a GPU.
            "gpu" or None runs them where the program runs, if there is a kernel for it.

    Raises:
        ValueError: ``device`` is another string.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> with fluid.device_guard("cpu"):
        ...     pass
    """
    global _device
    if device is not None and str(device).split(":")[0] not in ("cpu", "gpu", ""):
        raise InvalidValue("device_guard: device must be 'cpu', 'gpu' or None, got %r" % (device,))
    old, _device = _device, device
    try:
        yield
    finally:
        _device = old


def op_attributes(program: Any) -> Any:
    """The attributes that a new op of ``program`` gets from its context."""
    attrs = {
        "op_role": int(program._current_role),
        "op_role_var": program._current_role_var,
        "op_namescope": _scope.path,
    }
    if _device:
        attrs["op_device"] = _device
    return attrs


arguments.explain(globals())
