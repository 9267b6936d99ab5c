"""``fluid.save`` and ``fluid.load``: parameters, optimizer state and program of one model under one prefix."""
from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _core
from .. import arguments, loaded_values
from ..errors import InvalidType, InvalidValue, MissingFile, UnknownName, Violated, also, require
from ..framework import Program, Variable
from ..framework.dtype import numpy_dtype
from ..layers.check import exact_fluid
from ..scope import global_scope
from ..user_warnings import warn
from . import tables
from .state_file import dump_state, load_state
from .variables import (
    _target,
    _value,
    check_executor,
    get_program_persistable_vars,
    is_belong_to_optimizer,
    is_parameter,
    load_vars,
)

if TYPE_CHECKING:
    from ..executor import Executor

_SUFFIXES = (".pdparams", ".pdopt", ".pdmodel")


def save(program: Program, model_path: str) -> None:
    """Saves a training program: ``<path>.pdparams``, ``<path>.pdopt``, ``<path>.pdmodel``.

    A growable table is saved, with its moments, as ``<path>.<name>.pdtable``.

    Args:
        program (Program): the program, which is saved with its parameters and other persistable variables.
        model_path (str): folder and prefix, ``dir/prefix``.

    Raises:
        AssertionError: the prefix is empty.
        RuntimeError: a variable has no value.

    Examples:
        >>> import os, tempfile, anabranch.fluid as fluid
        >>> main, startup = fluid.Program(), fluid.Program()
        >>> with fluid.program_guard(main, startup), fluid.scope_guard(fluid.Scope()):
        ...     y = fluid.layers.fc(fluid.data("x", [None, 2]), 1)
        ...     _ = fluid.Executor().run(startup)
        ...     with tempfile.TemporaryDirectory() as folder:
        ...         fluid.save(main, folder + "/model")
        ...         sorted(os.listdir(folder))
        ['model.pdmodel', 'model.pdopt', 'model.pdparams']
    """
    if not isinstance(program, Program):
        raise InvalidType("save: program must be a Program, got %s" % type(program).__name__)
    model_path = os.fspath(model_path)
    require(os.path.basename(model_path) != "", "save: model_path must be dirname/prefix, got %r" % model_path)
    variables, growable = tables.split(program.list_vars())
    parameters = {v.name: _array(v.name) for v in variables if is_parameter(v)}
    state = {v.name: _array(v.name) for v in variables if is_belong_to_optimizer(v)}
    with _core.FileSet() as files:
        files.add(model_path + ".pdparams", dump_state(parameters))
        files.add(model_path + ".pdopt", dump_state(state))
        tables.save_tables(_table_files(growable, model_path), files)
        files.add(model_path + ".pdmodel", program.desc.serialize_to_string())


def _array(name):
    return np.array(_value(name).get_tensor())


def _table_files(growable, prefix):
    folder, stem = os.path.split(prefix)
    return {name: path + ".pdtable" for name, path in tables.paths(growable, folder or ".", stem).items()}


def _prefix(model_path):
    model_path = os.fspath(model_path)
    for suffix in _SUFFIXES:
        if model_path.endswith(suffix):
            return model_path[:-len(suffix)]
    return model_path


def load(program: Program, model_path: str, executor: Executor | None = None,
         var_list: Sequence[Variable] | None = None) -> None:
    """Loads files of :func:`save`, ``save_vars``, ``save_params`` or ``save_persistables`` into the global scope.

    The three files are enough to resume training: ``Program.parse_from_string`` reads ``program`` from
    ``<path>.pdmodel``.

    Args:
        program (Program): the program whose variables are loaded.
        model_path (str): prefix (suffixes .pdparams, .pdopt and .pdmodel are dropped), folder or file.
        executor (Executor, optional): required for files of ``save_vars``.
        var_list (list of Variable, optional): required for one file of ``save_vars`` that holds several variables.

    Raises:
        ValueError: ``executor`` or ``var_list`` is required.
        FileNotFoundError: there is no such file.
        LookupError: a variable of ``var_list`` is not in the program.
        AssertionError: a variable is missing in the file, or has a different dtype. If the shape differs, a warning
            is printed, and the variable takes the shape of the file.

    Examples:
        >>> import tempfile, anabranch.fluid as fluid
        >>> main, startup = fluid.Program(), fluid.Program()
        >>> with fluid.program_guard(main, startup), fluid.scope_guard(fluid.Scope()):
        ...     y = fluid.layers.fc(fluid.data("x", [None, 2]), 1)
        ...     _ = fluid.Executor().run(startup)
        ...     with tempfile.TemporaryDirectory() as folder:
        ...         fluid.save(main, folder + "/model")
        ...         fluid.load(main, folder + "/model")
    """
    prefix = _prefix(model_path)
    check_executor(executor, "load")
    if not os.path.exists(prefix + ".pdparams"):
        _load_variable_files(program, os.fspath(model_path), executor, var_list)
        return
    variables, growable = tables.split(program.list_vars())
    saved = _Saved(prefix)
    values = saved.values_of([v for v in variables if is_parameter(v)], first=".pdparams", second=".pdopt")
    values.update(saved.values_of([v for v in variables if is_belong_to_optimizer(v)], first=".pdopt",
                                  second=".pdparams"))
    if saved.lacking:
        warn("load: %s.pdopt does not exist: the state of the optimizer is unchanged" % prefix)
    fresh = _core.Scope()
    tables.read_tables(growable, _table_files(growable, prefix), fresh, os.path.dirname(prefix) or ".")
    _assign(values)
    for v in growable:
        _target(global_scope(), v.name)._assign(fresh.var(v.name))
    loaded_values.note(global_scope(), [v for v in variables if v.name in values] + growable, prefix)


class _Saved:
    """The two files of :func:`save`, each read when a variable is sought in it.

    A program that was read from ``.pdmodel`` does not know which variables are parameters. Therefore, each variable may
    be in either file: the one where a program with parameters saves it comes first.
    """

    def __init__(self, prefix):
        self._prefix = prefix
        self._contents = {}
        self.lacking = False    # whether a variable is not in .pdparams, and there is no .pdopt

    def values_of(self, variables, first, second):
        """Returns the checked arrays of the variables by name."""
        values = {}
        for v in variables:
            found = self._file(first).get(v.name)
            if found is None:
                found = self._file(second).get(v.name)
            if found is None:
                if first == ".pdopt" and not os.path.exists(self._prefix + ".pdopt"):
                    self.lacking = True
                    continue
                require(False, "load: variable %s is neither in %s.pdparams nor in %s.pdopt"
                        % (v.name, self._prefix, self._prefix))
            _check(v, found)
            if _other_shape(v, found):
                warn("load: variable %s has the shape %s in the program and now that of the file, %s"
                     % (v.name, list(v.shape), list(found.shape)))
            values[v.name] = found
        return values

    def _file(self, suffix):
        if suffix not in self._contents:
            path = self._prefix + suffix
            exists = suffix == ".pdparams" or os.path.exists(path)
            self._contents[suffix] = load_state(_core.read_file(path), path) if exists else {}
        return self._contents[suffix]


def _check(variable, array):
    dtype = numpy_dtype(variable.dtype)
    require(isinstance(array, np.ndarray), "the value of %s must be an array, got %s"
            % (variable.name, type(array).__name__))
    require(array.dtype == dtype, "variable %s is of dtype %s in the program and %s in the file"
            % (variable.name, dtype.name, array.dtype.name))


def _other_shape(variable, array):
    shape = tuple(variable.shape)
    return bool(shape) and min(shape) >= 0 and array.shape != shape


def _assign(values):
    scope = global_scope()
    for name, array in values.items():
        _target(scope, name).get_tensor().set(array, _core.CPUPlace())


def _load_variable_files(program, path, executor, var_list):
    """Loads files of save_vars, save_params or save_persistables."""
    if not os.path.exists(path):
        raise also(MissingFile, ValueError)("load: neither %s.pdparams nor %s exists" % (_prefix(path), path))
    if executor is None:
        raise InvalidValue("load: executor must be given for files of save_params, save_persistables or save_vars")
    variables = _listed(program, var_list)
    if os.path.isdir(path):
        if variables is None:
            here = {os.path.relpath(os.path.join(root, f), path) for root, _, files in os.walk(path) for f in files}
            variables = [v for v in program.list_vars() if v.name in here and v.persistable]
            unused = here - {v.name for v in variables}
            prefixes = sorted(name[:-len(".pdparams")] for name in here if name.endswith(".pdparams"))
            if not variables and prefixes:
                raise InvalidValue("load: model_path must be folder/prefix for files of fluid.save, got the folder %s: "
                                   "pass %s" % (path, " or ".join(repr(os.path.join(path, one)) for one in prefixes)))
            if unused:
                warn("load: the program has no variables for the files %s" % ", ".join(sorted(unused)))
        load_vars(executor, path, program, vars=variables)
        return
    if variables is None:
        raise InvalidValue("load: var_list must be given for one file of save_params, save_persistables or save_vars")
    folder, name = os.path.split(path)
    load_vars(executor, folder or ".", program, vars=variables, filename=name)


def _listed(program, var_list):
    if var_list is None:
        return None
    variables = []
    for item in var_list:
        name = item.name if isinstance(item, Variable) else item
        found = program.global_block().vars.get(name)
        if found is None:
            raise UnknownName("load: variable %r of var_list is not in the program" % (name,))
        variables.append(found)
    return variables


def load_program_state(model_path: str, var_list: Sequence[Variable] | None = None) -> dict[str, Any]:
    """Reads the values of saved variables. No program is needed.

    Args:
        model_path (str): prefix of :func:`save`, or folder or file of ``save_vars`` and similar functions.
        var_list (list of Variable, optional): variables to read; required for one file that holds several.

    Returns:
        dict: name -> numpy.ndarray.

    Raises:
        ValueError: ``var_list`` is required.
        FileNotFoundError: no such file.
        EnforceNotMet: a file is damaged.
    """
    prefix = _prefix(model_path)
    if os.path.exists(prefix + ".pdparams"):
        state = load_state(_core.read_file(prefix + ".pdparams"), prefix + ".pdparams")
        if os.path.exists(prefix + ".pdopt"):
            state.update(load_state(_core.read_file(prefix + ".pdopt"), prefix + ".pdopt"))
        return state
    path = os.fspath(model_path)
    if not os.path.exists(path):
        if exact_fluid():
            return {}
        raise MissingFile("load_program_state: neither %s.pdparams nor %s exists" % (prefix, path))
    names = None if var_list is None else sorted(v if isinstance(v, str) else v.name for v in var_list)
    if os.path.isdir(path):
        if names is None:
            names = sorted(os.path.relpath(os.path.join(root, f), path) for root, _, files in os.walk(path)
                           for f in files if not f.startswith("__model__") and not f.endswith(_SUFFIXES)
                           and not tables.holds_table(os.path.join(root, f)))
        folder, filename = path, ""
    elif names is None:
        raise InvalidValue("load_program_state: var_list must be given for one file that holds several variables")
    else:
        folder, filename = os.path.split(path)
    scope = _core.Scope()
    _core.load_vars(scope, names, folder or ".", filename)
    return {name: np.array(scope.var(name).get_tensor()) for name in names}


def set_program_state(program: Program, state_dict: dict[str, Any]) -> None:
    """Sets the persistable variables of a program to the values of a dict.

    Args:
        program (Program): the program whose variables are set.
        state_dict (dict): name -> numpy.ndarray, as from :func:`load_program_state`. Names that the program does not
            have are skipped with a warning.

    Raises:
        AssertionError: a shape or dtype differs; no variable is changed.
    """
    require(isinstance(state_dict, dict), "set_program_state: state_dict must be a dict, got %s"
            % type(state_dict).__name__, also(Violated, TypeError))
    values = {}
    for v in get_program_persistable_vars(program):
        if v.name in state_dict:
            _check(v, state_dict[v.name])
            require(not _other_shape(v, state_dict[v.name]),
                    "variable %s has the shape %s in the program and %s in the file"
                    % (v.name, list(v.shape), list(state_dict[v.name].shape)))
            values[v.name] = state_dict[v.name]
    unused = sorted(set(state_dict) - set(values))
    if unused:
        warn("set_program_state: the program has no variables named %s" % ", ".join(map(str, unused)))
    _assign(values)
    loaded_values.note(global_scope(), [v for v in program.list_vars() if v.name in values], "a dict")


arguments.explain(globals())
