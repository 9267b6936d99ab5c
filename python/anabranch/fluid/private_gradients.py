"""Functions of Fluid 1.8.5's ``fluid.backward`` that scripts import although they are private.

Scripts run by ``anabranch run`` find them in ``fluid.backward`` and in the modules that imported them from there, as
``_legacy/imported_names.json`` lists.
"""
from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from .backward import no_grad_names
from .framework import Block, Operator, OpRole, Program, Variable, grad_var_name
from .framework.variable import GRAD_SUFFIX, var_names

__all__: list[str] = []


def append_grad_suffix(name: str) -> str:
    """str: name of the gradient of a variable.

    >>> append_grad_suffix("x")
    'x@GRAD'
    """
    return grad_var_name(name)


def strip_grad_suffix(name: str) -> str:
    """str: name of the variable that a gradient belongs to.

    >>> strip_grad_suffix("x@GRAD@RENAME@0"), strip_grad_suffix("x")
    ('x', 'x')
    """
    return name.partition(GRAD_SUFFIX)[0]


def is_grad_var(name: str) -> bool:
    """bool: whether this is the name of a gradient."""
    return GRAD_SUFFIX in name


def is_grad_op(op: Operator) -> bool:
    """bool: whether an operator belongs to the backward pass only."""
    return op.has_attr("op_role") and op.attr("op_role") == int(OpRole.Backward)


def as_list(value: Any) -> list[Any]:
    """list: an empty one for None, the items of a sequence, or the value alone.

    >>> as_list(None), as_list(3), as_list((1, 2))
    ([], [3], [1, 2])
    """
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple, str)) else [value]


def all_in_set(candidates: Sequence[Any], known: Collection[Any]) -> bool:
    """bool: whether there are candidates, and all of them are known."""
    return len(candidates) > 0 and all(candidate in known for candidate in candidates)


def some_in_set(candidates: Sequence[Any], known: Collection[Any]) -> bool:
    """bool: whether one of the candidates is known."""
    return any(candidate in known for candidate in candidates)


def stop_gradients(program: Program) -> dict[int, set[str]]:
    """dict: index of a block -> names of the gradients of its variables that have ``stop_gradient``."""
    return {block.idx: {grad_var_name(v.name) for v in block.vars.values() if v.stop_gradient}
            for block in program.blocks}


def op_path(block: Block, outputs: Iterable[Variable], inputs: Iterable[Variable],
            no_grad_set: Any = None) -> list[Operator]:
    """list of Operator: the operators through which ``outputs`` depend on ``inputs``, in order.

    Args:
        block (Block): block of the operators.
        outputs (list of Variable): results.
        inputs (list of Variable): an empty list stands for all variables.
        no_grad_set (set of str, optional): names through which the path does not lead.
    """
    barred = set(no_grad_set or ())
    reached = set(var_names(list(inputs)))
    forward = []
    for op in block.ops:
        if not reached:
            forward = list(block.ops)
            break
        if reached.intersection(op.input_arg_names):
            forward.append(op)
            reached.update(name for name in op.output_arg_names if name not in barred)
    needed, path = set(var_names(list(outputs))), []
    for op in reversed(forward):
        if needed.intersection(op.output_arg_names):
            path.append(op)
            needed.update(name for name in op.input_arg_names if name not in barred)
    return path[::-1]


def no_grad_set_names(no_grad_set: Any) -> set[str]:
    """set of str: the names of a ``no_grad_set`` of Variables or names, or of None.

    Raises:
        TypeError: ``no_grad_set`` is not a set, list or tuple of Variables or names.
    """
    return set(no_grad_names(no_grad_set))
