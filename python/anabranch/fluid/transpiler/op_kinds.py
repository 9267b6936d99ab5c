"""The parts of a training program: schedules, updates, and which op belongs to which parameter."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ... import _core
from ..framework.context import OpRole

#: The variable in which schedules count steps.
COUNTER = "@LR_DECAY_COUNTER@"

#: Ops that prepare a gradient and read all of it.
_WHOLE = frozenset(["clip_by_norm", "dgc_clip_by_norm", "reduce_sum", "squared_l2_norm", "norm", "growable_update"])

#: Name scopes of the ops of gradient clips.
_CLIPS = ("/gradient_clip", "/clip_attached")

LOOK_UPS = frozenset(["lookup_table", "lookup_table_v2"])
GROWABLE_LOOKUP = "lookup_growable"


def is_whole(kind: str) -> bool:
    """bool: whether the result of an op depends on the whole gradient or parameter, so that it stays on one server."""
    return kind in _WHOLE or has_trait(kind, "whole parameter")


def has_trait(kind: str, trait: str) -> bool:
    """bool: whether the engine's declaration of an op has a trait."""
    return trait in _core.op_info(kind)["traits"]


def moves_all_rows(op: Any) -> bool:
    """bool: whether an update also changes rows that its sparse gradient does not contain, as rules with moments
    do."""
    if op.type == "adam":
        return not op.attr("lazy_mode")
    return op.type not in ("sgd", "adagrad", "growable_update")


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
    """list of Operator: those that update parameters or prepare gradients for the update."""
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


def ops_by_param(program: Any) -> dict[str, list[Any]]:
    """Parameter -> its update and the ops that prepare its gradient, in order."""
    found: dict[str, list[Any]] = {}
    for op in optimize_ops(program):
        for name in role_vars(op)[:1]:
            found.setdefault(name, []).append(op)
    return found


def shared_optimize_ops(program: Any) -> list[Any]:
    """list of Operator: ops of an update that read results of other parameters, such as a norm over all of them."""
    return [op for op, others in _with_makers(program) if others]


def _with_makers(program: Any) -> list[tuple[Any, set[str]]]:
    """[(op, the other parameters whose ops made its inputs)] of the update."""
    maker: dict[str, str] = {}
    found = []
    for op in optimize_ops(program):
        owner = (role_vars(op) or [""])[0]
        found.append((op, {maker[name] for name in op.input_arg_names if maker.get(name, owner) != owner}))
        maker.update(dict.fromkeys(op.output_arg_names, owner))
    return found


def linked_params(program: Any) -> dict[str, list[str]]:
    """Parameter -> all parameters of the same common norm, itself too, in the order of updates; without a common norm,
    the parameter is absent."""
    groups: dict[str, set[str]] = {}
    for op, others in _with_makers(program):
        if others:
            names = {(role_vars(op) or [""])[0], *others} - {""}
            together = names.union(*(groups.get(name, set()) for name in names))
            groups.update(dict.fromkeys(together, together))
    order = list(gradients_of(program))
    return {name: [other for other in order if other in groups[name]] for name in groups}


def state_names(ops: Iterable[Any], params: dict[str, str]) -> set[str]:
    """Names of inputs of ``ops`` that are neither a parameter nor its gradient: learning rates, moments."""
    mine: set[str] = set()
    for param, grad in params.items():
        mine.update((param, grad))
    for op in ops:
        mine.update(role_vars(op))
    return {name for op in ops for name in op.input_arg_names} - mine


def last_writers(block: Any) -> dict[str, int]:
    """Variable -> index of the last op of ``block`` that writes it."""
    return {name: i for i, op in enumerate(block.ops) for name in op.output_arg_names}


def clip_at_trainers(program: Any) -> None:
    """Moves clips that need the gradients of all parameters into the backward pass, which workers run."""
    if not shared_optimize_ops(program):
        return
    moved = [op for op in optimize_ops(program) if any(scope in op.attr("op_namescope") for scope in _CLIPS)]
    for op in moved:
        op._set_attr("op_role", int(OpRole.Backward))
    read = {name for op in optimize_ops(program) for name in op.input_arg_names}
    for op in moved:
        for name in read.intersection(op.output_arg_names):  # what is sent
            op._set_attr("op_role_var", [role_vars(op)[0], name])


def remove_ops(block: Any, gone: Iterable[Any]) -> None:
    """Removes ops from a block."""
    descs = {op.desc for op in gone}
    for index, op in reversed(list(enumerate(block.ops))):
        if op.desc in descs:
            block._remove_op(index)


def rename_vars(block: Any, names: dict[str, str]) -> None:
    """Renames variables of the block, also in the ``op_role_var`` of its ops."""
    for old, new in names.items():
        block._rename_var(old, new)
    for op in block.ops:
        mine = role_vars(op)
        if any(name in names for name in mine):
            op._set_attr("op_role_var", [names.get(name, name) for name in mine])


def control_var(block: Any) -> Any:
    """A variable that only orders ops: later ops read it."""
    number = len(block.vars)
    while block.has_var("__control_var@%d" % number):
        number += 1
    return block.create_var(name="__control_var@%d" % number, persistable=False)
