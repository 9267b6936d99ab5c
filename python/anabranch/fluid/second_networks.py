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


class _Seen:
    """The programs that have run in a scope: of equal networks, the last one that trains and the last one that does
    not, so that the time of a check does not grow with their number."""

    def __init__(self) -> None:
        self.trained: set[str] = set()      # names of parameters
        self.last: dict[tuple[Any, bool], weakref.ref[Program]] = {}    # (network, whether it trains) -> program


_SEEN: dict[int, _Seen] = {}    # by the ids of scopes


def note(program: Program, scope: Any) -> None:
    """Called before the first run of a program in a scope. Warns if the program and another one are the same network,
    one of them trains, and the other one has its own parameters that nothing has trained.

    Args:
        program (Program): the program.
        scope (Scope): the scope of its parameters.
    """
    form = [] if program in program._test_programs else _form(program)
    if not form or loaded_values.initialized(program).issuperset(name for name, _ in form):
        return      # a clone for tests has the parameters of its original, and a startup program only sets them
    seen, trains, network = _SEEN.setdefault(scope.id, _Seen()), _trains(program), tuple(map(_general, form))
    if trains:
        seen.trained.update(name for name, _ in form)
    seen.last[network, trains] = weakref.ref(program)
    other = seen.last.get((network, not trains), lambda: None)()
    if other is None:
        return
    training, testing = (program, other) if trains else (other, program)
    if _is_untrained_copy(testing, training, seen.trained, scope):
        advise("Executor.run: the program has its own parameters (%s), which nothing has trained or loaded, next to "
               "those of the same network that is trained (%s): to evaluate, do not build the network again but use "
               "program.clone(for_test=True), or give both networks the same names with fluid.unique_name.guard() or "
               "param_attr" % (_some(testing), _some(training)))
        del seen.last[network, False]   # one warning


def _is_untrained_copy(testing, training, trained, scope):
    names = {name for name, _ in _form(testing)}
    if not names.isdisjoint(trained) or loaded_values.were_loaded(scope, names):
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
