"""What the parts of a training program are: schedules, updates, and which op belongs to which parameter."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..framework.context import OpRole

#: The variable that schedules count steps in.
COUNTER = "@LR_DECAY_COUNTER@"

#: Ops whose result depends on the whole gradient or parameter: what they update stays on one server.
WHOLE = frozenset(["clip_by_norm", "lars_momentum", "lamb", "dgc_clip_by_norm", "dgc_momentum", "reduce_sum",
                   "squared_l2_norm", "norm", "growable_update"])

LOOK_UPS = frozenset(["lookup_table", "lookup_table_v2"])


def role_of(op: Any) -> int:
    """int: the bits of ``op_role``."""
    return int(op.attr("op_role")) if op.has_attr("op_role") else 0


def role_vars(op: Any) -> list[str]:
    """list of str: ``op_role_var``, the parameter and the gradient that the op works for."""
    return list(op.attr("op_role_var")) if op.has_attr("op_role_var") else []


def is_schedule(op: Any) -> bool:
    """bool: whether the op computes a learning rate."""
    return bool(role_of(op) & OpRole.LRSched)


def is_optimize(op: Any) -> bool:
    """bool: whether the op belongs to the update of parameters."""
    return bool(role_of(op) & OpRole.Optimize) and not is_schedule(op)


def is_update(op: Any) -> bool:
    """bool: whether the op changes a parameter by its gradient."""
    return is_optimize(op) and bool(op.input("Param")) and bool(op.input("Grad"))


def schedule_ops(program: Any) -> list[Any]:
    """list of Operator: those that compute learning rates, in order."""
    return [op for op in program.global_block().ops if is_schedule(op)]


def optimize_ops(program: Any) -> list[Any]:
    """list of Operator: those that update parameters, and what is added to gradients for that."""
    return [op for op in program.global_block().ops if is_optimize(op)]


def gradients_of(program: Any) -> dict[str, str]:
    """Parameter -> the gradient that the backward part makes for it, in the order of updates."""
    made = {}
    updated = []
    for op in program.global_block().ops:
        names = role_vars(op)
        if is_update(op):
            updated.append(op)
        elif not is_optimize(op):
            for param, grad in zip(names[::2], names[1::2]):
                if grad in op.output_arg_names:
                    made[param] = grad
    return {op.input("Param")[0]: made.get(op.input("Param")[0], op.input("Grad")[0]) for op in updated}


def ops_for(program: Any, param: str) -> list[Any]:
    """list of Operator: the update of one parameter and what prepares its gradient."""
    return [op for op in optimize_ops(program) if role_vars(op)[:1] == [param]]


def shared_optimize_ops(program: Any) -> list[Any]:
    """list of Operator: parts of an update that read what was made for other parameters, as a norm over all of them."""
    maker: dict[str, str] = {}
    shared = []
    for op in optimize_ops(program):
        owner = (role_vars(op) or [""])[0]
        if any(maker.get(name, owner) != owner for name in op.input_arg_names):
            shared.append(op)
        maker.update(dict.fromkeys(op.output_arg_names, owner))
    return shared


def state_names(ops: Iterable[Any], params: dict[str, str]) -> set[str]:
    """Names of what ``ops`` read that is neither a parameter nor its gradient: rates, moments."""
    mine: set[str] = set()
    for param, grad in params.items():
        mine.update((param, grad))
    for op in ops:
        mine.update(role_vars(op))
    return {name for op in ops for name in op.input_arg_names} - mine


def last_writer(block: Any, name: str) -> int:
    """int: index of the last op of ``block`` that writes the variable; -1 for none."""
    writers = [i for i, op in enumerate(block.ops) if name in op.output_arg_names]
    return writers[-1] if writers else -1


def remove_ops(block: Any, gone: Iterable[Any]) -> None:
    """Takes ops out of a block."""
    descs = {op.desc for op in gone}
    for index, op in reversed(list(enumerate(block.ops))):
        if op.desc in descs:
            block._remove_op(index)


def rename_var(block: Any, old: str, new: str) -> None:
    """Renames a variable in the block, also where ops say whom they work for."""
    block._rename_var(old, new)
    for op in block.ops:
        names = role_vars(op)
        if old in names:
            op._set_attr("op_role_var", [new if name == old else name for name in names])


def control_var(block: Any) -> Any:
    """A variable that only orders ops: what comes after reads it."""
    number = sum(1 for name in block.vars if name.startswith("__control_var@"))
    return block.create_var(name="__control_var@%d" % number, persistable=False)
