"""Saves and loads variables in the file format of Fluid 1.8.5, in one file for each variable or in one file for
all."""
from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _core
from .. import arguments, loaded_values
from ..errors import InvalidType, InvalidValue, NotAllowed, NotFound, Violated, also
from ..framework import Parameter, Program, Variable, VarType, default_main_program
from ..scope import global_scope
from ..user_warnings import warn
from . import tables

if TYPE_CHECKING:
    from ..compiler import CompiledProgram
    from ..executor import Executor

_NOT_SAVED = (VarType.FEED_MINIBATCH, VarType.FETCH_LIST, VarType.READER)


def is_parameter(var: Variable) -> bool:
    """bool: whether a Variable is a Parameter."""
    return isinstance(var, Parameter)


def is_persistable(var: Variable) -> bool:
    """bool: whether a Variable keeps its value between runs and does not hold feeds, fetches or a reader."""
    return var.type not in _NOT_SAVED and var.persistable


def is_belong_to_optimizer(var: Variable) -> bool:
    """bool: whether a Variable is persistable but not a parameter (moments, learning rates ...)."""
    return not (isinstance(var, Parameter) or var.need_check_feed) and is_persistable(var)


def get_program_parameter(program: Program) -> list[Parameter]:
    """list of Parameter: the parameters of all blocks.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.io.get_program_parameter(fluid.Program())
        []
    """
    return [v for v in program.list_vars() if is_parameter(v)]


def get_program_persistable_vars(program: Program) -> list[Variable]:
    """list of Variable: all that ``save_persistables`` saves."""
    return [v for v in program.list_vars() if is_persistable(v)]


def _valid_program(main_program):
    if main_program is None:
        return default_main_program()
    program = getattr(main_program, "_program", main_program)
    if not isinstance(program, Program):
        raise InvalidType("main_program must be a Program, got %s" % type(main_program).__name__)
    if program is not main_program:
        warn("main_program is a CompiledProgram: the Program inside it is used")
    return program


def _chosen(main_program, vars, predicate, what):
    """Variables to save or load, without RAW ones, sorted by name."""
    if vars is None:
        program = _valid_program(main_program)
        vars = [v for v in program.list_vars() if predicate is None or predicate(v)]
    else:
        vars = [main_program.global_block().var(v) if isinstance(v, str) else v for v in vars]
        for v in vars:
            if not isinstance(v, Variable):
                raise InvalidType("%s: vars must hold Variables, got %s" % (what, type(v).__name__))
    chosen = {v.name: v for v in vars if v.type != VarType.RAW}
    if not chosen:
        warn("%s: there is no variable to save or load" % what)
    return [chosen[name] for name in sorted(chosen)]


def save_vars(executor: Executor | None, dirname: str | None, main_program: Program | CompiledProgram | None = None,
              vars: Sequence[Variable | str] | None = None, predicate: Callable[[Variable], Any] | None = None,
              filename: str | None = None) -> bytes | None:
    """Saves variables of the global scope.

    Args:
        executor (Executor): ignored; saving does not use it.
        dirname (str|None): folder, created if missing. If it is None and ``filename`` is not given, the bytes are
            returned.
        main_program (Program, optional): program of the variables. Default: the default main program.
        vars (list of Variable, optional): variables to save. Default: all for which ``predicate`` is true.
        predicate (callable, optional): Variable -> bool.
        filename (str, optional): one file for all variables, sorted by name. Default: one file per variable, with its
            name. A growable table always has its own file: ``<filename>.<variable>`` if ``filename`` is given.

    Returns:
        None; bytes when ``dirname`` is None.

    Raises:
        TypeError: ``main_program`` is not a Program.
        EnforceNotMet: a variable has no value, or the folder cannot be written. Either all files are written, or none
            is changed.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> import tempfile, os
        >>> main, startup = fluid.Program(), fluid.Program()
        >>> with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        ...     y = fluid.layers.fc(fluid.data("x", [None, 2]), 1)
        ...     exe = fluid.Executor()
        ...     _ = exe.run(startup)
        ...     with tempfile.TemporaryDirectory() as folder:
        ...         fluid.io.save_params(exe, folder, main)
        ...         sorted(os.listdir(folder))
        ['fc_0.b_0', 'fc_0.w_0']
    """
    if vars is not None:
        main_program = _valid_program(main_program)
    check_executor(executor, "save_vars")
    return write_vars(_chosen(main_program, vars, predicate, "save_vars"), dirname, filename)


def check_executor(executor: Any, function: str) -> None:
    """Raises TypeError unless ``executor`` is None or can run programs. Fluid runs its operators of files by it."""
    if executor is not None and not hasattr(executor, "run"):
        raise also(also(InvalidType, AttributeError), AssertionError, "AttributeError")(
            "%s: executor must be an Executor, got %s" % (function, type(executor).__name__))


def write_vars(chosen: Any, dirname: Any, filename: Any, moments: Any = True, files: Any = None) -> Any:
    """Writes the files of ``chosen``, or adds them to ``files``, which the caller commits. ``moments`` includes the
    moments of growable tables."""
    chosen, growable = tables.split(chosen)
    filename = _file_name("save_vars", filename)
    table_files = tables.paths(growable, dirname, filename)
    names = [v.name for v in chosen]
    if dirname is None and filename is None:
        return b"".join(_core.tensor_to_bytes(_value(name).get_tensor()) for name in names)
    if not isinstance(dirname, (str, bytes, os.PathLike)):
        raise InvalidType("save_vars: dirname must be a str, got %s" % type(dirname).__name__)
    if files is None:
        with _core.FileSet() as files:
            return write_vars(chosen + growable, dirname, filename, moments, files)
    if names:
        _core.save_vars(global_scope(), names, os.fsdecode(dirname), filename or "", files)
    tables.save_tables(table_files, files, moments)
    return None


def _file_name(what, filename):
    """The name of the file of all variables; None for one file for each variable."""
    name = os.fspath(filename) if isinstance(filename, os.PathLike) else filename
    if name is not None and not isinstance(name, str):
        raise InvalidType("%s: filename must be a str, got %s" % (what, type(filename).__name__))
    return name


def _value(name):
    value = global_scope().find_var(name)
    if value is None or not value._is_initialized():
        raise NotAllowed("variable %s has no value in the global scope: run the startup program first" % name)
    return value


def save_params(executor: Executor | None, dirname: str | None, main_program: Program | CompiledProgram | None = None,
                filename: str | None = None) -> bytes | None:
    """Saves all Parameters. The arguments are those of :func:`save_vars`."""
    return save_vars(executor, dirname, main_program=main_program, predicate=is_parameter, filename=filename)


def save_persistables(executor: Executor | None, dirname: str | None,
                      main_program: Program | CompiledProgram | None = None,
                      filename: str | None = None) -> bytes | None:
    """Saves all persistable variables: parameters, moments, learning rates ... The arguments are those of
    :func:`save_vars`.

    For a worker's program of ``DistributeTranspiler``, the servers save their variables.
    """
    from .remote import is_remote, save_remote  # imports this module
    program = default_main_program() if main_program is None else main_program
    if is_remote(program):
        save_remote(executor, dirname, program, filename)
        return None
    return save_vars(executor, dirname, main_program=main_program, predicate=is_persistable, filename=filename)


def load_vars(executor: Executor | None, dirname: str | None, main_program: Program | CompiledProgram | None = None,
              vars: Sequence[Variable | str] | None = None, predicate: Callable[[Variable], Any] | None = None,
              filename: str | bytes | None = None) -> None:
    """Loads variables into the global scope. If one of them cannot be read, nothing is changed.

    Args:
        executor, main_program, vars, predicate: as for :func:`save_vars`.
        dirname (str|None): folder. If None, ``filename`` holds the bytes that ``save_vars`` returned.
        filename (str|bytes, optional): one file of all variables, sorted by name.

    Raises:
        RuntimeError: a file and the program's Parameter have different shapes.
        ValueError: one file of all variables holds sparse rows.
        EnforceNotMet: a file is missing, is damaged, or has more variables than requested.
    """
    if vars is not None:
        main_program = _valid_program(main_program)
    check_executor(executor, "load_vars")
    chosen = _chosen(main_program, vars, predicate, "load_vars")
    if chosen:
        read_vars(chosen, dirname, filename)


def read_vars(chosen: Any, dirname: Any, filename: Any, chains: Any = None) -> None:
    """Reads all of ``chosen`` and then changes the global scope. ``chains``: as for ``tables.read_tables``."""
    data = filename if dirname is None and isinstance(filename, bytes) else None
    one_file = None if data is not None else _file_name("load_vars", filename)
    fresh = _core.Scope()
    chosen, growable = tables.split(chosen)
    table_files = tables.paths(growable, dirname, one_file)
    names = [v.name for v in chosen]
    scope = global_scope()
    if data is not None:
        _from_bytes(fresh, names, data)
    else:
        if not isinstance(dirname, (str, bytes, os.PathLike)):
            raise InvalidType("load_vars: dirname must be a str, got %s" % type(dirname).__name__)
        for v in chosen:
            held = scope.find_var(v.name)
            if v.type == VarType.SELECTED_ROWS or (held is not None and held._kind() == "rows"):
                if one_file:
                    raise InvalidValue("load_vars: filename must be None for %s, which holds sparse rows" % v.name)
                fresh.var(v.name).get_selected_rows()
        if names:
            _load_named(fresh, names, os.fsdecode(dirname), one_file or "")
    tables.read_tables(growable, table_files, fresh, dirname, chains)
    for v in chosen:
        if isinstance(v, Parameter):
            _check_shape(v, fresh.var(v.name).get_tensor().shape())
    for name in names + list(table_files):
        _target(scope, name)._assign(fresh.var(name))
    loaded_values.note(scope, chosen + growable, "bytes" if data is not None else os.fsdecode(dirname))


def _load_named(scope, names, folder, one_file):
    try:
        _core.load_vars(scope, names, folder, one_file)
    except NotFound as error:
        there = sorted(one.name for one in os.scandir(folder) if one.is_file()) if os.path.isdir(folder) else []
        if not there or one_file in there or not set(names).isdisjoint(there):
            raise
        raise type(error)("%s\n  hint   the folder has the files %s: if the variables were saved in one file, pass its "
                          "name as filename (params_filename of a model)"
                          % (error.message, ", ".join(there[:5]) + (", ..." if len(there) > 5 else ""))) from None


def _target(scope, name):
    found = scope.find_var(name)
    return scope.var(name) if found is None else found


def _check_shape(parameter, shape):
    if tuple(shape) != tuple(parameter.shape):
        raise NotAllowed("the program has parameter %s with the shape %s, the file has %s: "
                         "anabranch.warm_start loads the variables whose shapes match"
                         % (parameter.name, list(parameter.shape), list(shape)))


def _from_bytes(scope, names, data):
    for name in names:
        tensor, size = _core.tensor_from_bytes(data, "variable %s in the bytes given" % name)
        scope.var(name).get_tensor()._share_data_with(tensor)
        data = data[size:]
    if data:
        raise InvalidValue("load_vars: %d extra bytes after the last variable" % len(data))


def load_params(executor: Executor | None, dirname: str | None, main_program: Program | CompiledProgram | None = None,
                filename: str | bytes | None = None) -> None:
    """Loads all Parameters. The arguments are those of :func:`load_vars`."""
    load_vars(executor, dirname, main_program=main_program, predicate=is_parameter, filename=filename)


def load_persistables(executor: Executor | None, dirname: str | None,
                      main_program: Program | CompiledProgram | None = None,
                      filename: str | bytes | None = None) -> None:
    """Loads all persistable variables. The arguments are those of :func:`load_vars`."""
    load_vars(executor, dirname, main_program=main_program, predicate=is_persistable, filename=filename)


def _clone_var_in_block_(block: Any, var: Any) -> Any:
    """A persistable variable like ``var`` in a block of another program."""
    return block.create_var(name=var.name, shape=var.shape, dtype=var.dtype, type=var.type,
                            lod_level=var._var.lod_level, persistable=True)


def get_parameter_value(para: Parameter, executor: Executor) -> np.ndarray[Any, Any]:
    """numpy.ndarray: a copy of a parameter's value in the global scope.

    Raises:
        AssertionError: ``para`` is not a Parameter.
    """
    if not isinstance(para, Parameter):
        raise Violated("get_parameter_value: para must be a Parameter, got %s" % type(para).__name__)
    return np.array(_value(para.name).get_tensor())


def get_parameter_value_by_name(name: str, executor: Executor, program: Program | None = None) -> np.ndarray[Any, Any]:
    """numpy.ndarray: a copy of the value of the parameter with this name."""
    return get_parameter_value(_valid_program(program).global_block().var(name), executor)


arguments.explain(globals())
