"""Operators that run by themselves, outside of a program. The names of ``fluid.op``."""
from __future__ import annotations

from typing import Any

from .. import _core
from .errors import InvalidType, InvalidValue, NotFound
from .executor import Executor
from .framework import Program, VarType
from .framework.operator import _argument_names, _schema

__all__ = ["Operator"]


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

    def type(self) -> str:
        """str: the type of the operator."""
        return self._type

    def inputs(self) -> dict[str, list[str]]:
        """dict: slot -> names of the inputs."""
        return self._inputs

    def outputs(self) -> dict[str, list[str]]:
        """dict: slot -> names of the outputs."""
        return self._outputs

    def _program(self, scope):
        program = Program()
        block = program.global_block()
        for name in (name for names in self._inputs.values() for name in names):
            found = scope.find_var(name)
            if found is None:
                raise NotFound("operator %s: the scope has no variable %s" % (self._type, name))
            tensor = found.get_tensor()
            block.create_var(name=name, shape=tensor.shape(), dtype=VarType(tensor._dtype_number()),
                             lod_level=len(tensor.lod()), persistable=True)
        for name in (name for names in self._outputs.values() for name in names):
            if not block.has_var(name):
                block.create_var(name=name, persistable=True)
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
        Executor(place).run(self._program(scope), scope=scope)

    def __repr__(self) -> str:
        def shown(slots):
            return ", ".join("%s[%s]" % (slot, ", ".join(names)) for slot, names in slots.items())
        return "Op(%s), inputs:{%s}, outputs:{%s}." % (self._type, shown(self._inputs), shown(self._outputs))
