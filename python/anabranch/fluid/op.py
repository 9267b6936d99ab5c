"""Operators that run by themselves, outside of a program. The names of ``fluid.op``."""
from __future__ import annotations

from typing import Any

from .. import _core
from .core import op_support_gpu
from .errors import InvalidType, InvalidValue, NotFound
from .executor import Executor
from .framework import Program, VarType
from .framework.op_protos import OpProto, OpProtoHolder, get_all_op_protos
from .framework.operator import _argument_names, _schema

__all__ = ["Operator", "get_all_op_protos"]

#: Kind of a value in a scope -> type of its variable in a program.
_TYPES = {"tensor": VarType.LOD_TENSOR, "rows": VarType.SELECTED_ROWS, "array": VarType.LOD_TENSOR_ARRAY}


def _declaration(value: Any) -> dict[str, Any]:
    """Arguments of ``create_var`` for the value of a variable in a scope. Empty values are tensors."""
    kind = value._kind()
    declared: dict[str, Any] = {"type": _TYPES.get(kind, VarType.RAW if kind == "object" else VarType.LOD_TENSOR)}
    if kind in ("tensor", "empty"):
        tensor = value.get_tensor()
    elif kind == "rows":
        tensor = value.get_selected_rows().get_tensor()
    else:
        return declared
    if tensor._is_initialized():
        declared.update(shape=tensor.shape(), dtype=VarType(tensor._dtype_number()))
    if kind == "tensor":
        declared["lod_level"] = len(tensor.lod())
    return declared


class Operator:
    """An operator on the variables of a scope.

    Args:
        type (str): type of the operator.
        **kwargs: names of variables (str or list of str) for each slot, and values of attributes.

    Raises:
        ValueError: the operator does not exist.
        TypeError: names of a slot are not str.

    Examples:
        >>> import numpy, anabranch.fluid as fluid
        >>> from anabranch.fluid.op import Operator
        >>> scope, place = fluid.core.Scope(), fluid.CPUPlace()
        >>> scope.var("x").get_tensor().set(numpy.array([-1.0, 2.0], "float32"), place)
        >>> Operator("scale", X="x", Out="y", scale=3.0).run(scope, place)
        >>> numpy.array(scope.find_var("y").get_tensor()).tolist()
        [-3.0, 6.0]
    """

    def __init__(self, type: str, **kwargs: Any) -> None:
        schema = _schema(type)
        if schema is None:
            raise InvalidValue("The operator: %s is not registered." % type)
        self._type = type
        self._inputs, self._outputs = ({slot: _argument_names(type, slot, kwargs.pop(slot))
                                        for slot in slots if slot in kwargs} for slots in schema)
        self._attrs = kwargs
        # Place and variables of the last run, and what runs it: tests run one operator many times.
        self._call: tuple[Any, Any] | None = None
        self._ready: Any = None

    def type(self) -> str:
        """str: the type of the operator."""
        return self._type

    def inputs(self) -> dict[str, list[str]]:
        """dict: slot -> names of the inputs."""
        return self._inputs

    def outputs(self) -> dict[str, list[str]]:
        """dict: slot -> names of the outputs."""
        return self._outputs

    def input_vars(self) -> list[str]:
        """list of str: names of all inputs."""
        return [name for names in self._inputs.values() for name in names]

    def output_vars(self, has_intermediate: bool = True) -> list[str]:
        """list of str: names of the outputs, of those that users read or of all (``has_intermediate``)."""
        hidden = () if has_intermediate else {slot.name for slot in self._proto().outputs if slot.intermediate}
        return [name for slot, names in self._outputs.items() if slot not in hidden for name in names]

    def no_intermediate_outputs(self) -> list[str]:
        """list of str: names of the outputs that users read."""
        return self.output_vars(False)

    def support_gpu(self) -> bool:
        """bool: whether operators of this type run on a device."""
        return op_support_gpu(self._type)

    def _proto(self) -> OpProto:
        return OpProtoHolder.instance().get_op_proto(self._type)

    @staticmethod
    def types() -> list[str]:
        """list of str: types of all operators."""
        return _core.op_types()

    @classmethod
    def get_op_info(cls, type: str) -> OpProto:
        """The declaration of an operator, with ``type``, ``inputs``, ``outputs`` and ``attrs``.

        Raises:
            ValueError: there is no such operator.
        """
        return OpProtoHolder.instance().get_op_proto(type)

    @classmethod
    def get_op_input_names(cls, type: str) -> list[str]:
        """list of str: names of the input slots."""
        return [slot.name for slot in cls.get_op_info(type).inputs]

    @classmethod
    def get_op_output_names(cls, type: str) -> list[str]:
        """list of str: names of the output slots."""
        return [slot.name for slot in cls.get_op_info(type).outputs]

    @classmethod
    def get_op_inputs(cls, type: str) -> list[tuple[str, bool]]:
        """list of (str, bool): names of the input slots, and whether each takes several variables."""
        return [(slot.name, slot.duplicable) for slot in cls.get_op_info(type).inputs]

    @classmethod
    def get_op_outputs(cls, type: str) -> list[tuple[str, bool]]:
        """list of (str, bool): names of the output slots, and whether each takes several variables."""
        return [(slot.name, slot.duplicable) for slot in cls.get_op_info(type).outputs]

    @classmethod
    def get_op_attr_names(cls, type: str) -> list[str]:
        """list of str: names of the attributes."""
        return [attr.name for attr in cls.get_op_info(type).attrs]

    def _declared(self, scope):
        """Variable -> arguments of ``create_var``, by what the scope holds."""
        declared = {}
        for name in self.input_vars():
            found = scope.find_var(name)
            if found is None:
                raise NotFound("operator %s: the scope has no variable %s" % (self._type, name))
            declared[name] = _declaration(found)
        for name in self.output_vars(True):
            if name not in declared:
                found = scope.find_var(name)
                declared[name] = {} if found is None else {"type": _declaration(found)["type"]}
        return declared

    def _program(self, declared):
        program = Program()
        block = program.global_block()
        for name, arguments in declared.items():
            block.create_var(name=name, persistable=True, **arguments)
        block.append_op(type=self._type, inputs=self._inputs, outputs=self._outputs, attrs=self._attrs)
        return program

    def run(self, scope: Any, place: Any) -> None:
        """Runs the operator. Outputs that do not exist in the scope are created there.

        Args:
            scope (Scope): scope of the inputs and outputs.
            place (CPUPlace): place of the run.

        Raises:
            LookupError: an input is not in the scope. The operator may raise other errors.
        """
        if not isinstance(scope, _core.Scope):
            raise InvalidType("operator %s: scope must be a Scope, got %s" % (self._type, scope.__class__.__name__))
        call = (place, self._declared(scope))
        if call != self._call:
            self._call, self._ready = call, (Executor(place), self._program(call[1]))
        executor, program = self._ready
        executor.run(program, scope=scope)

    def __repr__(self) -> str:
        def shown(slots):
            return ", ".join("%s[%s]" % (slot, ", ".join(names)) for slot, names in slots.items())
        return "Op(%s), inputs:{%s}, outputs:{%s}." % (self._type, shown(self._inputs), shown(self._outputs))
