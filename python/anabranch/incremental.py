"""``anabranch.warm_start``, which starts training from the parameters of another program."""
from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from . import _core, fluid
from ._terminal import counted
from .checkpoints import constants, folders
from .fluid import arguments, loaded_values
from .fluid.errors import InvalidType, InvalidValue, ShapeMismatch
from .fluid.framework import Program
from .fluid.framework.dtype import numpy_dtype
from .fluid.growable_table import is_growable
from .fluid.io import tables
from .fluid.io.variables import is_parameter, is_persistable
from .fluid.user_warnings import warn

__all__ = ["WarmStart", "warm_start"]


class WarmStart:
    """The result of :func:`warm_start`: lists of names of the program's variables.

    Attributes:
        loaded (list): variables that have the saved values.
        fresh (list): variables that keep the values of the startup program, because no saved variable has their name.
        other_shape (list): variables that keep these values because the shape or dtype differs: (name, "[shape] dtype"
            of the program, "[shape] dtype" of the file).
        unused (list): saved names that the program does not have.
        constants (list): learning rates and other variables that no operator writes, if the script and the file have
            different values: (name, value that is used, the other value). The argument ``learning_rate`` of
            :func:`warm_start` determines which one is used.
    """

    def __init__(self) -> None:
        self.loaded: list[str] = []
        self.fresh: list[str] = []
        self.other_shape: list[tuple[str, str, str]] = []
        self.unused: list[str] = []
        self.constants: list[tuple[str, str, str]] = []

    def __str__(self) -> str:
        lines = ["%s loaded" % counted(len(self.loaded), "variable")]
        if self.fresh:
            lines.append("as the startup program made them: " + ", ".join(self.fresh))
        lines += ["%s: %s here, %s saved: left as it was" % item for item in self.other_shape]
        lines += ["%s: %s is used, not %s" % item for item in self.constants]
        if self.unused:
            lines.append("saved, not in the program: " + ", ".join(self.unused))
        return "\n".join(lines)


def warm_start(program: Program, saved: str, rename: Mapping[str, str] | Callable[[str], str] | None = None,
               optimizer_state: bool = True, scope: Any = None, learning_rate: str = "script") -> WarmStart:
    """Loads saved values into all variables of a program whose names and shapes match.

    Call it after the startup program. Variables that are not found keep the values of the startup program.

    Args:
        program (Program): program to train.
        saved (str): prefix of ``fluid.save``; folder of ``fluid.io.save_persistables`` or ``save_params`` with one file
            per variable; checkpoint of :class:`anabranch.Checkpoints`; or the folder of such checkpoints, whose latest
            one is used.
        rename (dict or callable, optional): maps names of the program to saved names. Names that a dict does not
            contain stay the same.
        optimizer_state (bool): also loads moments, counters and, if ``learning_rate`` says so, learning rates. False:
            loads only parameters, and rows of growable tables with their moments. Default True.
        scope (Scope, optional): scope of the variables. Default ``global_scope()``.
        learning_rate (str): source of the learning rate, and of the other variables that no operator writes. "script":
            the values of the startup program; "saved": the saved values. Default "script".

    Returns:
        WarmStart: the variables that were loaded and those that were not. ``print`` shows a summary.

    Raises:
        TypeError: ``program`` is not a Program.
        ValueError: ``learning_rate`` is unknown.
        FileNotFoundError: there are no saved files.
        EnforceNotMet: a file is damaged; no variable is changed.

    Examples:
        >>> import tempfile, anabranch, anabranch.fluid as fluid
        >>> def model(classes):
        ...     hidden = fluid.layers.fc(fluid.data("x", [None, 4]), 8, param_attr="w", bias_attr="b")
        ...     return fluid.layers.fc(hidden, classes, param_attr="top", bias_attr=False)
        >>> exe, prefix = fluid.Executor(), tempfile.mkdtemp() + "/net"
        >>> for classes in (3, 5):
        ...     main, startup = fluid.Program(), fluid.Program()
        ...     with fluid.program_guard(main, startup):
        ...         _ = model(classes)
        ...     _ = exe.run(startup)
        ...     if classes == 3:
        ...         fluid.save(main, prefix)
        >>> print(anabranch.warm_start(main, prefix))
        2 variables loaded
        top: [8, 5] float32 here, [8, 3] float32 saved: left as it was
    """
    if not isinstance(program, Program):
        raise InvalidType("warm_start: program must be a Program, got %s" % type(program).__name__)
    if learning_rate not in ("script", "saved"):
        raise InvalidValue("warm_start: learning_rate must be 'script' or 'saved', got %r" % (learning_rate,))
    values, files = _saved(os.fspath(saved))
    needed = [v for v in program.list_vars() if is_persistable(v) and (optimizer_state or is_parameter(v))]
    scope = fluid.global_scope() if scope is None else scope
    done, used = WarmStart(), set()
    new: dict[str, Any] = {}
    for v in sorted(needed, key=lambda v: v.name):
        name = rename(v.name) if callable(rename) else (rename or {}).get(v.name, v.name)
        if is_growable(v) and name in files:
            _read_table(v, files[name], new, done, scope)
        elif not is_growable(v) and name in values:
            _compare(v, values[name], new, done)
        else:
            done.fresh.append(v.name)
            continue
        used.add(name)
    done.unused = sorted((set(values) | set(files)) - used)
    if needed and not used:
        warn("warm_start: nothing was loaded from %s, which has no variable of the program: it has %s; the program has "
             "%s. Set names with param_attr and bias_attr, or pass rename={...}"
             % (saved, _some(done.unused), _some(done.fresh)))
    _choose_constants(constants.values([program], scope), new, done, learning_rate)
    for name, value in new.items():
        if isinstance(value, np.ndarray):
            scope.var(name).get_tensor().set(value, fluid.CPUPlace())
        else:
            (scope.find_var(name) or scope.var(name))._assign(value)
    loaded_values.note(scope, [v for v in needed if v.name in new], os.fspath(saved))
    return done


def _some(names):
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "") if names else "none"


def _choose_constants(given, new, done, source):
    """Decides on the constants that are saved with another value than the startup program gave."""
    for name in sorted(given.keys() & new.keys()):
        here, there = constants.text(given[name]), constants.text(new[name])
        if constants.record(given[name]) == constants.record(new[name]):
            continue
        if source == "saved":
            here, there = there, here
        else:
            del new[name]
            done.loaded.remove(name)
        done.constants.append((name, here, there))


def _form(shape, dtype):
    return "%s %s" % (list(shape), np.dtype(dtype).name)


def _compare(variable, value, new, done):
    here, there = _form(variable.shape, numpy_dtype(variable.dtype)), _form(value.shape, value.dtype)
    if here == there:
        new[variable.name] = value
        done.loaded.append(variable.name)
    else:
        done.other_shape.append((variable.name, here, there))


def _read_table(variable, path, new, done, scope):
    fresh = _core.Scope().var(variable.name)
    try:
        tables.load_table(fresh, scope.find_var(variable.name), variable.name, path)
    except ShapeMismatch:
        tables.load_table(fresh, None, variable.name, path)   # by its own rules, to be looked at
        done.other_shape.append((variable.name, _rows(scope.find_var(variable.name)), _rows(fresh)))
        return
    new[variable.name] = fresh
    done.loaded.append(variable.name)


def _rows(value):
    return "rows of %d" % _core.growable_table(value).width


def _saved(path):
    """Returns (name -> array, name -> file of a growable table)."""
    newest = folders.numbers(path)
    if newest:
        path = folders.path(path, newest[-1])
    status = os.path.join(path, folders.STATUS)
    if os.path.isfile(status):
        with open(status, encoding="utf-8") as file:
            names = json.load(file)["variables"]
        values = fluid.load_program_state(os.path.join(path, "values"), names["dense"])
        return values, {name: os.path.join(path, "values." + name) for name in names["tables"]}
    values = fluid.load_program_state(path)
    if os.path.isdir(path):
        return values, {name: os.path.join(path, name) for name in os.listdir(path)
                        if os.path.isfile(os.path.join(path, name)) and tables.holds_table(os.path.join(path, name))}
    folder, stem = os.path.split(path)
    found = [name for name in os.listdir(folder or ".") if name.startswith(stem + ".") and name.endswith(".pdtable")]
    return values, {name[len(stem) + 1:-len(".pdtable")]: os.path.join(folder, name) for name in found}


arguments.explain(globals())
