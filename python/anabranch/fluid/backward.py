"""Gradients: append_backward and gradients."""
from __future__ import annotations

import collections.abc
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .. import _core
from . import arguments, user_warnings
from .errors import InvalidType, InvalidValue, Violated, also
from .explained import explain
from .framework import Variable
from .framework.variable import var_names

if TYPE_CHECKING:
    from .framework import Parameter

__all__ = ["append_backward", "gradients"]


def _names(what, given):
    """Returns the names of Variables, or of one Variable, in the given order. Names from a set are sorted."""
    if given is None:
        return []
    if isinstance(given, (str, Variable)):
        given = [given]
    if not isinstance(given, (list, tuple, set, frozenset)):
        raise InvalidType("%s must be a set or list of Variables or names, got %s" % (what, type(given).__name__))
    for item in given:
        if not isinstance(item, (str, Variable)):
            raise InvalidType("%s must hold Variables or names, got %s" % (what, type(item).__name__))
    names = var_names(given)
    return sorted(names) if isinstance(given, (set, frozenset)) else names


def no_grad_names(given: Any) -> list[str]:
    """Names of the variables of a ``no_grad_set``. As in Fluid, a single name or Variable raises TypeError."""
    if given is not None and not isinstance(given, (list, tuple, set, frozenset)):
        raise InvalidType("no_grad_set must be a set or list of Variables or names, got %s" % type(given).__name__)
    return _names("no_grad_set", given)


_GRAD = "@GRAD"


def _without_gradient(program, given):
    """The names of a ``no_grad_set`` of append_backward. A gradient stands for its variable; unknown names are warned
    of."""
    names, unknown = set(), []
    for name in no_grad_names(given):
        if name.endswith(_GRAD) and not _holds(program, name):
            name = name[:-len(_GRAD)]
        names.add(name)
        if not _holds(program, name):
            unknown.append(name)
    _warn_unknown(unknown)
    return names


def _holds(program, name):
    return any(block.has_var(name) for block in program.blocks)


def _warn_unknown(names):
    if names:
        user_warnings.warn("no_grad_set: the program has no variables named %s; these names have no effect"
                           % ", ".join(names))


def append_backward(loss: Variable, parameter_list: Sequence[Parameter | str] | None = None, no_grad_set: Any = None,
                    callbacks: Sequence[Callable[..., Any]] | None = None,
                    checkpoints: Sequence[Variable | str] | None = None) -> list[Any]:
    """Appends the operators that compute the gradient of ``loss`` with respect to the parameters.

    Args:
        loss (Variable): the loss, of one element.
        parameter_list (list of Parameter|str, optional): parameters. Default: all trainable ones, in program order.
            For an empty list, the gradients of all parameters are computed, but none is returned.
        no_grad_set (set of Variable|str, optional): variables that get no gradient, in addition to those with
            ``stop_gradient``. Names that the program does not have cause a warning.
        callbacks (list of callable, optional): each is called as ``f(block=block, context=dict)`` after every
            gradient operator.
        checkpoints (list of Variable|str, optional): variables that are kept for the backward pass, which recomputes
            the values between them to save memory. Default: no recomputation.

    Returns:
        list of (Parameter, Variable): parameters with their gradients, in the order of ``parameter_list``.

    Raises:
        AssertionError: ``loss`` is not a Variable of one element, or ``callbacks`` is not a list.
        TypeError: an argument has the wrong type.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
        ...     x = fluid.data("x", [None, 4])
        ...     loss = fluid.layers.mean(fluid.layers.fc(x, 1))
        ...     pairs = fluid.backward.append_backward(loss)
        >>> sorted(g.name for p, g in pairs)
        ['fc_0.b_0@GRAD', 'fc_0.w_0@GRAD']
    """
    if not isinstance(loss, Variable):
        raise also(Violated, TypeError)("append_backward: loss must be a Variable, got %s" % type(loss).__name__)
    if any(extent not in (-1, 1) for extent in loss.shape):
        raise Violated("append_backward: loss must have one element, got shape %s: take its mean" % list(loss.shape))
    if callbacks is not None and (not isinstance(callbacks, (list, tuple)) or not all(map(callable, callbacks))):
        raise also(Violated, TypeError)("append_backward: callbacks must be a list of functions, got %r" % (callbacks,))
    program = loss.block.program
    block = program.global_block()
    parameters = []
    if parameter_list is not None:
        if not isinstance(parameter_list, (list, tuple, set)):
            raise InvalidType("append_backward: parameter_list must be a list, got %s" % type(parameter_list).__name__)
        parameters = _names("parameter_list", parameter_list)
        for name in parameters:
            block.var(name)
    barred = _without_gradient(program, no_grad_set)
    if loss.name in barred:
        return []
    context = _CallbackContext()

    def after_op(block_idx):
        context.block = program.block(block_idx)
        for callback in callbacks:
            callback(block=context.block, context=context)

    program._appending_grad_times += 1
    with program._backward_role_guard():
        pairs = _core.append_backward(program.desc, loss.name, parameters, barred,
                                      after_op if callbacks else None, _names("checkpoints", checkpoints),
                                      loss.block.idx)
    if parameter_list is not None and not parameters:
        return []
    return [(block.var(parameter), loss.block.var(gradient)) for parameter, gradient in pairs]


class _CallbackContext(collections.abc.Mapping):
    """The ``context`` of append_backward's callbacks: name of a gradient -> name of its variable, and the operator
    that was appended last."""

    _OP = "__current_op_desc__"

    def __init__(self):
        self.block = None

    def __getitem__(self, name):
        if name == self._OP:
            return self.block.ops[-1].desc
        if "@GRAD" not in name:
            raise KeyError(name)
        return name[:name.index("@GRAD")]

    def __iter__(self):
        return iter((self._OP,))

    def __len__(self):
        return 1

    def __contains__(self, name):
        return isinstance(name, str) and (name == self._OP or "@GRAD" in name)


def gradients(targets: Any, inputs: Any,
              target_gradients: Any = None, no_grad_set: Any = None) -> list[Any]:
    """Appends the operators that compute the gradient of ``targets`` with respect to ``inputs``.

    Args:
        targets (Variable|list of Variable): variables to differentiate.
        inputs (Variable|list of Variable): variables with respect to which they are differentiated.
        target_gradients (Variable|list of Variable|None, optional): weights of the targets, of the same shapes.
            Default: ones.
        no_grad_set (set of Variable|str, optional): variables through which no gradient flows. Names that the program
            does not have cause a warning.

    Returns:
        list of Variable: one gradient per input, or None if the input has no influence. If the only input has no
        influence, the list is empty.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: numbers or shapes of targets and weights differ.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> with fluid.program_guard(fluid.Program(), fluid.Program()):
        ...     x = fluid.data("x", [None, 4])
        ...     x.stop_gradient = False
        ...     g = fluid.gradients([fluid.layers.relu(x)], x)
        >>> g[0].name
        'x@GRAD'
    """
    targets, inputs = _variables("targets", targets), _variables("inputs", inputs)
    if target_gradients is None:
        weights = [None] * len(targets)
    else:
        weights = list(target_gradients) if isinstance(target_gradients, (list, tuple)) else [target_gradients]
    if len(weights) != len(targets):
        raise InvalidValue("gradients: target_gradients must have %d elements, one per target, got %d"
                           % (len(targets), len(weights)))
    for target, weight in zip(targets, weights):
        if weight is None:
            continue
        if not isinstance(weight, Variable):
            raise InvalidType("gradients: target_gradients must hold Variables or None, got %s" % type(weight).__name__)
        if tuple(weight.shape) != tuple(target.shape):
            raise InvalidValue("gradients: target %s has the shape %s, its gradient %s has %s"
                               % (target.name, list(target.shape), weight.name, list(weight.shape)))
    if not targets or not inputs:
        raise InvalidValue("gradients: targets and inputs must not be empty")
    program = targets[0].block.program
    barred = set(no_grad_names(no_grad_set))
    _warn_unknown([name for name in sorted(barred) if not _holds(program, name) and
                   not (name.endswith(_GRAD) and _holds(program, name[:-len(_GRAD)]))])
    kept = [(t, w) for t, w in zip(targets, weights) if not barred.intersection((t.name, t.name + _GRAD))]
    if not kept:
        return [] if len(inputs) == 1 else [None] * len(inputs)
    targets, weights = [t for t, _ in kept], [w for _, w in kept]
    program._appending_grad_times += 1
    with program._backward_role_guard():
        names = _core.gradients(program.desc, var_names(targets), var_names(inputs),
                                ["" if w is None else w.name for w in weights], barred, _inner_block(targets).idx)
    found = [_inner_block(targets)._find_var_recursive(name) if name else None for name in names]
    # As in Fluid, a single input without a gradient gives an empty list.
    return [] if len(found) == 1 and found[0] is None else found


def _inner_block(targets):
    """The block of the targets, which the ops of their gradients follow: the innermost one, if they are of several."""
    return max((target.block for target in targets), key=lambda block: block.idx)


def calc_gradient(targets: Any, inputs: Any, target_gradients: Any = None, no_grad_set: Any = None) -> Any:
    """Like ``gradients``, but returns the Variable itself, or None, for a single input.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4])
        >>> x.stop_gradient = False
        >>> fluid.backward.calc_gradient(fluid.layers.relu(x), x).name
        'x@GRAD'
    """
    found = gradients(targets, inputs, target_gradients, no_grad_set)
    if len(found) > 1:
        return found
    return found[0] if found else None


def _variables(what, given):
    given = list(given) if isinstance(given, (list, tuple)) else [given]
    for item in given:
        if not isinstance(item, Variable):
            raise InvalidType("gradients: %s must be Variables, got %s" % (what, type(item).__name__))
    return given


explain(globals(), ["gradients"])
arguments.explain(globals())
