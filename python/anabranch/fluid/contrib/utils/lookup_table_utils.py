"""Loads saved variables together with a table from another place, to continue training with it."""
from __future__ import annotations

import os
from typing import Any

import numpy

from .... import _core
from ... import arguments
from ...errors import InvalidType, InvalidValue, NotAllowed
from ...framework import Program, Variable
from ...growable_table import is_growable
from ...io.tables import load_table
from ...io.variables import is_persistable, load_vars
from ...scope import global_scope, scope_guard

__all__ = ["load_persistables_for_increment"]


def load_persistables_for_increment(dirname: str, executor: Any, program: Program, lookup_table_var: Variable | str,
                                    lookup_table_var_path: str) -> None:
    """Loads the persistable variables of a program from one place, and an embedding table from another. Training then
    continues with both. If one of them cannot be read, nothing is changed.

    Args:
        dirname (str): folder of ``save_persistables``, a checkpoint of :class:`anabranch.Checkpoints`, or a folder of
            checkpoints, whose latest complete one is used. It need not have the table.
        executor (Executor): ignored; loading does not use it.
        program (Program): program to train.
        lookup_table_var (Variable|str): the table, or its name.
        lookup_table_var_path (str): file of the table. For a growable table, it may also be a file in a checkpoint with
            changed rows, for example ``run/checkpoint-000007/values.clicks``: the files before it are found.

    Raises:
        TypeError: ``program`` is not a Program.
        ValueError: the program has no such table, or a file is damaged.
        EnforceNotMet: a file is missing.

    Examples:
        >>> import tempfile, numpy, anabranch.fluid as fluid
        >>> from anabranch.fluid.contrib.utils.lookup_table_utils import load_persistables_for_increment
        >>> ids = fluid.data("ids", [None, 1], "int64")
        >>> rows = fluid.embedding(ids, [-1, 4], is_sparse=True, param_attr=fluid.GrowableTable("clicks"))
        >>> loss = fluid.layers.mean(fluid.layers.fc(rows, 1))
        >>> _ = fluid.optimizer.SGD(0.1).minimize(loss)
        >>> exe, main, folder = fluid.Executor(), fluid.default_main_program(), tempfile.mkdtemp()
        >>> _ = exe.run(fluid.default_startup_program())
        >>> _ = exe.run(main, feed={"ids": numpy.array([[7]])})
        >>> fluid.io.save_persistables(exe, folder, main)
        >>> load_persistables_for_increment(folder, exe, main, "clicks", folder + "/clicks")
    """
    from ....checkpoints.whole import saved_in  # imports fluid
    if not isinstance(program, Program):
        raise InvalidType("load_persistables_for_increment: program must be a Program, got %s" % type(program).__name__)
    name = lookup_table_var.name if isinstance(lookup_table_var, Variable) else lookup_table_var
    variables = {v.name: v for v in program.list_vars() if is_persistable(v)}
    if name not in variables:
        raise InvalidValue("load_persistables_for_increment: the program has no persistable variable %r" % (name,))
    saved, fresh = saved_in(os.fspath(dirname)), _core.Scope()
    _read(variables.pop(name), os.fspath(lookup_table_var_path), fresh)
    for other in sorted(variables):
        if not saved.has(other):
            raise NotAllowed("load_persistables_for_increment: %s has no variable %s" % (dirname, other))
        if is_growable(variables[other]):
            saved.load_table(other, fresh.var(other), global_scope().find_var(other), other, 0, 1)
        else:
            fresh.var(other).get_tensor().set(saved.value(other, variables[other]), _core.CPUPlace())
    for loaded in fresh.local_var_names():
        held = global_scope().find_var(loaded)
        (global_scope().var(loaded) if held is None else held)._assign(fresh.var(loaded))


def _read(var, path, fresh):
    if is_growable(var):
        load_table(fresh.var(var.name), global_scope().find_var(var.name), var.name, path)
        return
    folder, file = os.path.split(path)
    holder = Program()
    made = holder.global_block().create_var(name=var.name, dtype=var.dtype, shape=var.shape, persistable=True)
    with scope_guard(_core.Scope()):
        load_vars(None, folder or ".", holder, vars=[made], filename=file)
        value = numpy.array(global_scope().find_var(var.name).get_tensor())
    if list(value.shape) != list(var.shape):
        raise InvalidValue("load_persistables_for_increment: %s must have shape %s, got %s in %s"
                           % (var.name, list(var.shape), list(value.shape), path))
    fresh.var(var.name).get_tensor().set(value, _core.CPUPlace())


arguments.explain(globals())
