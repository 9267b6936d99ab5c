"""Copies of programs: plain, in test mode, and pruned to what some variables need."""
from __future__ import annotations

from typing import Any

from ..._near import near
from ..errors import InvalidType, InvalidValue
from .context import OpRole
from .flags import get_flags
from .variable import Variable

_READER_OPS = ("read", "create_py_reader", "create_double_buffer_reader")


def _copy(program, desc):
    """A Program over ``desc`` (a copy of the program's own), with the attributes that only Python holds."""
    copy = type(program)._over(desc)
    for key, value in program.__dict__.items():
        if key not in ("desc", "_blocks", "current_block_idx", "_current_role", "_current_role_var"):
            copy.__dict__[key] = value
    same_blocks = program.num_blocks == copy.num_blocks
    for old, new in list(zip(program.blocks, copy.blocks))[:None if same_blocks else 1]:
        for name, wrapper in old._wrappers.items():
            desc = new.desc._find_var(name)
            if desc is not None:
                new._wrap(desc)._clone_attributes(wrapper)
    return copy


def clone(program: Any) -> Any:
    """A deep copy."""
    return _copy(program, program.desc.clone())


def set_test_mode(desc: Any) -> None:
    """Sets ``is_test`` on every op of a C++ program that has it."""
    for i in range(desc.num_blocks()):
        for op in desc.block(i).ops():
            if op.has_attr("is_test"):
                op._set_attr("is_test", True)
    desc.touch()


def _roles_of_training():
    """In Fluid 1.8.5, test programs contain the schedules of learning rates and advance them when they run."""
    roles = OpRole.Backward | OpRole.Optimize | OpRole.RPC | OpRole.Dist
    return roles if get_flags("FLAGS_fluid_exact")["FLAGS_fluid_exact"] == "1.8.5" else roles | OpRole.LRSched


def _is_for_training(op, roles):
    return bool((op.attr("op_role") if op.has_attr("op_role") else 0) & roles)


def trains(program: Any) -> bool:
    """Whether a program computes gradients."""
    return any(_is_for_training(op, OpRole.Backward) for op in program.desc.block(0).ops())


def update_ops(program: Any) -> list[Any]:
    """The Operators of the global block that update parameters and their state."""
    return [op for op in program.global_block().ops if _is_for_training(op.desc, OpRole.Optimize)]


def forward_desc(original: Any) -> Any:
    """A copy of the forward part of a C++ program, without variables that only training used."""
    desc, roles = original.clone(), _roles_of_training()
    for i in range(desc.num_blocks()):
        block = desc.block(i)
        _keep_ops(block, [not _is_for_training(op, roles) for op in block.ops()])
    _drop_unused(desc, original, [var.name for var in desc.block(0).vars() if var.is_data])
    return desc


def clone_for_test(program: Any) -> Any:
    """A copy of the forward part in test mode, without variables that only training used."""
    desc = forward_desc(program.desc)
    set_test_mode(desc)
    return _copy(program, desc)


def inference_copy(program: Any, prune_read_op: Any = True) -> Any:
    """A copy in test mode."""
    desc = program.desc.clone()
    if prune_read_op:
        block = desc.block(0)
        _keep_ops(block, [op._type not in _READER_OPS for op in block.ops()])
        for var in block.vars():
            if var.kind == 15:
                block.remove_var(var.name)
    set_test_mode(desc)
    return _copy(program, desc)


def _keep_ops(block, keep):
    """Removes the ops with flag False, backwards so that positions stay valid."""
    for i in range(len(keep) - 1, -1, -1):
        if not keep[i]:
            block.remove_ops(i, i + 1)


def _used_names(desc):
    used = set()
    for i in range(desc.num_blocks()):
        for op in desc.block(i).ops():
            used.update(op.input_arg_names())
            used.update(op.output_arg_names())
    return used


def _drop_unused(desc, original, keep):
    """Drops blocks that no op refers to, and variables that ops of ``original`` use but those of ``desc`` do not."""
    desc.drop_unused_blocks()
    gone = _used_names(original) - _used_names(desc) - set(keep)
    for i in range(desc.num_blocks()):
        block = desc.block(i)
        for var in block.vars():
            if var.name in gone:
                block.remove_var(var.name)


def _target_names(targets):
    names, ops = set(), []
    for target in targets if isinstance(targets, (list, tuple)) else [targets]:
        if isinstance(target, Variable):
            names.add(target.name)
        elif isinstance(target, str):
            names.add(target)
        elif hasattr(target, "input_arg_names") and hasattr(target, "desc"):
            ops.append(target.desc)
        else:
            raise InvalidValue("a target of pruning must be a Variable, Operator or name, got %s"
                               % type(target).__name__)
    return names, ops


def _reads_of(desc, op):
    """Names of variables that an op and the ops of its sub-blocks read."""
    names = set(op.input_arg_names())
    for idx in op.sub_blocks():
        for inner in desc.block(idx).ops():
            names |= _reads_of(desc, inner)
    return names


def needed_ops(desc: Any, feeds: Any, target_names: Any, target_positions: Any = ()) -> Any:
    """One flag for each op of the global block: whether the targets need it, given the feeds."""
    ops = desc.block(0).ops()
    feeds = set(feeds)
    needed = set(target_names) - feeds
    keep = [False] * len(ops)
    for i in range(len(ops) - 1, -1, -1):
        op = ops[i]
        if i in target_positions or needed.intersection(op.output_arg_names()):
            keep[i] = True
            needed |= _reads_of(desc, op) - feeds
    return keep


def prune(program: Any, feeds: Any, targets: Any) -> Any:
    """A copy of ``program`` with only the ops and variables that ``targets`` need, given ``feeds``.

    Raises:
        ValueError: ``feeds`` is not a list of names, or a target is unknown or has the wrong type.
    """
    if not isinstance(feeds, (list, tuple)):
        feeds = [feeds]
    if not all(isinstance(f, str) for f in feeds):
        raise InvalidType("names of fed variables must be str")
    names, target_ops = _target_names(targets)
    known = _used_names(program.desc).union(var.name for var in program.desc.block(0).vars())
    if not names <= known:
        lost = sorted(names - known)
        raise InvalidValue("the program has no variable %s, a target of pruning%s"
                           % (", ".join(lost), near(lost[0], known)))
    positions = [i for i, op in enumerate(program.desc.block(0).ops()) if op in target_ops]
    keep = needed_ops(program.desc, feeds, names, positions)
    desc = program.desc.clone()
    _keep_ops(desc.block(0), keep)
    desc.touch()
    _drop_unused(desc, program.desc, names | set(feeds))
    return _copy(program, desc)



# ---- what the bytes of a program do not hold


def _counterpart(function, program, old, name):
    """The description in ``program`` of a variable of a block of another program, and its block."""
    if old.idx < program.num_blocks:
        block = program.block(old.idx)
        desc = block.desc._find_var(name)
        if desc is not None:
            return block, desc
    raise InvalidValue("%s: block %d of the program has no variable %s" % (function, old.idx, name))


def _programs(function, program, other):
    if not isinstance(other, type(program)):
        raise InvalidType("%s: other must be a Program, got %s" % (function, type(other).__name__))
    return [(old, variable) for old in other.blocks for variable in list(old.vars.values())]


def copy_parameters(program: Any, other: Any) -> None:
    """Makes the variables that are parameters of ``other`` parameters of ``program``, with their attributes."""
    function = "_copy_param_info_from"
    found = [(*_counterpart(function, program, old, variable.name), variable)
             for old, variable in _programs(function, program, other) if variable._var.is_parameter]
    for block, desc, variable in found:
        desc.is_parameter = desc.persistable = True
        desc.stop_gradient = variable._var.stop_gradient
        block._wrappers.pop(desc.name, None)  # it may be a plain Variable
        block._wrap(desc)._clone_attributes(variable)


def copy_data(program: Any, other: Any) -> None:
    """Marks the variables that are fed in ``other`` as fed in ``program``."""
    function = "_copy_data_info_from"
    found = [(_counterpart(function, program, old, variable.name)[1], variable._var)
             for old, variable in _programs(function, program, other) if variable.is_data]
    for desc, known in found:
        desc.is_data, desc.need_check_feed = True, known.need_check_feed
        desc.stop_gradient = known.stop_gradient
