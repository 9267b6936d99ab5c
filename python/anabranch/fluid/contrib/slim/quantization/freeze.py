"""QuantizationFreezePass: the program of a trained quantized model multiplies levels and converts the result."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from .... import unique_name
from ....errors import InvalidArgument, InvalidValue
from ....framework.ir_graph import IrGraph
from ....framework.ir_nodes import IrOpNode, IrVarNode
from . import rewriting
from .tables import CHANNEL_NUMBERS, LEVELS, NUMBERS, WITH_WEIGHT, arguments_of

__all__ = ["QuantizationFreezePass"]

_NAME = "QuantizationFreezePass"


class QuantizationFreezePass:
    """Replaces weights by their levels, and converts the results of operators back to numbers.

    The graph is one for evaluation that :class:`QuantizationTransformPass` has rewritten. An operator then multiplies
    levels of activations by levels of weights, in float. A new operator multiplies its result by both scales.

    Args:
        scope (Scope): scope of the weights, which become levels.
        place (Place): place of the weights.
        weight_bits (int): bits of a weight, as in the transform. Default 8.
        activation_bits (int): bits of an activation, as in the transform. Default 8.
        weight_quantize_type (str): kind of the scales of weights, as in the transform. Default ``"abs_max"``.
        quantizable_op_type (list of str, optional): ignored: the operators that the transform has marked are treated.

    Raises:
        AssertionError: ``scope`` or ``place`` is None, or a number of bits is not supported.
        ValueError: there is no such kind of scale.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> from anabranch.fluid.contrib.slim import quantization
        >>> main, startup, scope, place = fluid.Program(), fluid.Program(), fluid.Scope(), fluid.CPUPlace()
        >>> with fluid.program_guard(main, startup), fluid.scope_guard(scope):
        ...     y = fluid.layers.fc(fluid.data("x", [None, 4], "float32"), 2, bias_attr=False)
        ...     none = fluid.Executor(place).run(startup)
        >>> graph = fluid.framework.IrGraph(fluid.core.Graph(main.desc), for_test=True)
        >>> quantization.QuantizationTransformPass(scope, place).apply(graph)
        >>> quantization.QuantizationFreezePass(scope, place).apply(graph)
        >>> [op.type for op in graph.to_program().global_block().ops]
        ['fake_quantize_abs_max', 'mul', 'fake_dequantize_max_abs']
    """

    def __init__(self, scope: Any, place: Any, weight_bits: int = 8, activation_bits: int = 8,
                 weight_quantize_type: str = "abs_max", quantizable_op_type: Sequence[str] | None = None) -> None:
        rewriting.check_given(scope, "scope", _NAME)
        rewriting.check_given(place, "place", _NAME)
        rewriting.check_bits(weight_bits, "weight_bits", _NAME)
        rewriting.check_bits(activation_bits, "activation_bits", _NAME)
        if weight_quantize_type not in LEVELS:
            raise InvalidValue("%s: weight_quantize_type must be one of %s, got %r" % (
                _NAME, ", ".join(LEVELS), weight_quantize_type))
        self._scope, self._place = scope, place
        self._weight_bits, self._activation_bits = weight_bits, activation_bits

    def apply(self, graph: IrGraph) -> None:
        """Rewrites a graph and the weights in the scope.

        Args:
            graph (IrGraph): graph of a program for evaluation after the transform.

        Raises:
            AssertionError: ``graph`` is not an IrGraph.
            LookupError: the scope has no value for a weight.
            ValueError: a marked operator does not have one activation and one weight.
        """
        rewriting.check_graph(graph, _NAME)
        kept = rewriting.kept_names(graph)
        quantized = rewriting.ops_of(graph, LEVELS.values())
        weights = [op for op in quantized if op.input("X")[0] in kept]
        scales: dict[str, Any] = {op.output("Out")[0]: op.output("OutScale")[0] for op in quantized}
        arrays = {op.input("X")[0]: rewriting.array_of(self._scope, op.input("X")[0]) for op in weights}
        for op in weights:
            scales[op.output("Out")[0]] = self._scale_of(op, arrays[op.input("X")[0]])
        marked = [op for op in rewriting.ops_of(graph, WITH_WEIGHT) if _is_marked(op)]
        parts = [_parts(op, scales) for op in marked]
        for op in weights:
            self._store(graph, op, arrays[op.input("X")[0]], scales[op.output("Out")[0]])
        for op in rewriting.ops_of(graph, (NUMBERS, CHANNEL_NUMBERS)):
            _bypass(graph, op)
        for op in weights:
            _bypass(graph, op)
        for op, (weight, activation) in zip(marked, parts):
            self._convert(graph, op, weight, activation)
        rewriting.remove_unused_variables(graph)
        graph.resolve_hazard()

    # ---- weights

    def _scale_of(self, op: IrOpNode, array: numpy.ndarray) -> Any:
        """A float, or an array with one scale for each channel. A scale of 0, of zeros only, becomes 1."""
        kind = op.op().type()
        if kind == LEVELS["channel_wise_abs_max"]:
            most = numpy.abs(array).reshape(len(array), -1).max(axis=1)
            return numpy.where(most > 0, most, 1).astype(array.dtype)
        if kind == LEVELS["abs_max"]:
            return float(numpy.abs(array).max()) or 1.0
        return float(rewriting.array_of(self._scope, op.output("OutScale")[0]).item()) or 1.0

    def _store(self, graph: IrGraph, op: IrOpNode, array: numpy.ndarray, scale: Any) -> None:
        """Stores the levels of a weight in place of its numbers, or in a new variable if others read the numbers."""
        node = next(rewriting.input_nodes(op))
        name = node.name()
        if len([reader for one in graph.all_var_nodes() if one.name() == name for reader in one.outputs]) > 1:
            own = rewriting.like(graph, node, name + ".levels", persistable=True)
            graph.update_input_link(node, own, op)
            name = own.name()
        wide = scale if isinstance(scale, float) else scale.reshape([-1] + [1] * (array.ndim - 1))
        most = rewriting.levels(self._weight_bits)
        rewriting.put(self._scope, name, numpy.round(numpy.clip(array, -wide, wide) / wide * most).astype(array.dtype),
                      self._place)

    # ---- results

    def _convert(self, graph: IrGraph, op: IrOpNode, weight: Any, activation: str) -> None:
        """Inserts the operator that multiplies a result by both scales."""
        out = rewriting.named(op.outputs, arguments_of(op.op(), 1)[0])
        readers = [reader for reader in out.outputs if reader.is_op()]
        made = rewriting.like(graph, out, out.name() + ".dequantized")
        scale = _variable(graph, activation)
        ranges = rewriting.levels(self._weight_bits), rewriting.levels(self._activation_bits)
        if isinstance(weight, float):
            rewriting.insert(graph, NUMBERS, {"max_range": ranges[0] * ranges[1] / weight},
                             {"X": out, "Scale": scale}, {"Out": made})
        else:
            own = rewriting.state(graph, self._scope, self._place, unique_name.generate("channel_scale"), weight,
                                  out.dtype())
            rewriting.insert(graph, CHANNEL_NUMBERS, {"quant_bits": [self._weight_bits, self._activation_bits]},
                             {"X": out, "Scales": [own, scale]}, {"Out": made})
        for reader in readers:
            graph.update_input_link(out, made, reader)


def _is_marked(op: IrOpNode) -> bool:
    desc = op.op()
    return desc.has_attr("quantization_type") and desc.attr("quantization_type") == "qat_with_weight"


def _parts(op: IrOpNode, scales: dict[str, Any]) -> tuple[Any, str]:
    """The scale of the weight, and the name of the scale of the activation, of one operator."""
    found = [scales.get(name.replace(".quantized.dequantized", ".quantized")) for name in arguments_of(op.op(), 0)]
    names = [one for one in found if isinstance(one, str)]
    weights = [one for one in found if one is not None and not isinstance(one, str)]
    if len(names) != 1 or len(weights) != 1:
        raise InvalidArgument("%s: %s must have one quantized activation and one quantized weight, got %s" % (
            _NAME, op.op().type(), ", ".join(arguments_of(op.op(), 0))))
    return weights[0], names[0]


def _variable(graph: IrGraph, name: str) -> IrVarNode:
    """The last value of a variable: the one that an operator writes."""
    nodes = sorted((node for node in graph.all_var_nodes() if node.name() == name), key=lambda node: node.id())
    return nodes[-1]


def _bypass(graph: IrGraph, op: IrOpNode) -> None:
    """Removes an operator whose readers get its input instead."""
    source = rewriting.named(op.inputs, op.input("X")[0])
    made = rewriting.named(op.outputs, op.output("Out")[0])
    for reader in list(made.outputs):
        graph.update_input_link(made, source, reader)
    graph.safe_remove_nodes({op, made})
