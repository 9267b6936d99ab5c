"""ConvertToInt8Pass and TransformForMobilePass: smaller files, and the names of the operators of Paddle Lite."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from ....errors import InvalidArgument
from ....framework.dtype import VarType
from ....framework.ir_graph import IrGraph
from . import rewriting
from .tables import CHANNEL_NUMBERS, LEVELS, NUMBERS, ROUNDS, WITH_WEIGHT

__all__ = ["ConvertToInt8Pass", "TransformForMobilePass"]


class ConvertToInt8Pass:
    """Stores the weights of a frozen graph as int8, in variables with the suffix ``.int8``.

    Args:
        scope (Scope): scope of the weights.
        place (Place): place of the new weights.
        quantizable_op_type (list of str, optional): ignored: the operators with levels as weights are treated.

    Raises:
        AssertionError: ``scope`` or ``place`` is None.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> from anabranch.fluid.contrib.slim.quantization import ConvertToInt8Pass
        >>> graph = fluid.framework.IrGraph(fluid.core.Graph(fluid.Program().desc), for_test=True)
        >>> ConvertToInt8Pass(fluid.global_scope(), fluid.CPUPlace()).apply(graph)  # a program without operators
    """

    def __init__(self, scope: Any, place: Any, quantizable_op_type: Sequence[str] | None = None) -> None:
        rewriting.check_given(scope, "scope", "ConvertToInt8Pass")
        rewriting.check_given(place, "place", "ConvertToInt8Pass")
        self._scope, self._place = scope, place

    def apply(self, graph: IrGraph) -> None:
        """Rewrites a graph.

        Args:
            graph (IrGraph): graph that :class:`QuantizationFreezePass` has rewritten.

        Raises:
            AssertionError: ``graph`` is not an IrGraph.
            ValueError: a weight is not a level of 8 bits.
        """
        rewriting.check_graph(graph, "ConvertToInt8Pass")
        kept = rewriting.kept_names(graph)
        marked = [op for op in rewriting.ops_of(graph, WITH_WEIGHT) if op.op().has_attr("quantization_type")]
        arrays = {name: self._levels(name) for op in marked for name in op.input_arg_names() if name in kept}
        made: dict[str, Any] = {}
        for op in marked:
            for node in list(rewriting.input_nodes(op)):
                name = node.name()
                if name not in arrays:
                    continue
                if name not in made:
                    rewriting.put(self._scope, name + ".int8", arrays[name], self._place)
                    made[name] = graph.create_persistable_node(name + ".int8", node.type(), node.shape(), VarType.INT8)
                graph.update_input_link(node, made[name], op)
        rewriting.remove_unused_variables(graph)
        graph.resolve_hazard()

    def _levels(self, name: str) -> numpy.ndarray:
        array = rewriting.array_of(self._scope, name)
        if (numpy.round(array) != array).any() or (numpy.abs(array) > rewriting.levels(8)).any():
            raise InvalidArgument("ConvertToInt8Pass: %s must hold levels from -127 to 127: apply "
                                  "QuantizationFreezePass with weight_bits of at most 8 first" % name)
        return array.astype("int8")


class TransformForMobilePass:
    """Renames the operators of a frozen graph to ``quantize`` and ``dequantize``, which Paddle Lite expects. The result
    is a file format: these operators do not run here.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> from anabranch.fluid.contrib.slim.quantization import TransformForMobilePass
        >>> graph = fluid.framework.IrGraph(fluid.core.Graph(fluid.Program().desc), for_test=True)
        >>> TransformForMobilePass().apply(graph)  # a program without operators
    """

    def apply(self, graph: IrGraph) -> None:
        """Rewrites a graph.

        Args:
            graph (IrGraph): graph that :class:`ConvertToInt8Pass` has rewritten.

        Raises:
            AssertionError: ``graph`` is not an IrGraph.
        """
        rewriting.check_graph(graph, "TransformForMobilePass")
        for types, name in (((*LEVELS.values(), ROUNDS), "quantize"), ((NUMBERS, CHANNEL_NUMBERS), "dequantize")):
            for op in rewriting.ops_of(graph, types):
                op.set_type(name)
                made = graph.create_op_node_from_desc(op.op())
                for node in op.inputs:
                    graph.link_to(node, made)
                for node in op.outputs:
                    graph.link_to(made, node)
                graph.safe_remove_nodes(op)
        graph.resolve_hazard()
