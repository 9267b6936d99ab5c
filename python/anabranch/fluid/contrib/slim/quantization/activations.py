"""AddQuantDequantPass: inputs of operators without a weight are rounded, too."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .... import unique_name
from ....framework.ir_graph import IrGraph
from ....framework.ir_nodes import IrVarNode
from . import rewriting
from .tables import ACTIVATIONS, ROUNDS, WITHOUT_WEIGHT

__all__ = ["AddQuantDequantPass"]

_NAME = "AddQuantDequantPass"


class AddQuantDequantPass:
    """Rounds the inputs of operators without a weight to numbers that a few bits can represent, by a moving average of
    max |x|.

    Args:
        scope (Scope): scope that gets the states of the scales.
        place (Place): place of these states.
        moving_rate (float): decay of the average per step. Default 0.9.
        quant_bits (int): bits of a number, from 2 to 16. Default 8.
        skip_pattern (str or list of str): part of the names of scopes to skip. Default ``["skip_quant"]``.
        quantizable_op_type (list of str): types of operators. Default ``elementwise_add`` and ``pool2d``.
        is_full_quantized (bool): all types that the pass supports, in place of ``quantizable_op_type``. Default False.

    Raises:
        AssertionError: a type of operator or a number of bits is not supported.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> from anabranch.fluid.contrib.slim.quantization import AddQuantDequantPass
        >>> main = fluid.Program()
        >>> with fluid.program_guard(main):
        ...     y = fluid.layers.pool2d(fluid.data("x", [None, 1, 4, 4], "float32"), 2, "avg", 2)
        >>> graph = fluid.framework.IrGraph(fluid.core.Graph(main.desc), for_test=False)
        >>> AddQuantDequantPass(fluid.global_scope(), fluid.CPUPlace()).apply(graph)
        >>> [op.type for op in graph.to_program().global_block().ops]
        ['fake_quantize_dequantize_moving_average_abs_max', 'pool2d']
    """

    _supported_quantizable_op_type = list(WITHOUT_WEIGHT)
    _activation_type = list(ACTIVATIONS)

    def __init__(self, scope: Any = None, place: Any = None, moving_rate: float = 0.9, quant_bits: int = 8,
                 skip_pattern: Sequence[str] | str = ("skip_quant",),
                 quantizable_op_type: Sequence[str] = ("elementwise_add", "pool2d"),
                 is_full_quantized: bool = False) -> None:
        rewriting.check_types(quantizable_op_type, WITHOUT_WEIGHT, _NAME)
        rewriting.check_bits(quant_bits, "quant_bits", _NAME)
        self._scope, self._place, self._rate, self._bits = scope, place, moving_rate, quant_bits
        self._skip = skip_pattern
        self._types = WITHOUT_WEIGHT if is_full_quantized else tuple(quantizable_op_type)

    def apply(self, graph: IrGraph) -> None:
        """Rewrites a graph.

        Args:
            graph (IrGraph): graph of a program for training, or with ``for_test`` one for evaluation.

        Raises:
            AssertionError: ``graph`` is not an IrGraph, or ``scope`` or ``place`` is missing.
        """
        rewriting.check_graph(graph, _NAME)
        rewriting.check_given(self._scope, "scope", _NAME)
        rewriting.check_given(self._place, "place", _NAME)
        kept = rewriting.kept_names(graph)
        gradients = rewriting.ops_of(graph, [kind + "_grad" for kind in self._types])
        rounded: dict[str, IrVarNode] = {}
        for op in rewriting.ops_of(graph, self._types):
            if rewriting.is_skipped(op, self._skip) or not rewriting.only_activations(op, kept):
                continue
            op.set_attr("quantization_type", "qat_without_weight")
            op.set_attr("activation_bits", self._bits)
            for node in list(rewriting.input_nodes(op)):
                if node.name() not in rounded:
                    rounded[node.name()] = self._round(graph, node)
                graph.update_input_link(node, rounded[node.name()], op)
        rewriting.read_rounded(graph, gradients, rounded)

    def _round(self, graph: IrGraph, node: IrVarNode) -> IrVarNode:
        """The node of a variable's rounded value, with the operator that computes it."""
        made = rewriting.like(graph, node, node.name() + ".quant_dequant")
        before = rewriting.kept_scale(graph, self._scope, self._place, made.name() + ".scale", node)
        inputs = {"X": node, "InScale": before}
        outputs = {"Out": made, "OutScale": graph.create_var_node_from_desc(before.var())}
        if not graph.is_test():
            for slot, name in (("State", "state"), ("Accum", "accum")):
                own = rewriting.state(graph, self._scope, self._place, unique_name.generate("quant_dequant." + name),
                                      1.0, node.dtype())
                inputs["In" + slot], outputs["Out" + slot] = own, graph.create_var_node_from_desc(own.var())
        rewriting.insert(graph, ROUNDS, {"bit_length": self._bits, "moving_rate": self._rate,
                                         "is_test": graph.is_test()}, inputs, outputs)
        return made
