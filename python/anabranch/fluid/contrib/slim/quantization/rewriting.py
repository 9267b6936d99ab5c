"""Shared by the passes: checked arguments, nodes in the order of the program, tensors of a scope."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy

from ....errors import NotFound, require
from ....framework.dtype import VarType
from ....framework.ir_graph import IrGraph
from ....framework.ir_nodes import IrOpNode, IrVarNode


def check_graph(graph: Any, name: str) -> None:
    require(isinstance(graph, IrGraph), "%s.apply: graph must be an IrGraph, got %s" % (name, type(graph).__name__))


def check_given(value: Any, name: str, of: str) -> None:
    require(value is not None, "%s: %s must be given, got None" % (of, name))


def check_types(given: Sequence[str], known: Iterable[str], of: str) -> None:
    """Raises AssertionError for a type of operator that a pass does not treat."""
    for kind in given:
        require(kind in known, "%s: quantizable_op_type must list types of %s, got %r" % (
            of, ", ".join(sorted(known)), kind))


def check_bits(bits: Any, name: str, of: str) -> None:
    require(isinstance(bits, int) and not isinstance(bits, bool) and 2 <= bits <= 16,
            "%s: %s must be an int from 2 to 16, got %r" % (of, name, bits))


def levels(bits: int) -> int:
    """int: the largest level of numbers of ``bits`` bits, 127 for 8."""
    return (1 << (bits - 1)) - 1


# ---- nodes


def ops_of(graph: IrGraph, types: Iterable[str]) -> list[IrOpNode]:
    """The operators of some types, in the order of the program."""
    chosen = frozenset(types)
    found = sorted(graph.all_op_nodes(), key=lambda node: node.id())
    return [node for node in found if node.op().type() in chosen]


def kept_names(graph: IrGraph) -> set[str]:
    """Names of the persistable variables."""
    return {node.name() for node in graph.all_persistable_nodes()}


def input_nodes(op: IrOpNode) -> Iterator[IrVarNode]:
    """The nodes that an operator reads, without those that only give an order."""
    for node in op.inputs:
        if not node.is_ctrl_var():
            yield node


def read_rounded(graph: IrGraph, gradients: Iterable[IrOpNode], rounded: Mapping[str, IrVarNode]) -> None:
    """Lets the gradient operators read the rounded values of variables, and orders what the graph now writes twice."""
    for op in gradients:
        for node in list(input_nodes(op)):
            if node.name() in rounded:
                graph.update_input_link(node, rounded[node.name()], op)
    graph.resolve_hazard()


def named(nodes: Iterable[Any], name: str) -> Any:
    """The first of some nodes with a name."""
    return next(node for node in nodes if node.name() == name)


def is_skipped(op: IrOpNode, patterns: Any) -> bool:
    """Whether the name scope of an operator contains one of the patterns."""
    scope = op.op().attr("op_namescope") if op.op().has_attr("op_namescope") else ""
    return any(pattern in scope for pattern in ([patterns] if isinstance(patterns, str) else patterns or ()))


def only_activations(op: IrOpNode, kept: set[str]) -> bool:
    """Whether none of the inputs is persistable."""
    return not any(name in kept for name in op.input_arg_names())


def like(graph: IrGraph, node: IrVarNode, name: str, persistable: bool = False, shape: Any = None) -> IrVarNode:
    """A new node for a variable of the kind and dtype of another, with its shape unless one is given."""
    make = graph.create_persistable_node if persistable else graph.create_var_node
    return make(name, node.type(), node.shape() if shape is None else shape, node.dtype())


def insert(graph: IrGraph, kind: str, attributes: dict[str, Any], inputs: dict[str, Any],
           outputs: dict[str, Any]) -> IrOpNode:
    """A new operator of the forward pass that is linked with its variables."""
    op = graph.create_op_node(kind, {**attributes, "op_role": 0}, inputs, outputs)
    for nodes, is_input in ((inputs, True), (outputs, False)):
        for one in nodes.values():
            for node in one if isinstance(one, list) else [one]:
                graph.link_to(*((node, op) if is_input else (op, node)))
    return op


def remove_unused_variables(graph: IrGraph) -> None:
    """Removes the variables that no operator reads or writes."""
    used = {node.id() for op in graph.all_op_nodes() for node in [*op.inputs, *op.outputs]}
    graph.safe_remove_nodes({node for node in graph.all_var_nodes() if node.id() not in used})


# ---- tensors


def array_of(scope: Any, name: str) -> numpy.ndarray:
    """Array: a copy of a tensor.

    Raises:
        LookupError: the scope does not hold it.
    """
    variable = scope.find_var(name)
    if variable is None or not variable.get_tensor()._is_initialized():
        raise NotFound("the scope has no value for %s: run the startup program or load the parameters first" % name)
    return numpy.array(variable.get_tensor())


def put(scope: Any, name: str, array: numpy.ndarray, place: Any) -> None:
    scope.var(name).get_tensor().set(array, place)


def state(graph: IrGraph, scope: Any, place: Any, name: str, value: Any, dtype: Any = VarType.FP32) -> IrVarNode:
    """A persistable variable of one value or several, in the graph and in the scope."""
    array = numpy.atleast_1d(numpy.asarray(value, {VarType.FP64: "float64", VarType.INT64: "int64"}.get(
        dtype, "float32")))
    put(scope, name, array, place)
    return graph.create_persistable_node(name, VarType.LOD_TENSOR, list(array.shape), dtype)


#: A scale before the first step.
_FIRST_SCALE = 0.001


def kept_scale(graph: IrGraph, scope: Any, place: Any, name: str, node: IrVarNode) -> IrVarNode:
    """The scale that a program keeps from step to step. For evaluation, one that the scope holds stays."""
    held = scope.find_var(name) if graph.is_test() else None
    if held is not None and held.get_tensor()._is_initialized():
        return graph.create_persistable_node(name, VarType.LOD_TENSOR, [1], node.dtype())
    return state(graph, scope, place, name, _FIRST_SCALE, node.dtype())
