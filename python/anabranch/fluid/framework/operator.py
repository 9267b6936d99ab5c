"""Operator: one operation of a block, as a view of the C++ op."""
from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ... import _core
from ..errors import InvalidType, InvalidValue, Violated
from .context import OpRole
from .variable import Variable


@functools.lru_cache(maxsize=None)
def _schema(type):
    """(inputs, outputs) of an op type as {slot: (list, optional)}; None for an undeclared type."""
    return _core.op_slots(type)


def _argument_names(type, slot, args):
    """Names of one slot's arguments: a Variable, a name, or a list of them."""
    if isinstance(args, (list, tuple)):
        names = []
        for arg in args:
            if isinstance(arg, str):
                names.append(arg)
            elif isinstance(arg, Variable):
                names.append(arg._var.name)
            elif isinstance(arg, bytes):
                names.append(arg.decode())
            else:
                raise InvalidType("op %s: arguments of slot %s must be Variables or names, got %s"
                                  % (type, slot, arg.__class__.__name__))
        return names
    if args is None:
        return []
    return _argument_names(type, slot, (args,))


def slots_of(type: Any, given: Any, direction: Any) -> Any:
    """[(slot, names)] from the dict passed to ``append_op``, checked against the op's schema."""
    if given is None:
        given = {}
    if not isinstance(given, dict):
        raise InvalidType("op %s: %ss must be a dict from slot to Variables, got %s"
                          % (type, direction, given.__class__.__name__))
    slots = [(slot, _argument_names(type, slot, args)) for slot, args in given.items()]
    schema = _schema(type)
    if schema is None:
        return slots
    declared = schema[0] if direction == "input" else schema[1]
    have = dict(slots)
    for slot, (is_list, optional) in declared.items():
        count = len(have.get(slot, ()))
        if count == 0 and not optional and slot not in have:
            message = "op %s: %s %s not found" % (type, direction, slot)
            raise Violated(message) if direction == "input" else InvalidValue(message)
        if count > 1 and not is_list:
            raise InvalidValue("op %s: %s %s takes one Variable, got %d" % (type, direction, slot, count))
    return slots


#: Operators that Fluid 1.8.5 runs without a kernel.
_WITHOUT_KERNEL = frozenset((
    "feed", "fetch", "recurrent", "go", "rnn_memory_helper_grad", "conditional_block", "while", "send", "recv",
    "listen_and_serv", "fl_listen_and_serv", "ncclInit", "select", "checkpoint_notify", "gen_nccl_id", "c_gen_nccl_id",
    "c_comm_init", "c_sync_calc_stream", "c_sync_comm_stream"))
_PLAIN = frozenset((bool, int, float, str))


def attr_value(value: Any) -> Any:
    """Converts an attribute for the C++ layer: Blocks become references, numpy values plain ones."""
    if isinstance(value, (int, float, str)):
        return value
    if isinstance(value, np.ndarray):
        return value.ravel().tolist() if value.ndim else value.item()
    if isinstance(value, (list, tuple)):
        # Values of a table come in lists of millions of numbers: the set is built without a call per element.
        return value if _PLAIN.issuperset(map(type, value)) else [attr_value(v) for v in value]
    if hasattr(value, "desc") and hasattr(value, "parent_idx"):
        return _core.BlockRef(value.idx)
    return value


class Operator:
    """An operation of a block: type, arguments by slot, attributes. Layers create it with ``Block.append_op``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> block = fluid.Program().global_block()
        >>> x = block.create_var(name="x", shape=[2], dtype="float32")
        >>> y = block.create_var(name="y", shape=[2], dtype="float32")
        >>> op = block.append_op(type="scale", inputs={"X": x}, outputs={"Out": y}, attrs={"scale": 2.0})
        >>> op.type, op.input("X"), op.output("Out"), op.attr("scale")
        ('scale', ['x'], ['y'], 2.0)
    """

    OP_WITHOUT_KERNEL_SET = frozenset(["feed", "fetch", "while", "conditional_block", "read", "listen_and_serv"])

    def __init__(self, block: Any, desc: Any) -> None:
        self.block = block
        self.desc = desc

    @property
    def type(self) -> str:
        """str: the kind of operation."""
        return self.desc._type

    @property
    def idx(self) -> int:
        """int: position in the block."""
        return self.block.ops.index(self)

    def input(self, name: str) -> list[str]:
        """list of str: names of the variables in input slot ``name``; empty if there are none."""
        return self.desc.input(name)

    def output(self, name: str) -> list[str]:
        """list of str: names of the variables in output slot ``name``; empty if there are none."""
        return self.desc.output(name)

    @property
    def input_names(self) -> list[str]:
        """list of str: the input slots in the order of their names, as in Fluid 1.8.5."""
        return sorted(self.desc.input_names())

    @property
    def output_names(self) -> list[str]:
        """list of str: the output slots in the order of their names, as in Fluid 1.8.5."""
        return sorted(self.desc.output_names())

    @property
    def input_arg_names(self) -> list[str]:
        """list of str: all variables that are read, slot by slot in the order of ``input_names``."""
        return [name for slot in self.input_names for name in self.desc.input(slot)]

    @property
    def output_arg_names(self) -> list[str]:
        """list of str: all variables that are written, slot by slot in the order of ``output_names``."""
        return [name for slot in self.output_names for name in self.desc.output(slot)]

    def has_attr(self, name: str) -> bool:
        """bool: whether the op has this attribute."""
        return self.desc.has_attr(name)

    def attr_type(self, name: str) -> Any:
        """core.AttrType: type of an attribute, ``AttrType.INT``, ``AttrType.FLOATS`` ..."""
        return self.desc.attr_type(name)

    @property
    def attr_names(self) -> list[str]:
        """list of str: names of all attributes, sorted."""
        return self.desc.attr_names()

    def attr(self, name: str) -> Any:
        """Value of an attribute; a Block for a sub-block.

        Raises:
            EnforceNotMet: there is no such attribute.
        """
        value = self.desc.attr(name)
        if isinstance(value, _core.BlockRef):
            return self.block.program.block(value.idx)
        if isinstance(value, list) and value and isinstance(value[0], _core.BlockRef):
            return [self.block.program.block(b.idx) for b in value]
        return value

    def all_attrs(self) -> Any:
        """dict: all attributes by name."""
        return {name: self.attr(name) for name in self.attr_names}

    def _set_attr(self, name, val):
        self.desc._set_attr(name, attr_value(val))
        self.block.program.desc.touch()

    def _remove_attr(self, name):
        self.desc.remove_attr(name)
        self.block.program.desc.touch()

    def _update_desc_attr(self, name, val):
        self._set_attr(name, val)

    def _is_optimize_op(self):
        """Whether the role has the bit of the updates; EnforceNotMet if the op has no role."""
        return bool(self.desc.attr("op_role") & OpRole.Optimize)

    def _block_attr_id(self, name):
        return self.desc.attr(name).idx

    def _block_attr(self, name):
        return self.attr(name)

    def _blocks_attr(self, name):
        return [self.block.program.block(index) for index in self._blocks_attr_ids(name)]

    def _has_kernel(self, op_type):
        return op_type not in _WITHOUT_KERNEL

    def _blocks_attr_ids(self, name):
        return [b.idx for b in self.desc.attr(name)]

    def _rename_input(self, old_name, new_name):
        self.desc._rename_input(old_name, new_name)
        self.block.program.desc.touch()

    def _rename_output(self, old_name, new_name):
        self.desc._rename_output(old_name, new_name)
        self.block.program.desc.touch()

    def to_string(self, throw_on_error: Any) -> str:
        """str: readable text of the op, with its attributes."""
        return _core.op_text(self.desc, True)

    def __str__(self) -> str:
        return _core.op_text(self.desc, False)

    __repr__ = __str__
