"""Loops of a program."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..described import Described
from ..errors import InvalidType, InvalidValue
from ..explained import explain
from ..framework import Variable
from ..framework.dtype import VarType
from ..layer_helper import LayerHelper
from . import check
from .copies import assign
from .structures import flat, skeleton
from .sub_blocks import collected, outer_names, seen_from

__all__ = ["While", "while_loop"]


def _one_bool(condition, argument, layer):
    check.variable(condition, argument, layer, ("bool",))
    elements = 1
    for extent in condition.shape:
        elements *= extent
    if elements != 1:
        raise InvalidType("%s: %s must have one element, got shape %s" % (layer, argument, condition.shape))


class While(Described):
    """Repeats the layers of a block while a condition holds. The block must update the condition.

    Gradients flow through the iterations. If the program has a backward part, the iterations keep their variables.

    Args:
        cond (Variable): condition, [1], bool, which the block updates.
        is_test (bool): ignored, because iterations keep variables only if a gradient needs them. Default False.
        name (str, optional): prefix of the generated names.

    Raises:
        TypeError: ``cond`` is not a Variable of one bool.

    Examples:
        >>> import numpy
        >>> import anabranch.fluid as fluid
        >>> layers = fluid.layers
        >>> i, total = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 0)
        >>> bound = layers.fill_constant([1], "int64", 5)
        >>> going_on = layers.less_than(i, bound)
        >>> loop = layers.While(going_on)
        >>> with loop.block():
        ...     _ = layers.assign(total + i, total)
        ...     _ = layers.increment(i)
        ...     _ = layers.less_than(i, bound, cond=going_on)
        >>> fluid.Executor().run(fetch_list=[total])[0].item()
        10
    """

    BEFORE_WHILE_BLOCK, IN_WHILE_BLOCK, AFTER_WHILE_BLOCK = 0, 1, 2

    def __init__(self, cond: Variable, is_test: bool = False, name: str | None = None) -> None:
        self.helper = LayerHelper("while", name=name)
        self.status = While.BEFORE_WHILE_BLOCK
        _one_bool(cond, "cond", "While")
        self.cond_var = cond
        self.is_test = is_test

    def block(self) -> Any:
        """Context manager for the layers that run in each iteration."""
        self.status = While.IN_WHILE_BLOCK
        return collected(self.helper.main_program, self._append)

    def _append(self, inside, outside):
        self.status = While.AFTER_WHILE_BLOCK
        reads, writes = outer_names(inside)
        reads = [name for name in reads if name != self.cond_var.name]
        scopes = outside.create_var(type=VarType.STEP_SCOPES)
        outside.append_op(type="while",
                          inputs={"X": seen_from(outside, reads), "Condition": [self.cond_var]},
                          outputs={"Out": seen_from(outside, writes), "StepScopes": [scopes]},
                          attrs={"sub_block": inside, "is_test": self.is_test})


def _carry_over(made, loop_vars):
    """Assigns the results of an iteration to the variables that the next one reads."""
    for value, variable in zip(flat(made), flat(loop_vars)):
        if not isinstance(value, Variable):
            raise InvalidType("while_loop: body must return Variables, got %s" % type(value).__name__)
        assign(value, variable)


def while_loop(cond: Callable[..., Any], body: Callable[..., Any], loop_vars: Sequence[Any], is_test: bool = False,
               name: str | None = None) -> Any:
    """Repeats ``body`` while ``cond`` holds.

    The loop updates the loop variables in place: after it, they hold the results of the last iteration.

    Args:
        cond (callable): function that takes the loop variables and returns a bool Variable of shape [1].
        body (callable): function that takes the loop variables and returns new values with the same structure.
        loop_vars (list|tuple): Variables, arrays of tensors, or lists, tuples and dicts of them.
        is_test (bool): ignored, as in :class:`While`. Default False.
        name (str, optional): prefix of the generated names.

    Returns:
        list|tuple: ``loop_vars``.

    Raises:
        TypeError: ``cond`` or ``body`` cannot be called, ``loop_vars`` is not a list or tuple, or ``cond`` does not
            return one bool.
        ValueError: ``loop_vars`` is empty, or ``body`` returns a different structure.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> layers = fluid.layers
        >>> i, power = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "float32", 1.0)
        >>> bound = layers.fill_constant([1], "int64", 10)
        >>> i, power = layers.while_loop(lambda i, power: layers.less_than(i, bound),
        ...                              lambda i, power: [i + 1, power * 2.0], [i, power])
        >>> fluid.Executor().run(fetch_list=[power])[0].item()
        1024.0
    """
    for argument, fn in (("cond", cond), ("body", body)):
        if not callable(fn):
            raise InvalidType("while_loop: %s must be callable, got %s" % (argument, type(fn).__name__))
    check.of_type(loop_vars, "loop_vars", "while_loop", (list, tuple))
    if len(loop_vars) == 0:
        raise InvalidValue("while_loop: loop_vars must not be empty")
    going_on = cond(*loop_vars)
    _one_bool(going_on, "the result of cond", "while_loop")
    with While(going_on, is_test, name).block():
        made = body(*loop_vars)
        if not isinstance(made, (list, tuple)):
            made = [made]
        if len(made) != len(loop_vars) or skeleton(list(made)) != skeleton(list(loop_vars)):
            raise InvalidValue("while_loop: body must return %d values of the structure of loop_vars, got %r"
                               % (len(loop_vars), made))
        still_going_on = cond(*made)
        _carry_over(made, loop_vars)
        assign(still_going_on, going_on)
    return loop_vars


explain(globals())
