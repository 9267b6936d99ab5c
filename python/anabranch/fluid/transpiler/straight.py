"""Schedules in the form that a server runs: as one block without branches, and with counters that add up."""
from __future__ import annotations

from typing import Any

from ..errors import Unsupported
from ..framework.dtype import VarType
from .copying import plain_attrs
from .op_kinds import COUNTER

#: The dtypes that ``where`` selects from.
_SELECTED = frozenset([VarType.INT32, VarType.INT64, VarType.FP32, VarType.FP64])


def check_branches(ops: list[Any], rate: str) -> None:
    """Raises NotImplementedError with the rate unless :func:`straightened` can write ``ops`` without blocks."""
    for op in ops:
        if not op.has_attr("sub_block"):
            continue
        if op.type != "conditional_block" or not op.attr("is_scalar_condition"):
            raise Unsupported("transpile: the learning rate %s is computed with the op %s, which servers do not run. "
                              "Use Switch, cond, case or switch_case" % (rate, op.type))
        for name in op.output("Out"):
            var = op.block._find_var_recursive(name)
            if var is not None and (var.dtype not in _SELECTED or tuple(var.shape) != (1,)):
                raise Unsupported("transpile: the learning rate %s is computed with %s, which a branch writes. Servers "
                                  "run such branches only if they write int or float variables of shape [1], got %s "
                                  "of shape %s" % (rate, name, var.dtype.name, list(var.shape)))
        check_branches(op.attr("sub_block").ops, rate)


def straightened(program: Any, scope: Any) -> Any:
    """Program: the server program, or a copy whose schedule runs all branches and selects their results, and adds the
    steps that workers report to its counter. The startup program has run in ``scope``."""
    number = max([op.attr("lr_decay_block_id") for op in program.global_block().ops
                  if op.has_attr("lr_decay_block_id")], default=-1)
    if number < 1 or not any(op.has_attr("sub_block") or counts(op) for op in program.block(number).ops):
        return program
    made = program.clone()
    block = made.block(number)
    for index in reversed(range(len(block.ops))):
        block._remove_op(index)
    _Writer(block, scope).ops(program.block(number).ops, {})
    made._sync_with_cpp()
    return made


def counts(op: Any) -> bool:
    """bool: whether the op adds up the counters of the workers."""
    return bool(op.type == "sum" and op.output("Out") == [COUNTER])


class _Writer:
    """Appends ops to ``block``; a variable that a branch writes gets another name there."""

    def __init__(self, block: Any, scope: Any) -> None:
        self.block, self.scope, self.made = block, scope, 0
        self.written: set[str] = set()

    def ops(self, ops: list[Any], names: dict[str, str], inside: bool = False) -> None:
        """Appends ``ops``. ``names``: variable -> its name within the branch, if a branch has written it."""
        for op in ops:
            if op.has_attr("sub_block"):
                self._branch(op, names, inside)
                continue
            if counts(op):
                self._count(op)
                continue
            inputs = {slot: [names.get(n, n) for n in op.input(slot)] for slot in op.input_names}
            outputs = {slot: [self._target(n, names, inside) for n in op.output(slot)] for slot in op.output_names}
            self.block.append_op(type=op.type, inputs=inputs, outputs=outputs, attrs=plain_attrs(op))

    def _count(self, op: Any) -> None:
        """Workers send the number of steps since their last message: each is added once."""
        self.block.append_op(type="sum", inputs={"X": [COUNTER, *op.input("X")]}, outputs={"Out": [COUNTER]})
        for name in op.input("X"):
            self.block.append_op(type="scale", inputs={"X": [name]}, outputs={"Out": [name]}, attrs={"scale": 0.0})

    def _target(self, name: str, names: dict[str, str], inside: bool) -> str:
        if not inside:
            self.written.add(name)
            return name
        names[name] = self._temporary(name)
        return names[name]

    def _temporary(self, name: str) -> str:
        var = self.block._var_recursive(name)
        self.made += 1
        return str(self.block.create_var(name="%s@BRANCH@%d" % (name, self.made), dtype=var.dtype, shape=var.shape,
                                         persistable=False).name)

    def _branch(self, op: Any, names: dict[str, str], inside: bool) -> None:
        condition = names.get(op.input("Cond")[0], op.input("Cond")[0])
        own = dict(names)
        self.ops(op.attr("sub_block").ops, own, True)
        for name in op.output("Out"):
            if own.get(name) == names.get(name):
                continue
            value = own[name]
            if name in names or name in self.written or self._starts(name):
                selected = self._temporary(name)
                self.block.append_op(type="where", inputs={"Condition": [condition], "X": [value],
                                                           "Y": [names.get(name, name)]}, outputs={"Out": [selected]})
                value = selected
            self.block.append_op(type="assign", inputs={"X": [value]},
                                 outputs={"Out": [self._target(name, names, inside)]})

    def _starts(self, name: str) -> bool:
        """bool: whether the variable has a value before the schedule first runs."""
        held = self.scope.find_var(name)
        return held is not None and bool(held.get_tensor()._is_initialized())
