"""The learning rate of an optimizer after its program has been built."""
from __future__ import annotations

import math
from typing import Any

import numpy

from ... import _core
from ..errors import InvalidType, InvalidValue, NotAllowed, Unsupported, Violated
from ..framework import Variable
from ..remote import serves, trainers_of
from ..scope import global_scope


def _number(what, value):
    if isinstance(value, bool) or not isinstance(value, (int, float, numpy.number)):
        raise InvalidType("%s: value must be a number, got %s" % (what, type(value).__name__))
    if not math.isfinite(value):
        raise InvalidValue("%s: value must be finite, got %r" % (what, float(value)))
    return float(value)


def _held(variable, scope):
    """The tensor of a Variable in a scope; None if it has no value there."""
    found = scope.find_var(variable.name)
    return found.get_tensor() if found is not None and found._is_initialized() else None


class Rated:
    """The methods of an optimizer that read and change its learning rate."""

    _learning_rate: Any
    #: program -> Variable of the rate in it.
    _learning_rate_map: dict[Any, Any]

    def current_step_lr(self) -> Any:
        """float: the learning rate of the next step in the current scope.

        Raises:
            AssertionError: the learning rate of a schedule has not been computed yet.

        Examples:
            >>> import anabranch.fluid as fluid
            >>> fluid.optimizer.SGD(0.1).current_step_lr()
            0.1
        """
        given = self._learning_rate
        rates = [given] if isinstance(given, Variable) else list(self._learning_rate_map.values())
        for tensor in (_held(rate, global_scope()) for rate in rates):
            if tensor is not None:
                found = numpy.array(tensor).reshape(-1)[0]
                exact = isinstance(given, float) and found == found.dtype.type(given)
                return given if exact else float(found)
        if isinstance(given, Variable):
            raise Violated("%s: the schedule has no value yet: run the program once" % type(self).__name__)
        return float(given)

    def set_lr(self, value: float, scope: Any = None) -> None:
        """Changes a constant learning rate. The next step uses it; checkpoints save it.

        Before ``minimize``, this replaces the rate of the constructor. Afterwards, it changes the variable of the rate
        in a scope.

        Args:
            value (float): the learning rate.
            scope (Scope, optional): scope of the variable. Default ``global_scope()``.

        Raises:
            TypeError: ``value`` is not a number.
            ValueError: ``value`` is not finite.
            RuntimeError: the rate is a Variable, such as a schedule's, or the startup program has not run in the scope.
            NotImplementedError: the rate is on parameter servers.

        Examples:
            >>> import anabranch.fluid as fluid
            >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4]), 1))
            >>> sgd = fluid.optimizer.SGD(0.1)
            >>> _ = sgd.minimize(loss)
            >>> _ = fluid.Executor().run(fluid.default_startup_program())
            >>> sgd.set_lr(0.01)
            >>> sgd.current_step_lr()
            0.01
        """
        what = "%s.set_lr" % type(self).__name__.removesuffix("Optimizer")
        value = _number(what, value)
        if isinstance(self._learning_rate, Variable):
            raise NotAllowed("%s: the rate is the Variable %s, which the program computes or the script sets: change "
                             "the schedule, or the value of the Variable in the scope"
                             % (what, self._learning_rate.name))
        if any(trainers_of(program) or serves(program) for program in self._learning_rate_map):
            raise Unsupported("%s: the rate is on the parameter servers, which set_lr does not reach" % what)
        target = global_scope() if scope is None else scope
        tensors = [tensor for tensor in (_held(rate, target) for rate in self._learning_rate_map.values())
                   if tensor is not None]
        if self._learning_rate_map and not tensors:
            raise NotAllowed("%s: %s has no value in the scope: run the startup program first" % (
                what, ", ".join(sorted(rate.name for rate in self._learning_rate_map.values()))))
        for tensor in tensors:
            tensor.set(numpy.full_like(numpy.array(tensor), value), _core.CPUPlace())
        if target is global_scope():
            self._learning_rate = value
