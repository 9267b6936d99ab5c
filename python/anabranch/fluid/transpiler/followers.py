"""Ops of a training program that follow its updates, such as averages of parameters: workers run them on what they
receive. Rejects ops that servers, each with its own parameters, cannot run."""
from __future__ import annotations

from typing import Any, NamedTuple

from ..errors import Unsupported
from ..framework.context import OpRole
from . import op_kinds
from .copying import plain_attrs
from .placement import Placement
from .rates import reads_of

#: Beginnings of variable names -> the feature that makes them, and what to do instead.
_FEATURES = {
    "lookahead_": "LookaheadOptimizer is supported in GEO training only, where workers update the parameters",
    "loss_scaling": "mixed_precision.decorate with dynamic loss scaling is supported in GEO training only: set "
                    "use_dynamic_loss_scaling=False",
}


class Follower(NamedTuple):
    """An op that was taken out of a program."""

    type: str
    inputs: dict[str, list[str]]
    outputs: dict[str, list[str]]
    attrs: dict[str, Any]


def take_out(program: Any, placement: Placement) -> list[Follower]:
    """Removes the ops that follow the updates, and returns them in their order.

    Raises:
        NotImplementedError: an op combines all parameters, or changes parameters after their update; or it follows the
            updates of a table that stays on the servers.
    """
    ops = op_kinds.optimize_ops(program)
    needed = _read_by_updates(ops)
    _check_placed(ops, placement, needed)
    found = [op for op in ops if op_kinds.role_vars(op) and not op_kinds.is_update(op)
             and not needed.intersection(op.output_arg_names)]
    for op in found:
        _check_received(op, placement)
    _keep_schedules(program, found, needed)
    taken = [Follower(op.type, {slot: op.input(slot) for slot in op.input_names},
                      {slot: op.output(slot) for slot in op.output_names}, plain_attrs(op)) for op in found]
    op_kinds.remove_ops(program.global_block(), found)
    return taken


def put_back(program: Any, taken: list[Follower]) -> None:
    """Appends the ops to the program of a worker, after its receives."""
    for op in taken:
        program.global_block().append_op(type=op.type, inputs=op.inputs, outputs=op.outputs, attrs=op.attrs)


def _is_placed(op: Any, placement: Placement) -> bool:
    return op_kinds.role_vars(op)[:1] != [] and op_kinds.role_vars(op)[0] in placement.shards


def _read_by_updates(ops: list[Any]) -> set[str]:
    """Names of variables that the updates read, and the ops that prepare them."""
    needed = {name for op in ops if op_kinds.is_update(op) for name in op.input_arg_names}
    while True:
        more = {name for op in ops if needed.intersection(op.output_arg_names) for name in reads_of(op)} - needed
        if not more:
            return needed
        needed |= more


def _check_placed(ops: list[Any], placement: Placement, needed: set[str]) -> None:
    for op in ops:
        changed = sorted(needed.intersection(op.output_arg_names))
        if _is_placed(op, placement) or op_kinds.is_update(op) or not changed:
            continue
        known = [text for start, text in _FEATURES.items()
                 if any(name.startswith(start) for name in [*reads_of(op), *op.output_arg_names, *needed])]
        raise Unsupported("transpile: op %s changes %s, and needs or follows the updates of several parameters. Each "
                          "server updates its own parameters only%s"
                          % (op.type, ", ".join(changed), "".join(". " + text for text in known[:1])))


def _check_received(op: Any, placement: Placement) -> None:
    param = op_kinds.role_vars(op)[0]
    if placement.remote(param):
        raise Unsupported("transpile: op %s follows the updates of the table %s, whose rows stay on the servers. Give "
                          "its ParamAttr do_model_average=False" % (op.type, param))


def _keep_schedules(program: Any, followers: list[Any], needed: set[str]) -> None:
    """Workers also run the schedules that only followers read, such as the decay of an average."""
    schedules = op_kinds.schedule_ops(program)
    served, read = set(needed), {name for op in followers for name in op.input_arg_names}
    for op in reversed(schedules):
        if served.intersection(op.output_arg_names):
            served |= reads_of(op)
    for op in reversed(schedules):
        if not read.intersection(op.output_arg_names):
            continue
        both = sorted(served.intersection(op.output_arg_names))
        if both:
            raise Unsupported("transpile: ops that follow the updates read %s, which servers compute for the learning "
                              "rate. Give ExponentialMovingAverage its own counter as thres_steps"
                              % ", ".join(both))
        op._set_attr("op_role", int(OpRole.Forward))
        read |= reads_of(op)
