"""A warning about a network that was built a second time to evaluate it, so that it has its own parameters."""
from __future__ import annotations

import re
import weakref
from typing import Any

import numpy as np

from . import loaded_values
from .framework import Program
from .framework.pruning import update_ops
from .user_warnings import advise

#: Scope -> programs with parameters that have run in it.
_SEEN: dict[int, weakref.WeakSet[Any]] = {}


def note(program: Program, scope: Any) -> None:
    """Called before the first run of a program in a scope. Warns if the program and another one are the same network,
    one of them trains, and the other one has its own parameters that nothing has trained.

    Args:
        program (Program): the program.
        scope (Scope): the scope of its parameters.
    """
    if program in program._test_programs or not _form(program):
        return      # a clone for tests has the parameters of its original
    seen = _SEEN.setdefault(scope.id, weakref.WeakSet())
    for other in list(seen):
        training, testing = (other, program) if _trains(other) else (program, other)
        if _trains(training) and not _trains(testing) and _is_untrained_copy(testing, training, seen, scope):
            advise("Executor.run: the program has its own parameters (%s), which nothing has trained or loaded, next "
                   "to those of the same network that is trained (%s): to evaluate, do not build the network again but "
                   "use program.clone(for_test=True), or give both networks the same names with "
                   "fluid.unique_name.guard() or param_attr" % (_some(testing), _some(training)))
            seen.discard(testing)   # one warning
            break
    seen.add(program)


def _is_untrained_copy(testing, training, seen, scope):
    names = {name for name, _ in _form(testing)}
    others = {name for one in seen if _trains(one) for name, _ in _form(one)} | {name for name, _ in _form(training)}
    if [_general(one) for one in _form(testing)] != [_general(one) for one in _form(training)] or not names.isdisjoint(
            others) or loaded_values.were_loaded(scope, names):
        return False
    pairs = sorted(zip(_form(testing), _form(training)), key=lambda pair: np.prod(pair[0][1]))
    return (all(_is_tensor(scope, name) for pair in pairs for name, _ in pair)
            and any(not np.array_equal(*(_value(scope, name) for name, _ in pair)) for pair in pairs))  # equal: copied


def _form(program):
    """list: (name, shape) of the parameters that training changes."""
    return [(p.name, tuple(p.shape)) for p in program.all_parameters() if p.trainable]


def _general(parameter):
    """The parameter without the number that distinguishes layers, as in fc_0.w_0 and fc_2.w_0."""
    return re.sub(r"_\d+", "_", parameter[0], count=1), parameter[1]


def _is_tensor(scope, name):
    found = scope.find_var(name)
    return found is not None and found._is_initialized() and found._kind() == "tensor"


def _value(scope, name):
    return np.asarray(scope.find_var(name).get_tensor())


def _some(program):
    names = [name for name, _ in _form(program)]
    return ", ".join(names[:2]) + (", ..." if len(names) > 2 else "")


def _trains(program):
    return bool(update_ops(program))
