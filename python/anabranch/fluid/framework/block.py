"""Block: the variables and operators of one level of a Program."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ... import _core
from ..._near import near
from .. import unique_name
from ..errors import InvalidType, InvalidValue, NotAllowed, NotFound, Unsupported, also
from . import context
from .dtype import VarType
from .operator import Operator, attr_value, slots_of
from .parameter import Parameter
from .variable import Variable

#: Operators of inference programs that the engine does not run: they list what is fed and fetched.
_INTERFACE = ("feed", "fetch")


class _Vars(Mapping):
    """Live, ordered view of a block's variables: name -> Variable."""

    def __init__(self, block):
        self._block = block

    def __getitem__(self, name):
        found = self._block._find(name)
        if found is None:
            raise KeyError(name)
        return found

    def __contains__(self, name):
        return isinstance(name, str) and self._block.desc._find_var(name) is not None

    def __iter__(self):
        return iter([v.name for v in self._block.desc.vars()])

    def __len__(self):
        return self._block.desc.num_vars()

    def __delitem__(self, name):
        self._block._remove_var(name)

    def pop(self, name):
        found = self[name]
        self._block._remove_var(name)
        return found


class Block:
    """Variables and operators in program order. Block 0 of a Program is the global one; the others are bodies of
    control flow, which also see the variables of their parents.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> block = fluid.Program().global_block()
        >>> x = block.create_var(name="x", shape=[2], dtype="float32")
        >>> block.has_var("x"), list(block.vars), block.ops
        (True, ['x'], [])
    """

    def __init__(self, program: Any, desc: Any) -> None:
        self.program = program
        self.desc = desc
        self._wrappers: dict[Any, Any] = {}        # name -> Variable
        self._op_wrappers: dict[Any, Any] = {}     # C++ op -> Operator
        self._ops: list[Any] = []
        self._ops_version = None   # the program's version when _ops was read

    # ---- position in the program

    @property
    def idx(self) -> int:
        """int: index of the block in its program."""
        return self.desc.idx

    id = idx

    @property
    def parent_idx(self) -> int:
        """int: index of the enclosing block, -1 for the global one."""
        return self.desc.parent

    parent = parent_idx

    @property
    def forward_block_idx(self) -> int:
        """int: index of the block whose gradient this one computes, -1 for none."""
        return self.desc.forward_block

    @property
    def backward_block_idx(self) -> int:
        """int: index of the first block that computes gradients of this one, -1 for none."""
        blocks = (self.program.block(i) for i in range(self.program.num_blocks))
        return next((block.idx for block in blocks if block.forward_block_idx == self.idx), -1)

    def _set_forward_block_idx(self, idx):
        self.desc.forward_block = idx

    # ---- variables

    def _wrap(self, desc):
        wrapper = self._wrappers.get(desc.name)
        if wrapper is None or wrapper._var is not desc:
            cls = Parameter if desc.is_parameter else Variable
            wrapper = cls.__new__(cls)
            wrapper._attach(self, desc)
            self._wrappers[desc.name] = wrapper
        return wrapper

    def _adopt(self, variable):
        self._wrappers[variable._var.name] = variable

    def _find(self, name):
        desc = self.desc._find_var(name)
        return None if desc is None else self._wrap(desc)

    @property
    def vars(self) -> Any:
        """Mapping of str to Variable: the block's own variables in order of creation, always up to date."""
        return _Vars(self)

    def has_var(self, name: str) -> bool:
        """bool: whether this block itself has the variable."""
        return self.desc._find_var(name) is not None

    def var(self, name: str) -> Any:
        """The variable of this block with this name.

        Raises:
            TypeError: ``name`` is not a str.
            ValueError: there is no such variable.
        """
        if not isinstance(name, str):
            raise InvalidType("Block.var: name must be a str, got %s" % type(name).__name__)
        found = self._find(name)
        if found is None:
            raise InvalidValue("block %d has no variable %r%s" % (self.idx, name, near(name, self.vars)))
        return found

    def _find_var_recursive(self, name):
        """The variable of this block or of one that encloses it; None if there is none."""
        if not isinstance(name, str):
            raise InvalidType("the name of a variable must be a str, got %s" % type(name).__name__)
        block, seen = self, set()
        pending = [block]
        while pending:
            block = pending.pop(0)
            if block.idx in seen:
                continue
            seen.add(block.idx)
            found = block._find(name)
            if found is not None:
                return found
            pending += [self.program.block(i) for i in (block.forward_block_idx, block.parent_idx) if i >= 0]
        return None

    def _var_recursive(self, name):
        found = self._find_var_recursive(name)
        if found is None:
            raise InvalidValue("variable %r is neither in block %d nor in one that encloses it" % (name, self.idx))
        return found

    def create_var(self, *args: Any, **kwargs: Any) -> Any:
        """Creates a variable, or returns the existing one if it agrees. The arguments are those of ``Variable``.

        Raises:
            ValueError: a variable of this name exists and differs.
        """
        name = kwargs.get("name")
        known = self._find(name) if isinstance(name, str) else None
        variable = Variable(self, *args, **kwargs) if known is None else known
        if known is not None:
            Variable.__init__(known, self, *args, **kwargs) if not isinstance(known, Parameter) else \
                known._check_alike(known._var, kwargs.get("type", VarType.LOD_TENSOR), kwargs.get("shape"),
                                   kwargs.get("dtype"), kwargs.get("lod_level"), kwargs.get("persistable"))
        initializer = kwargs.get("initializer")
        if initializer is not None:
            initializer(variable, self)
        return variable

    def create_parameter(self, *args: Any, **kwargs: Any) -> Any:
        """Creates a parameter in the program's global block. The arguments are those of ``Parameter``, and
        ``initializer``.

        An initializer appends its op to this block unless one op writes the parameter already.

        Raises:
            RuntimeError: several ops of this block already initialize the parameter.
            ValueError: a variable of this name exists and differs.
        """
        block = self.program.global_block()
        initializer = kwargs.pop("initializer", None)
        if kwargs.get("name") is None:
            kwargs["name"] = unique_name.generate("_generated_var")
        known = block._find(kwargs["name"])
        parameter = Parameter(block, *args, **kwargs)
        if isinstance(known, Parameter):
            # One name, one object: the attributes of the latest call win.
            known.__dict__.update({k: v for k, v in parameter.__dict__.items() if k != "op"})
            block._adopt(known)
            parameter = known
        if initializer is not None:
            # No op writes a variable that was not there.
            writers = [op for op in block.ops if parameter.name in op.output_arg_names] if known is not None else []
            if len(writers) > 1:
                raise NotAllowed("parameter %s is already initialized by %d ops" % (parameter.name, len(writers)))
            if not writers:
                initializer(parameter, self)
        parameter.stop_gradient = False
        return parameter

    def all_parameters(self) -> list[Parameter]:
        """list of Parameter: the parameters of this block, in order of creation."""
        return list(self.iter_parameters())

    def iter_parameters(self) -> Any:
        """Iterator over the parameters of this block."""
        return (self._wrap(v) for v in self.desc.vars() if v.is_parameter)

    def _remove_var(self, name):
        try:
            self.desc.remove_var(name)
        except NotFound as e:
            raise also(NotFound, KeyError)(e.message) from None
        self._wrappers.pop(name, None)

    def _rename_var(self, name, new_name):
        """Renames a variable, also in this block's ops. ValueError if there is none of that name."""
        variable = self.var(name)
        self.desc.rename_var(name, new_name)
        self._wrappers.pop(name, None)
        self._wrappers[new_name] = variable
        return variable

    def _clone_variable(self, var, force_persistable=True):
        """A variable like ``var`` of another program."""
        return self.create_var(name=var.name, type=var.type, shape=var.shape or None, dtype=var.dtype,
                               lod_level=var._var.lod_level, persistable=True if force_persistable else var.persistable,
                               is_data=var.is_data, need_check_feed=var.need_check_feed)

    # ---- operators

    @property
    def ops(self) -> list[Operator]:
        """list of Operator: the operators in program order. The list is a copy; change the block by its methods."""
        version = self.program.desc.version
        if version != self._ops_version:
            old, fresh, ops = self._op_wrappers, {}, []
            for desc in self.desc.ops():
                op = old.get(desc)
                if op is None:
                    op = Operator(self, desc)
                fresh[desc] = op
                ops.append(op)
            self._op_wrappers, self._ops, self._ops_version = fresh, ops, version
        return list(self._ops)

    def _last_op(self):
        """The last operator, in time that does not depend on their number."""
        desc = self.desc.op(self.desc.op_size() - 1)
        return self._op_wrappers.get(desc) or Operator(self, desc)

    def append_op(self, type: str | None = None, inputs: dict[str, Any] | None = None,
                  outputs: dict[str, Any] | None = None, attrs: dict[str, Any] | None = None,
                  stop_gradient: bool = False, index: Any = None) -> Operator:
        """Appends an operator: checks its arguments, fills in default attributes, and infers shapes.

        Args:
            type (str): kind of operation.
            inputs (dict): slot -> Variable, name, or a list of them.
            outputs (dict): slot -> Variable, name, or a list of them. Names that do not exist become variables of this
                block.
            attrs (dict, optional): attributes; a Block refers to a sub-block; None values are dropped.
            stop_gradient (bool): whether to set ``stop_gradient`` of the outputs. Default False.

        Returns:
            Operator: the new operator.

        Raises:
            AssertionError: a required input is missing.
            ValueError: the type or a required output is missing, or a slot gets too many arguments.
            TypeError: an argument is neither Variable nor name, or ``attrs`` is not a dict.
            EnforceNotMet: the type, a slot or an attribute value is unknown, or shapes do not match.
        """
        if not type:
            raise InvalidValue("append_op: type must be given")
        if attrs is not None and not isinstance(attrs, dict):
            raise InvalidType("op %s: attrs must be a dict, got %s" % (type, attrs.__class__.__name__))
        full = context.op_attributes(self.program)
        for key, value in (attrs or {}).items():
            if value is not None:
                full[key] = attr_value(value)
        fresh = self._ops_version == self.program.desc.version
        slots = slots_of(type, inputs, "input"), slots_of(type, outputs, "output")
        if type in _INTERFACE:
            if [(slot, len(names)) for part in slots for slot, names in part] != [("X", 1), ("Out", 1)]:
                raise InvalidValue("op %s: X and Out must have one variable each, got %s" % (type, slots))
            desc = self.desc.insert_raw_op(self.desc.op_size() if index is None else index, type, *slots, full)
        else:
            try:
                desc = self.desc.append_op(type, *slots, full, index)
            except Unsupported as e:
                # Fluid 1.8.5 has some of these types, and raises EnforceNotMet for them.
                raise also(Unsupported, ValueError, shown="EnforceNotMet")(e.message) from None
        op = Operator(self, desc)
        self._op_wrappers[desc] = op
        if fresh and index is None:
            self._ops.append(op)
            self._ops_version = self.program.desc.version
        for args in (outputs or {}).values():
            for arg in args if isinstance(args, (list, tuple)) else (args,):
                if isinstance(arg, Variable):
                    arg.op = op
                    if stop_gradient:
                        arg.stop_gradient = True
        return op

    def _prepend_op(self, type=None, inputs=None, outputs=None, attrs=None, **kwargs):
        return self.append_op(type, inputs, outputs, attrs, index=0)

    def _insert_op(self, index, *args, **kwargs):
        return self.append_op(*args, index=index, **kwargs)

    def _remove_op(self, index):
        if not 0 <= index < self.desc.op_size():
            raise also(InvalidValue, IndexError)("Block._remove_op: index must be below %d, got %s"
                                                 % (self.desc.op_size(), index))
        self.desc.remove_ops(index, index + 1)

    def _remove_ops(self, first, last):
        self.desc.remove_ops(first, last)

    def _slice_ops(self, start, end):
        return self.ops[start:end]

    def _sync_with_cpp(self):
        """Reads the operators again. ``vars`` and ``ops`` already show changes made through ``desc``."""
        self._ops_version = None

    # ---- printing

    def to_string(self, throw_on_error: Any, with_details: Any = False) -> str:
        """str: the variables and operators of the block, one per line."""
        lines = ["block %d (parent %d)" % (self.idx, self.parent_idx)]
        lines += ["  " + v.to_string(throw_on_error, with_details).replace("\n", "\n    ") for v in self.vars.values()]
        lines += ["  " + _core.op_text(op.desc, with_details) for op in self.ops]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.to_string(True)

    __repr__ = __str__
