"""Step counters of asynchronous servers' schedules: each worker counts its own steps, and servers add them up."""
from __future__ import annotations

from typing import Any

from ..framework.context import OpRole
from ..initializer import Constant
from . import op_kinds
from .modes import Mode
from .placement import Placement


def counter_of(trainer: int) -> str:
    """The name of a worker's own counter."""
    return "%s.trainer_%d" % (op_kinds.COUNTER, trainer)


def _counts(block: Any) -> Any:
    """The op that counts steps; None for a program without a schedule."""
    found = [op for op in op_kinds.schedule_ops(block.program)
             if op.type == "increment" and op.input("X") == [op_kinds.COUNTER]]
    return found[0] if found else None


def give_counters(program: Any, startup: Any, mode: Mode) -> None:
    """Replaces the counter of a schedule with the sum of one counter per worker."""
    block = program.global_block()
    counts = _counts(block)
    if counts is None or mode.sync:
        return
    mine = []
    for trainer in range(mode.trainers):
        spec = {"name": counter_of(trainer), "shape": [1], "dtype": block.var(op_kinds.COUNTER).dtype,
                "persistable": True}
        mine.append(block.create_var(**spec))
        started = startup.global_block().create_var(**spec)
        Constant(value=1.0)(started, startup.global_block())
    for op in startup.global_block().ops:
        if op.output_arg_names == [op_kinds.COUNTER]:
            op._set_attr("value", float(-mode.trainers))
    index = block.ops.index(counts)
    block._remove_op(index)
    block._insert_op(index, type="sum", inputs={"X": mine}, outputs={"Out": [block.var(op_kinds.COUNTER)]},
                     attrs={"op_role": int(OpRole.LRSched), "op_role_var": []})


def send_counter(block: Any, placement: Placement, mode: Mode) -> Any:
    """Sends the worker's step count to all servers. Returns the variable to wait for, or None without a counter."""
    name = counter_of(mode.trainer_id)
    if mode.sync or not block.has_var(name):
        return None
    out = op_kinds.control_var(block)
    attrs = {"epmap": placement.endpoints, "merge_add": True, "use_send_handler": False, "op_role": int(OpRole.RPC),
             "op_role_var": [name, name]}
    if mode.runtime_split:
        attrs["send_varnames"] = [name]
    block.append_op(type="send", inputs={"X": [block.var(name)]}, outputs={"Out": [out]}, attrs=attrs)
    return out
