"""Learning rates that the script computes with its own ops; servers compute them like fluid.layers schedules."""
from __future__ import annotations

from typing import Any

from ..errors import Unsupported
from ..framework.context import OpRole
from . import op_kinds
from .modes import Mode
from .straight import check_branches


def reads_of(op: Any) -> set[str]:
    """Names of outer variables that an op reads, its blocks included."""
    names = set(op.input_arg_names)
    if op.has_attr("sub_block"):
        inner = op.attr("sub_block")
        names.update(name for child in inner.ops for name in reads_of(child) if not inner.has_var(name))
    return names


def rate_names(program: Any) -> list[str]:
    """Names of the learning rates of all updates, in order."""
    return list(dict.fromkeys(name for op in op_kinds.optimize_ops(program) for name in op.input("LearningRate")))


def rate_ops(program: Any) -> list[Any]:
    """list of Operator: those that compute learning rates, in order: schedules and what the script computes itself."""
    ops = program.global_block().ops
    needed = set(rate_names(program))
    for op in op_kinds.schedule_ops(program):
        needed |= reads_of(op)
    found: set[int] = set()
    while True:
        more = [i for i, op in enumerate(ops) if i not in found and not op_kinds.is_schedule(op)
                and needed.intersection(op.output_arg_names)]
        if not more:
            return [op for i, op in enumerate(ops) if i in found or op_kinds.is_schedule(op)]
        found.update(more)
        for i in more:
            needed |= reads_of(ops[i])


def carry_rates(program: Any, mode: Mode) -> None:
    """Gives the ops that compute a rate the role of a schedule where workers cannot run them.

    Raises:
        NotImplementedError: servers cannot compute the rate; the error names it and the reason.
    """
    ops = rate_ops(program)
    rate = ", ".join(rate_names(program))
    _check_roles(ops, rate)
    _check_inputs(program, ops, rate)
    check_branches(ops, rate)
    if not mode.sync:
        _check_states(program, ops, rate)
    served = {name for op in ops if op_kinds.is_schedule(op) for name in op.output_arg_names}
    for op in ops:
        if not op_kinds.is_schedule(op) and (not mode.sync or served & reads_of(op)):
            op._set_attr("op_role", int(OpRole.LRSched))
            served.update(op.output_arg_names)


def _check_roles(ops: list[Any], rate: str) -> None:
    for op in ops:
        if not op_kinds.is_schedule(op) and op_kinds.role_of(op) & (int(OpRole.Backward) | int(OpRole.Optimize)):
            raise Unsupported("transpile: the learning rate %s depends on %s, which the training step computes (%s). "
                              "Servers compute learning rates from the number of steps"
                              % (rate, ", ".join(op.output_arg_names), op.type))


def _check_inputs(program: Any, ops: list[Any], rate: str) -> None:
    block = program.global_block()
    made = {name for op in ops for name in op.output_arg_names}
    trained = op_kinds.gradients_of(program)
    for name in sorted({name for op in ops for name in reads_of(op)}.union(rate_names(program)) - made):
        var = block._find_var_recursive(name)
        if var is None or name in trained or not var.persistable:
            raise Unsupported("transpile: the learning rate %s depends on %s, which only workers have. Servers "
                              "compute learning rates from the number of steps" % (rate, name))


def _check_states(program: Any, ops: list[Any], rate: str) -> None:
    """Servers that update at each gradient run a schedule more often than once a step."""
    block = program.global_block()
    begun: set[str] = set()
    late = {name for op in ops for name in op.output_arg_names}
    for op in ops:
        own = set(op.output_arg_names) if op.has_attr("sub_block") else set()  # a branch may keep what it updates
        for name in sorted(reads_of(op) & (late - begun | own)):
            if block.has_var(name) and block.var(name).persistable and name != op_kinds.COUNTER:
                raise Unsupported("transpile: the learning rate %s depends on %s, which counts or accumulates over "
                                  "steps. Without sync, servers count steps in %s only, the counter of all public "
                                  "schedules" % (rate, name, op_kinds.COUNTER))
        begun.update(op.output_arg_names)
