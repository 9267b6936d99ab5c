"""An ONNX graph under construction, and the view of a program's operator that translations use."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..fluid.errors import NotOffered, Unsupported
from ..fluid.framework.dtype import numpy_dtype

try:
    import onnx
    from onnx import helper, numpy_helper
except ImportError:
    raise NotOffered("anabranch export --onnx needs onnx: pip install 'anabranch[onnx]'") from None

OPSET = 17
IR_VERSION = 8


class Op:
    """One operator: slots with their first variable, attributes, shapes and dtypes of variables."""

    def __init__(self, op: Any, block: Any) -> None:
        self._op, self._block, self.type = op, block, op.type

    def names(self, slot: str) -> list[str]:
        """list of str: all variables of an input slot."""
        return list(self._op.input(slot)) if slot in self._op.input_names else []

    def outs(self, slot: str = "Out") -> list[str]:
        """list of str: all variables of an output slot."""
        return list(self._op.output(slot)) if slot in self._op.output_names else []

    def x(self, slot: str = "X") -> str:
        """str: the variable of an input slot."""
        return self.names(slot)[0]

    def out(self, slot: str = "Out") -> str:
        """str: the variable of an output slot."""
        return self.outs(slot)[0]

    def has(self, slot: str) -> bool:
        """bool: whether an input slot has a variable."""
        return bool(self.names(slot))

    def attr(self, name: str, default: Any = None) -> Any:
        """The value of an attribute."""
        return self._op.attr(name) if self._op.has_attr(name) else default

    def shape(self, name: str) -> list[int]:
        """list of int: the shape of a variable, with -1 for unknown extents."""
        return list(self._block.var(name).shape)

    def dtype(self, name: str) -> Any:
        """numpy.dtype: the dtype of a variable."""
        return np.dtype(numpy_dtype(self._block.var(name).dtype))

    def refuse(self, why: str) -> None:
        """Raises NotImplementedError: there is no translation, because ``why``."""
        raise Unsupported("export to ONNX: %s -> %s: %s" % (self.type, ", ".join(
            name for slot in self._op.output_names for name in self._op.output(slot)), why))

    def only(self, *slots: str) -> None:
        """Raises NotImplementedError if an input slot that the translation does not support has a variable."""
        for slot in self._op.input_names:
            if slot not in slots and self.names(slot):
                self.refuse("the input %s has no translation" % slot)


class Graph:
    """Nodes, constants and parameters of an ONNX graph."""

    def __init__(self) -> None:
        self._nodes: list[Any] = []
        self._values: dict[str, Any] = {}
        self._count = 0

    def fresh(self, hint: str = "v") -> str:
        """str: an unused name."""
        self._count += 1
        return "onnx_%s_%d" % (hint, self._count)

    def emit(self, kind: str, inputs: list[str], out: str | list[str] | None = None, **attrs: Any) -> str:
        """Adds a node; returns the name of its first output, a new one when ``out`` is missing."""
        outs = [self.fresh(kind.lower())] if out is None else [out] if isinstance(out, str) else out
        self._nodes.append(helper.make_node(kind, inputs, outs, name=self.fresh("node"), **attrs))
        return outs[0]

    def const(self, value: Any, dtype: Any = np.int64) -> str:
        """str: the name of a constant."""
        name = self.fresh("c")
        self._values[name] = np.asarray(value, dtype)
        return name

    def parameter(self, name: str, value: Any) -> None:
        """Adds a parameter of the model."""
        self._values[name] = np.ascontiguousarray(value)

    def value(self, name: str) -> Any:
        """numpy.ndarray or None: the value of a variable, if it is known before a run."""
        return self._values.get(name)

    def model(self, name: str, inputs: list[Any], outputs: list[Any]) -> Any:
        """onnx.ModelProto: checked. ``inputs`` and ``outputs`` are variables of the program."""
        used = {i for node in self._nodes for i in node.input} | {v.name for v in outputs}
        values = [numpy_helper.from_array(value, key) for key, value in self._values.items() if key in used]
        graph = helper.make_graph(self._nodes, name, [_info(v) for v in inputs], [_info(v) for v in outputs], values)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION,
                                 producer_name="anabranch")
        onnx.checker.check_model(made, full_check=True)
        return made


def _info(variable: Any) -> Any:
    shape = ["batch" if n < 0 and k == 0 else None if n < 0 else n for k, n in enumerate(variable.shape)]
    return helper.make_tensor_value_info(variable.name, onnx_dtype(numpy_dtype(variable.dtype)), shape)


def onnx_dtype(dtype: Any) -> int:
    """int: ONNX's number of a NumPy dtype."""
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
