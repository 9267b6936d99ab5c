"""The description of a job that workers and servers compare when they connect."""
from __future__ import annotations

from typing import Any

from ... import _core
from ..framework.dtype import dtype_name
from . import op_kinds
from .config import DistributedMode
from .modes import Mode
from .placement import Placement

#: Attributes that change no result.
_IGNORED = ("op_", "use_", "is_test", "with_")


def describe(source: Any, placement: Placement, mode: Mode) -> list[str]:
    """list of str: "what: how" lines, equal in all processes of a job.

    Args:
        source (Program): the training program before it became a worker's.
        placement (Placement): assignment of the shards.
        mode (Mode): how workers and servers synchronize.
    """
    rules = op_kinds.ops_by_param(source)
    shards: dict[str, list[int]] = {}
    for endpoint in placement.endpoints:
        for shard in placement.on(endpoint):
            shards.setdefault(shard.param, []).append(shard.rows)
    # To servers, half-async workers with a communicator are async.
    number = DistributedMode.HALF_ASYNC if mode.number == DistributedMode.ASYNC and mode.half_async else mode.number
    lines = ["strategy: %s" % _core.Mode(number).name.lower().replace("_", "-"), "workers: %d" % mode.trainers,
             "servers: %d" % len(placement.endpoints)]
    for name in placement.gradients:
        var = source.global_block().var(name)
        lines.append("%s: %s %s in shards of %s rows, %s" % (
            name, dtype_name(var.dtype), list(var.shape), " and ".join(map(str, shards[name])),
            ", ".join(map(_rule, rules.get(name, ())))))
    return lines


def _rule(op: Any) -> str:
    settings = ["%s=%s" % (name, _plain(op.attr(name))) for name in sorted(op.attr_names)
                if not name.startswith(_IGNORED) and isinstance(op.attr(name), (bool, int, float, str))]
    return "%s(%s)" % (op.type, ", ".join(settings))


def _plain(value: Any) -> str:
    return "%g" % value if isinstance(value, float) else str(value)
