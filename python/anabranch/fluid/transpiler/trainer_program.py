"""The program of a worker, which sends gradients as they are computed and receives parameters before the next step."""
from __future__ import annotations

from typing import Any

from ..framework.context import OpRole
from ..framework.dtype import VarType
from ..framework.variable import is_growable
from . import op_kinds
from .counters import send_counter
from .modes import Mode
from .placement import Placement
from .rates import reads_of
from .remote_tables import fetch_rows
from .shards import Shard

_RPC, _DIST = int(OpRole.RPC), int(OpRole.Dist)


def of_trainer(name: str, mode: Mode) -> str:
    """A gradient's name as this worker sends it; servers that sum over all workers tell gradients apart by it."""
    return "%s.trainer_%d" % (name, mode.trainer_id) if mode.merges else name


def name_gradients(program: Any, placement: Placement, mode: Mode) -> None:
    """Renames gradients that are sent whole to the names that servers expect."""
    if not mode.merges or mode.runtime_split:
        return
    names = {grad: of_trainer(grad, mode) for param, grad in placement.gradients.items() if placement.whole_on(param)}
    op_kinds.rename_vars(program.global_block(), names)
    placement.gradients.update({p: names[g] for p, g in placement.gradients.items() if g in names})


def make_trainer(program: Any, placement: Placement, mode: Mode) -> None:
    """Converts a training program to that of a worker; updates and schedules stay in it."""
    block = program.global_block()
    fetch_rows(program, placement, mode)
    sent = _send_all(block, placement, mode)
    after = list(sent.values())
    counter = send_counter(block, placement, mode)
    barrier = None
    if mode.barrier:
        barrier = op_kinds.control_var(block)
        block.append_op(type="send_barrier", inputs={"X": after + ([counter] if counter else [])},
                        outputs={"Out": [barrier]},
                        attrs={"endpoints": placement.endpoints, "trainer_id": mode.trainer_id,
                               "half_async": mode.half_async, "op_role": _RPC})
    _receive(block, placement, mode, barrier if mode.sync else None, sent)


def _section_rows(shards: list[Shard]) -> list[int]:
    return [shard.rows for shard in shards]


def _send_all(block: Any, placement: Placement, mode: Mode) -> dict[str, Any]:
    """Inserts the send of each gradient after the op that completes it. Where one op completes two gradients, the send
    inserted last runs first. Works backwards, so that the indices of earlier ops stay valid."""
    writers = op_kinds.last_writers(block)
    sent = {name: op_kinds.control_var(block) for name in placement.order}
    for name in sorted(placement.order, key=lambda n: -writers.get(placement.gradients[n], -1)):
        _send(block, placement, name, mode, writers.get(placement.gradients[name], -1), sent[name])
    return sent


def _send(block: Any, placement: Placement, param: str, mode: Mode, index: int, out: Any) -> None:
    shards, grad = placement.shards[param], placement.gradients[param]
    names = [of_trainer(shard.grad_name, mode) for shard in shards]
    attrs = {"epmap": [shard.endpoint for shard in shards], "op_role": _RPC, "op_role_var": [param, grad]}
    given = [block.var(grad)]
    if mode.runtime_split:
        attrs.update(sections=_section_rows(shards), send_varnames=names)
    elif len(shards) > 1:
        index += 1
        given = _split(block, index, block.var(grad), shards, names)
    block._insert_op(index + 1, type="send", inputs={"X": given}, outputs={"Out": [out]}, attrs=attrs)


def _split(block: Any, index: int, grad: Any, shards: list[Shard], names: list[str]) -> list[Any]:
    cut = [block.create_var(name=name, type=grad.type, dtype=grad.dtype, shape=shard.shape, persistable=False)
           for name, shard in zip(names, shards)]
    sparse = grad.type == VarType.SELECTED_ROWS
    rows = {"height_sections" if sparse else "sections": _section_rows(shards)}
    block._insert_op(index, type="split_selected_rows" if sparse else "split_byref", inputs={"X": [grad]},
                     outputs={"Out": cut}, attrs=dict(rows, op_role=_DIST))
    return cut


def _received(block: Any, placement: Placement, param: str) -> list[Any]:
    """The variables that receive the shards of a parameter."""
    whole = block.var(param)
    if placement.whole_on(param):
        return [whole]
    return [block.create_var(name=shard.name, dtype=whole.dtype, shape=shard.shape, persistable=False)
            for shard in placement.shards[param]]


def _receive(block: Any, placement: Placement, mode: Mode, barrier: Any, sent: dict[str, Any]) -> None:
    arrived, cut = [], []
    for param, shards in placement.shards.items():
        if placement.remote(param):
            continue
        attrs = {"epmap": [shard.endpoint for shard in shards], "trainer_id": mode.trainer_id, "op_role": _RPC,
                 "op_role_var": [param, placement.gradients[param]]}
        outs = [block.var(param)] if mode.runtime_split else _received(block, placement, param)
        if mode.runtime_split:
            attrs["recv_varnames"] = [shard.name for shard in shards]
        elif len(outs) > 1:
            cut.append((param, outs))
        arrived += outs
        block.append_op(type="recv", inputs={"X": [barrier or sent[param]]}, outputs={"Out": outs}, attrs=attrs)
    if mode.sync:
        block.append_op(type="fetch_barrier", inputs={"X": [barrier]}, outputs={"Out": arrived},
                        attrs={"endpoints": placement.endpoints, "trainer_id": mode.trainer_id, "op_role": _RPC})
    for param, outs in cut:
        block.append_op(type="concat", inputs={"X": outs}, outputs={"Out": [block.var(param)]},
                        attrs={"axis": 0, "op_role": _DIST})


def drop_updates(program: Any, params: dict[str, str]) -> set[str]:
    """Removes updates and schedules, which servers run, from a worker's program; returns the states of the updates that
    it does not read."""
    block = program.global_block()
    updates, schedules = op_kinds.optimize_ops(program), op_kinds.schedule_ops(program)
    names = op_kinds.state_names(updates, params)
    op_kinds.remove_ops(block, updates + schedules)
    used = {name for b in program.blocks for op in b.ops for name in op.input_arg_names + op.output_arg_names}
    for name in names - used:
        if block.has_var(name) and not name.startswith(op_kinds.COUNTER):
            block._remove_var(name)
    return names - {name for op in block.ops for name in reads_of(op)}


def make_startup(startup: Any, main: Any, placement: Placement, mode: Mode, keep_tables: bool = False) -> None:
    """Makes a worker start with the values of the servers."""
    block = startup.global_block()
    cut = []
    for param, shards in placement.shards.items():
        if placement.remote(param):
            continue
        outs = _received(block, placement, param)
        if len(outs) > 1:
            cut.append((param, outs))
        block.append_op(type="recv", inputs={"X": []}, outputs={"Out": outs},
                        attrs={"epmap": [shard.endpoint for shard in shards], "trainer_id": mode.trainer_id,
                               "op_role": _RPC})
    block.append_op(type="fetch_barrier", inputs={}, outputs={"Out": [op_kinds.control_var(block)]},
                    attrs={"endpoints": placement.endpoints, "trainer_id": mode.trainer_id, "op_role": _RPC})
    for param, outs in cut:
        block.append_op(type="concat", inputs={"X": outs}, outputs={"Out": [block.var(param)]}, attrs={"axis": 0})
    if not keep_tables:
        _leave_tables_out(block, placement)


def _leave_tables_out(block: Any, placement: Placement) -> None:
    for table in placement.tables:
        if not block.has_var(table):
            continue
        var = block.var(table)
        if is_growable(var):
            continue  # it has no value here
        op_kinds.remove_ops(block, [op for op in block.ops if table in op.output_arg_names])
        block.append_op(type="fake_init", inputs={}, outputs={"Out": [var]}, attrs={"shape": list(var.shape)})


def drop_states(startup: Any, names: set[str]) -> None:
    """Removes learning rates and moments from a worker's startup program."""
    block = startup.global_block()
    op_kinds.remove_ops(block, [op for op in block.ops if names.intersection(op.output_arg_names)])
    for name in sorted(names):
        if block.has_var(name):
            block._remove_var(name)
