"""Branches: blocks of a program that run if a condition holds."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..described import Described
from ..errors import InvalidType, InvalidValue
from ..explained import explain
from ..framework import Variable
from ..framework.dtype import VarType
from ..layer_helper import LayerHelper
from . import check
from ._generated_elementwise import equal, logical_and, logical_not
from .copies import assign, cast
from .fill import fill_constant
from .selecting import select_input
from .structures import flat, rebuilt, skeleton
from .sub_blocks import collected, outer_names, seen_from

__all__ = ["cond", "case", "switch_case", "Switch"]


class ConditionalBlock:
    """A sub-block of the program that runs if a condition is true. It is meant for layers; scripts use cond or Switch.

    Args:
        inputs (list of Variable): the condition: [1], bool, or a mask of rows.
        is_scalar_condition (bool): True: the condition is a single bool. False: the block runs if the mask has rows.
            Default False.
        name (str, optional): has no effect.

    Raises:
        TypeError: ``inputs`` is not a list of one Variable.
    """

    def __init__(self, inputs: Sequence[Variable], is_scalar_condition: bool = False, name: str | None = None) -> None:
        if not isinstance(inputs, (list, tuple)) or len(inputs) != 1 or not isinstance(inputs[0], Variable):
            raise InvalidType("ConditionalBlock: inputs must be a list of one Variable, got %.60r" % (inputs,))
        self.condition = inputs[0]
        self.is_scalar_condition = is_scalar_condition
        self.helper = LayerHelper("conditional_block")

    def block(self) -> Any:
        """Context manager in which layers append to the sub-block. At its end, the op that runs the sub-block is
        appended to the enclosing block."""
        return collected(self.helper.main_program, self._append)

    def _append(self, inside, outside):
        reads, writes = outer_names(inside)
        if self.condition.dtype == VarType.BOOL:  # any other one may be data that has a gradient
            reads = [n for n in reads if n != self.condition.name]
        scope = outside.create_var(type=VarType.STEP_SCOPES)
        outside.append_op(type="conditional_block",
                          inputs={"Cond": [self.condition], "Input": seen_from(outside, reads)},
                          outputs={"Out": seen_from(outside, writes), "Scope": [scope]},
                          attrs={"sub_block": inside, "is_scalar_condition": self.is_scalar_condition})


class Switch(Described):
    """Runs the first case whose condition is true, or else the default. It is meant for learning rates and other
    scalars.

    Args:
        name (str, optional): prefix of the generated names.

    Raises:
        ValueError: ``case`` or ``default`` is called outside of ``with``, or there is a default but no case.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> layers = fluid.layers
        >>> rate = layers.create_global_var([1], 0.0, "float32", persistable=True)
        >>> step = layers.autoincreased_step_counter()
        >>> with layers.Switch() as switch:
        ...     with switch.case(step < 100):
        ...         _ = layers.assign(layers.fill_constant([1], "float32", 0.1), rate)
        ...     with switch.default():
        ...         _ = layers.assign(layers.fill_constant([1], "float32", 0.01), rate)
    """

    def __init__(self, name: str | None = None) -> None:
        self.helper = LayerHelper("switch", name=name)
        self._inside = False
        self._none_before: Variable | None = None  # Variable: no case so far has been true

    def __enter__(self) -> Any:
        self._inside = True
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> Any:
        self._inside = False
        return False

    def case(self, condition: Variable) -> Any:
        """Context manager for the layers that run if ``condition`` is true and the conditions of all earlier cases
        are false.

        Args:
            condition (Variable): [1], bool.

        Raises:
            ValueError: it is called outside of ``with``.
            TypeError: ``condition`` is not a bool Variable.
        """
        if not self._inside:
            raise InvalidValue("Switch.case must be called inside `with Switch() as switch`")
        check.variable(condition, "condition", "Switch.case", ("bool",))
        failed = logical_not(x=condition)
        if self._none_before is None:
            self._none_before = failed
            return ConditionalBlock([condition], is_scalar_condition=True).block()
        before = self._none_before
        self._none_before = logical_and(x=before, y=failed)
        return ConditionalBlock([logical_and(x=before, y=condition)], is_scalar_condition=True).block()

    def default(self) -> Any:
        """Context manager for the layers that run if the conditions of all cases are false.

        Raises:
            ValueError: there is no case.
        """
        if self._none_before is None:
            raise InvalidValue("Switch.default must follow at least one case")
        return ConditionalBlock([self._none_before], is_scalar_condition=True).block()


def _copied_out(helper, value):
    """Copies the results of a branch to the enclosing block, and keeps the structure of lists and dicts."""
    if isinstance(value, (list, tuple)):
        return type(value)(_copied_out(helper, v) for v in value)
    if isinstance(value, dict):
        return {k: _copied_out(helper, v) for k, v in value.items()}
    if not isinstance(value, Variable):
        raise InvalidType("cond: a branch must return Variables, or lists or dicts of them, got %s"
                          % type(value).__name__)
    program = helper.main_program
    outer = program.block(program.current_block().parent_idx).create_var(
        dtype=value.dtype, shape=value.shape, type=value.type)
    assign(value, outer)
    return outer


def cond(pred: Variable, true_fn: Callable[..., Any] | None = None, false_fn: Callable[..., Any] | None = None,
         name: str | None = None) -> Any:
    """Runs the layers of one of two functions, depending on the value of ``pred`` at run time.

    Args:
        pred (Variable): condition, [1], bool.
        true_fn (callable, optional): function for a true condition. It builds layers and returns Variables, lists or
            dicts of them, or None.
        false_fn (callable, optional): function for a false condition, which must return the same structure.
        name (str, optional): prefix of the generated names.

    Returns:
        The structure that the functions return, with the results of the one that runs; None if they return nothing.

    Raises:
        TypeError: ``pred`` is not a bool Variable, or a function cannot be called.
        ValueError: the functions return different structures.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> layers = fluid.layers
        >>> a, b = layers.fill_constant([1], "float32", 1.0), layers.fill_constant([1], "float32", 2.0)
        >>> layers.cond(layers.less_than(a, b), lambda: a + b, lambda: a - b).shape
        (1,)
    """
    check.variable(pred, "pred", "cond", ("bool",))
    check.of_type(name, "name", "cond", (str, type(None)))
    helper = LayerHelper("cond", name=name)
    results = []
    for argument, fn in (("true_fn", true_fn), ("false_fn", false_fn)):
        result = None
        if fn is not None:
            if not callable(fn):
                raise InvalidType("cond: %s must be callable, got %s" % (argument, type(fn).__name__))
            condition = pred if argument == "true_fn" else logical_not(pred)
            with ConditionalBlock([condition], is_scalar_condition=True).block():
                result = fn()
                if result is not None:
                    result = _copied_out(helper, result)
        results.append(result)
    on_true, on_false = results
    if on_true is None and on_false is None:
        return None
    if on_true is None or on_false is None or skeleton(on_true) != skeleton(on_false):
        raise InvalidValue("cond: true_fn and false_fn must return the same structure, got %s and %s"
                           % (on_true, on_false))
    mask = cast(pred, dtype="int32")
    merged = [select_input([f, t], mask) for f, t in zip(flat(on_false), flat(on_true))]
    return rebuilt(on_false, iter(merged))


def case(pred_fn_pairs: Sequence[Any], default: Callable[..., Any] | None = None, name: str | None = None) -> Any:
    """Runs the function of the first condition that is true, like if ... elif ... else.

    Args:
        pred_fn_pairs (list|tuple): (condition, function) pairs. Each condition is a bool Variable of shape [1].
        default (callable, optional): function that runs if no condition is true. Default: the last function.
        name (str, optional): prefix of the generated names.

    Returns:
        The structure that the functions return, as for :func:`cond`.

    Raises:
        TypeError: an argument has the wrong type.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> layers = fluid.layers
        >>> a, b = layers.fill_constant([1], "float32", 1.0), layers.fill_constant([1], "float32", 2.0)
        >>> layers.case([(a < b, lambda: a), (b < a, lambda: b)], default=lambda: a + b).shape
        (1,)
    """
    check.of_type(pred_fn_pairs, "pred_fn_pairs", "case", (list, tuple))
    for pair in pred_fn_pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise InvalidType("case: pred_fn_pairs must hold tuples (condition, function), got %r" % (pair,))
        check.variable(pair[0], "condition", "case", ("bool",))
        if not callable(pair[1]):
            raise InvalidType("case: a function must be callable, got %s" % type(pair[1]).__name__)
    pairs = list(pred_fn_pairs)
    if default is None:
        default = pairs.pop()[1]
    elif not callable(default):
        raise InvalidType("case: default must be callable, got %s" % type(default).__name__)
    chosen = default
    for pred, fn in reversed(pairs):
        chosen = partial(cond, pred=pred, true_fn=fn, false_fn=chosen)
    return chosen()


def switch_case(branch_index: Variable, branch_fns: dict[str, Any] | Sequence[Any],
                default: Callable[..., Any] | None = None, name: str | None = None) -> Any:
    """Runs the function that an index selects.

    Args:
        branch_index (Variable): [1], int32, int64 or uint8.
        branch_fns (dict|list|tuple): dict index -> function, (index, function) pairs, or the functions of the indices
            0, 1, ...
        default (callable, optional): function that runs for any other index. Default: the function with the largest
            index.
        name (str, optional): prefix of the generated names.

    Returns:
        The structure that the functions return, as for :func:`cond`.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: an index occurs twice.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> layers = fluid.layers
        >>> index = layers.fill_constant([1], "int32", 1)
        >>> layers.switch_case(index, {0: lambda: index + 1, 1: lambda: index + 2}).shape
        (1,)
    """
    layer = "switch_case"
    check.variable(branch_index, "branch_index", layer, ("uint8", "int32", "int64"))
    check.of_type(branch_fns, "branch_fns", layer, (list, tuple, dict))
    if check.dtype_name(branch_index.dtype) != "int64":
        branch_index = cast(branch_index, "int64")
    entries: list[Any] = list(branch_fns.items()) if isinstance(branch_fns, dict) else list(branch_fns)
    if all(callable(fn) for fn in entries):
        entries = list(enumerate(entries))
    seen = set()
    for entry in entries:
        if not isinstance(entry, tuple) or len(entry) != 2 or not isinstance(entry[0], int):
            raise InvalidType("switch_case: branch_fns must hold tuples (int, function), got %r" % (entry,))
        if entry[0] in seen:
            raise InvalidValue("switch_case: index %d occurs twice" % entry[0])
        if not callable(entry[1]):
            raise InvalidType("switch_case: a function must be callable, got %s" % type(entry[1]).__name__)
        seen.add(entry[0])
    entries.sort(key=lambda entry: entry[0])
    if default is None:
        default = entries.pop()[1]
    elif not callable(default):
        raise InvalidType("switch_case: default must be callable, got %s" % type(default).__name__)
    chosen = default
    for index, fn in entries:
        hit = equal(branch_index, fill_constant(shape=[1], dtype="int64", value=index))
        chosen = partial(cond, pred=hit, true_fn=fn, false_fn=chosen)
    return chosen()


explain(globals())
