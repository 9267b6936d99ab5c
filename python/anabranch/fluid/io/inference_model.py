"""Inference models: the part of a program from feeds to targets, with its parameters."""
from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _core
from ..._near import near
from .. import arguments, unique_name
from ..errors import RELATIVE, InvalidType, InvalidValue, MissingFile, also
from ..framework import Program, Variable, VarType, get_flags, program_guard
from ..reading.same_data import warn_of_other_features
from ..scope import global_scope
from ..user_warnings import advise, warn
from . import integer_weights
from .variables import _chosen, _valid_program, check_executor, is_persistable, load_persistables, write_vars

if TYPE_CHECKING:
    from ...schema import Schema
    from ..executor import Executor


def save_inference_model(dirname: str, feeded_var_names: str | Sequence[str],
                         target_vars: Variable | Sequence[Variable], executor: Executor,
                         main_program: Program | None = None, model_filename: str | None = None,
                         params_filename: str | None = None, export_for_deployment: bool = True,
                         program_only: bool = False, schema: Schema | None = None) -> list[str]:
    """Saves the part of a program, with its parameters, that computes ``target_vars`` from the fed variables.

    Args:
        dirname (str): folder, created if missing.
        feeded_var_names (str|list of str): names of the fed variables.
        target_vars (Variable|list of Variable): results of the model.
        executor (Executor): as for ``save_persistables``.
        main_program (Program, optional): program to save from. Default: the default main program.
        model_filename (str, optional): name of the program file. Default ``__model__``.
        params_filename (str, optional): name of one file for all parameters. Default: one file per parameter.
        export_for_deployment (bool): False saves the whole program, as ``<model>.main_program``. Default True.
        program_only (bool): whether to save the program without its parameters. Default False.
        schema (Schema, optional): the ``anabranch.Schema`` of the data. ``Predictor.run_rows`` and ``anabranch serve``
            then take raw rows. Default None: raw rows are not possible.

    Returns:
        list of str: names of the fetched variables.

    Raises:
        ValueError: names or targets have the wrong type, a fed name is not in the program, or the schema has no feature
            for it.
        TypeError: ``main_program`` is not a Program.

    Examples:
        >>> import tempfile, anabranch.fluid as fluid
        >>> main, startup = fluid.Program(), fluid.Program()
        >>> with fluid.program_guard(main, startup), fluid.scope_guard(fluid.Scope()):
        ...     x = fluid.data("x", [None, 2])
        ...     y = fluid.layers.fc(x, 1)
        ...     exe = fluid.Executor()
        ...     _ = exe.run(startup)
        ...     with tempfile.TemporaryDirectory() as folder:
        ...         _ = fluid.io.save_inference_model(folder, ["x"], [y], exe, main)
        ...         program, feeds, targets = fluid.io.load_inference_model(folder, exe)
        >>> feeds, len(targets)
        (['x'], 1)
    """
    feeds = [feeded_var_names] if isinstance(feeded_var_names, str) else feeded_var_names
    if not isinstance(feeds, (list, tuple)) or not all(isinstance(n, str) for n in feeds):
        raise also(InvalidType, ValueError)("save_inference_model: feeded_var_names must be a list of str, got %r"
                                            % (feeded_var_names,))
    targets = [target_vars] if isinstance(target_vars, Variable) else target_vars
    if not isinstance(targets, (list, tuple)) or not targets or not all(isinstance(v, Variable) for v in targets):
        raise also(InvalidType, ValueError)("save_inference_model: target_vars must be a list of Variables, got %r"
                                            % (target_vars,))
    check_executor(executor, "save_inference_model")
    program = _valid_program(main_program)
    variables = program.global_block().vars
    for name in feeds:
        if name not in variables:
            raise InvalidValue("save_inference_model: feeded_var_names must name variables of the program, which has "
                               "no %r%s" % (name, near(name, variables)))
    if schema is not None:
        schema._check_inputs("save_inference_model", [variables[name] for name in feeds])
        known = {name: made for name, made in program._schema_features.items() if name in feeds}
        warn_of_other_features("save_inference_model", known, schema.to_json())
    whole = program.clone()
    names = _scaled_targets(whole, targets)
    model = model_filename or "__model__"
    if export_for_deployment:
        saved = _deployable(whole, feeds, names)
        _warn_of_unfed(saved, feeds, targets, variables)
    else:
        saved, model = whole, model + ".main_program"
    with _core.FileSet() as files:
        files.add(os.path.join(os.fspath(dirname), os.path.basename(model)), saved.desc.serialize_to_string())
        if not program_only:
            variables = _chosen(saved, None, is_persistable, "save_inference_model")
            _warn_of_nan(variables, global_scope())
            params = os.path.basename(params_filename) if params_filename else None
            write_vars(variables, dirname, params, moments=False, files=files)
        _add_schema(files, dirname, model_filename, schema)
    return names


def _warn_of_nan(variables, scope):
    """Warns if a variable of a model contains NaN: its answers would, too."""
    for variable in variables:
        value = scope.find_var(variable.name)
        if variable.type != VarType.LOD_TENSOR or variable.dtype != VarType.FP32 or value is None:
            continue
        found = np.asarray(value.get_tensor())
        # The sum of numbers with NaN is NaN, and needs no copy.
        if found.size and np.isnan(found.sum(dtype="float32")) and np.isnan(found).any():
            warn("save_inference_model: %s contains NaN, so answers of the model will, too: see FLAGS_check_nan_inf"
                 % variable.name)
            return


def _warn_of_unfed(saved, feeds, targets, variables):
    """Warns if the model needs data that are not among its feeds, such as the label for a loss."""
    known, unfed = set(feeds), {}
    for op in saved.global_block().ops:
        for name in op.input_arg_names:
            if name not in known and name in variables and variables[name].is_data:
                unfed[name] = None
        known.update(op.output_arg_names)
    unused = [name for name in feeds if variables[name].is_data and not any(
        name in op.input_arg_names for op in saved.global_block().ops if op.type not in ("feed", "fetch"))
        and name not in {target.name for target in targets}]
    if unused:
        advise("save_inference_model: %s %s not needed for %s, but every request must have it: leave it out of "
               "feeded_var_names" % (", ".join(unused), "is" if len(unused) == 1 else "are",
                                   ", ".join(target.name for target in targets)))
    if unfed:
        warn("save_inference_model: %s cannot be computed without %s, which feeded_var_names lacks: add it, or save "
             "targets that do not need it, such as the prediction instead of the loss"
             % (", ".join(target.name for target in targets), ", ".join(unfed)))


def schema_path(folder: str, model_filename: str | None) -> str:
    """str: the file of the schema of a model."""
    return os.path.join(os.fspath(folder), _core.schema_file(os.path.basename(model_filename or "__model__")))


def _add_schema(files, dirname, model_filename, schema):
    """Adds the schema of a model to its files, or removes that of the model that they replace: without a schema, raw
    rows raise an error, and with another one they would give wrong answers."""
    path = schema_path(dirname, model_filename)
    if schema is not None:
        files.add(path, schema.to_json().encode())
    elif os.path.exists(path):
        os.unlink(path)


def _scaled_targets(program, targets):
    """Appends scale(1.0) to each target, so parameters and fed variables can be targets. Returns the results' names."""
    names = []
    block = program.global_block()
    for i, target in enumerate(targets):
        if block._find_var_recursive(target.name) is None:
            raise InvalidValue("save_inference_model: the program has no variable %s" % target.name)
        with program_guard(program):
            name = unique_name.generate_with_ignorable_key("save_infer_model/scale_%d.tmp" % i)
            out = block.create_var(name=name, dtype=target.dtype, persistable=False)
            block.append_op(type="scale", inputs={"X": [target.name]}, outputs={"Out": [out]},
                            attrs={"scale": 1.0, "bias": 0.0, "bias_after_scale": True})
        names.append(out.name)
    return names


def _deployable(program, feeds, targets):
    """The part of a program that the targets need, in test mode, with feed and fetch ops."""
    block = program.desc.block(0)
    for i in range(block.op_size() - 1, -1, -1):
        if block.op(i)._type in ("feed", "fetch"):
            block.remove_ops(i, i + 1)
    program.desc.touch()
    program = program._prune_with_input(list(feeds), targets)._inference_optimize(prune_read_op=True)
    prepend_feed_ops(program, feeds)
    append_fetch_ops(program, targets)
    return program


def prepend_feed_ops(inference_program: Program, feed_target_names: Sequence[str],
                     feed_holder_name: str = "feed") -> None:
    """Puts a feed op for each variable before the ops of a program.

    Args:
        inference_program (Program): the program.
        feed_target_names (list of str): the variables, in the order of the feeds.
        feed_holder_name (str): variable of the feeds. Default "feed".

    Raises:
        ValueError: the program has no such variable.
    """
    block = inference_program.global_block()
    for name in feed_target_names:
        block.var(name)
    if feed_target_names and not block.has_var(feed_holder_name):
        block.create_var(name=feed_holder_name, type=VarType.FEED_MINIBATCH, persistable=True)
    for i, name in enumerate(feed_target_names):
        block.desc.insert_raw_op(i, "feed", [("X", [feed_holder_name])], [("Out", [name])], _attrs(i))


def append_fetch_ops(inference_program: Program, fetch_target_names: Sequence[str],
                     fetch_holder_name: str = "fetch") -> None:
    """Appends a fetch op for each variable to a program.

    Args:
        inference_program (Program): the program.
        fetch_target_names (list of str): the variables, in the order of the results.
        fetch_holder_name (str): variable of the results. Default "fetch".
    """
    block = inference_program.global_block()
    if not block.has_var(fetch_holder_name):
        block.create_var(name=fetch_holder_name, type=VarType.FETCH_LIST, persistable=True)
    for i, name in enumerate(fetch_target_names):
        block.desc.insert_raw_op(block.desc.op_size(), "fetch", [("X", [name])], [("Out", [fetch_holder_name])],
                                 _attrs(i))


def _attrs(col):
    return {"col": col, "op_role": 0, "op_namescope": "/", "op_role_var": []}


def load_inference_model(dirname: str | None, executor: Executor, model_filename: str | None = None,
                         params_filename: str | None = None, pserver_endpoints: Sequence[str] | None = None,
                         trusted: bool = False) -> list[Any]:
    """Loads a model of :func:`save_inference_model` into the global scope.

    Args:
        dirname (str|None): folder. If None, ``model_filename`` and ``params_filename`` hold the bytes of the files.
        executor (Executor): as for ``load_persistables``.
        model_filename (str, optional): name of the program file. Default ``__model__``.
        params_filename (str, optional): name of the one file of all parameters.
        pserver_endpoints (list of str, optional): must be None: this build does not support remote tables.
        trusted (bool): whether to accept operators with side effects, for models that you trust. Default False.

    Returns:
        list: [Program, list of fed names, list of target Variables].

    Raises:
        ValueError: there is no such folder, the program is of a different version, or an operator has side effects.
        FileNotFoundError: the folder has no program file.
        EnforceNotMet: another file is missing, or a file is damaged.
    """
    if pserver_endpoints is not None:
        raise InvalidValue("load_inference_model: pserver_endpoints must be None in this build, got %r"
                           % (pserver_endpoints,))
    if dirname is None:
        if not isinstance(model_filename, bytes) or not isinstance(params_filename, bytes):
            raise InvalidValue("load_inference_model: model_filename and params_filename must be bytes without dirname")
        data = model_filename
    else:
        if not os.path.isdir(dirname):
            raise InvalidValue("load_inference_model: there is no folder %s" % _near_folder(os.fspath(dirname)))
        path = os.path.join(os.fspath(dirname), os.path.basename(model_filename or "__model__"))
        if not os.path.exists(path):
            raise MissingFile("load_inference_model: the folder %s has no file %s, which save_inference_model writes%s"
                              % (dirname, os.path.basename(path), _other_contents(os.fspath(dirname))))
        data = _core.read_file_of(os.fspath(dirname), path)
    program = Program.parse_from_string(data)
    if not trusted:
        _refuse_effects(program)
    feeds, fetches = feed_and_fetch_names(program)
    block = program.global_block()
    for name in feeds:
        block.var(name).is_data = True
    targets = [block.var(name) for name in fetches]
    if params_filename is not None and dirname is not None:
        params_filename = os.path.basename(params_filename)
    if any(v.persistable for v in program.list_vars() if v.name not in ("feed", "fetch")):
        load_persistables(executor, dirname, program, params_filename)
        integer_weights.restore(program, global_scope())
    return [program, feeds, targets]


def _other_contents(folder: str) -> str:
    """The likely contents of a folder without a program file, for a message."""
    names = sorted(os.listdir(folder))
    prefixes = [name[:-len(".pdparams")] for name in names if name.endswith(".pdparams")]
    if prefixes:
        return "; fluid.save has written %s there: fluid.load reads it into a program" % ", ".join(prefixes[:3])
    if any(name.startswith("checkpoint-") for name in names) or "status.json" in names:
        return "; it holds checkpoints of a training run: anabranch.Checkpoints and anabranch.warm_start read them"
    models = [name for name in names if os.path.exists(os.path.join(folder, name, "__model__"))]
    return "; there is a model in %s" % ", ".join(os.path.join(folder, name) for name in models[:3]) if models else ""


def _near_folder(folder: str) -> str:
    """A folder that does not exist, for a message: its name, similar ones next to it, and where a relative path starts.
    """
    parent, name = os.path.split(os.path.normpath(folder))
    try:
        there = [one.name for one in os.scandir(parent or ".") if one.is_dir()]
    except OSError:
        there = []
    return "%r%s%s" % (folder, near(name, there), "" if os.path.isabs(folder) else RELATIVE + os.getcwd())


def _refuse_effects(program: Any) -> None:
    """Rejects operators with side effects in an untrusted model, and limits the iterations of its loops."""
    most = get_flags(["FLAGS_max_loop_iterations_untrusted"])["FLAGS_max_loop_iterations_untrusted"]
    for block in program.blocks:
        for op in block.ops:
            if op.type not in ("feed", "fetch") and not _core.only_computes(op.type):
                raise InvalidValue("load_inference_model: operator %s does more than compute: pass trusted=True if you "
                                   "trust the model" % op.type)
            if op.type == "while":
                op._set_attr("op_max_iterations", min(most, 2 ** 31 - 1))


def feed_and_fetch_names(program: Any) -> Any:
    """(names fed, names fetched) of an inference program, in the order of its feed and fetch ops."""
    feeds: dict[int, str] = {}
    fetches: dict[int, str] = {}
    for op in program.global_block().ops:
        if op.type in ("feed", "fetch"):
            found, names = (feeds, op.output("Out")) if op.type == "feed" else (fetches, op.input("X"))
            if len(names) != 1 or not op.has_attr("col"):
                raise InvalidValue("the %s op of an inference program must name one variable and a column" % op.type)
            found[op.attr("col")] = names[0]
    return [feeds[i] for i in sorted(feeds)], [fetches[i] for i in sorted(fetches)]


arguments.explain(globals())
