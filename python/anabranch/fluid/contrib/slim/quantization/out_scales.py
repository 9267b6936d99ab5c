"""The scales of results: measured while a program trains, then stored in the program for inference."""
from __future__ import annotations

from typing import Any

from .... import unique_name
from ....framework.dtype import VarType
from ....framework.ir_graph import IrGraph
from ....framework.ir_nodes import IrVarNode
from . import rewriting
from .tables import WITH_OUT_SCALE, arguments_of

__all__ = ["OutScaleForInferencePass", "OutScaleForTrainingPass"]

_SUFFIX = "@scale"


class OutScaleForTrainingPass:
    """Measures a moving average of max |x| of the results of operators, in variables with the suffix ``@scale``.

    Args:
        scope (Scope): scope that gets the averages.
        place (Place): place of the averages.
        moving_rate (float): decay of the average per step. Default 0.9.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> from anabranch.fluid.contrib.slim.quantization import OutScaleForTrainingPass
        >>> main = fluid.Program()
        >>> with fluid.program_guard(main):
        ...     y = fluid.layers.relu(fluid.data("x", [2], "float32"))
        >>> graph = fluid.framework.IrGraph(fluid.core.Graph(main.desc), for_test=False)
        >>> OutScaleForTrainingPass(fluid.global_scope(), fluid.CPUPlace()).apply(graph)
        >>> [op.type for op in graph.to_program().global_block().ops]
        ['relu', 'moving_average_abs_max_scale']
    """

    def __init__(self, scope: Any = None, place: Any = None, moving_rate: float = 0.9) -> None:
        self._scope, self._place, self._rate = scope, place, moving_rate

    def apply(self, graph: IrGraph) -> None:
        """Adds the operators that measure at the end of a graph.

        Args:
            graph (IrGraph): graph of a program for training, or with ``for_test`` one for evaluation.

        Raises:
            AssertionError: ``graph`` is not an IrGraph, or ``scope`` or ``place`` is missing.
        """
        rewriting.check_graph(graph, "OutScaleForTrainingPass")
        rewriting.check_given(self._scope, "scope", "OutScaleForTrainingPass")
        rewriting.check_given(self._place, "place", "OutScaleForTrainingPass")
        for op in rewriting.ops_of(graph, WITH_OUT_SCALE):
            for name in arguments_of(op.op(), 1):
                node = rewriting.named(op.outputs, name)
                if node.dtype() in (VarType.FP32, VarType.FP64):
                    self._measure(graph, node)
        graph.resolve_hazard()

    def _measure(self, graph: IrGraph, node: IrVarNode) -> None:
        inputs = {"X": node}
        outputs = {"Out": graph.create_var_node_from_desc(node.var()),
                   "OutScale": rewriting.like(graph, node, node.name() + _SUFFIX, persistable=True, shape=[1])}
        if not graph.is_test():
            for slot, name in (("State", "scale_state@"), ("Accum", "scale_accum@")):
                own = rewriting.state(graph, self._scope, self._place, unique_name.generate(name), 1.0, node.dtype())
                inputs["In" + slot], outputs["Out" + slot] = own, graph.create_var_node_from_desc(own.var())
        rewriting.insert(graph, "moving_average_abs_max_scale", {"moving_rate": self._rate, "is_test": graph.is_test()},
                         inputs, outputs)


class OutScaleForInferencePass:
    """Stores the measured scales as the attribute ``out_threshold`` of the operators.

    Args:
        scope (Scope): scope of the averages that :class:`OutScaleForTrainingPass` has added.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> from anabranch.fluid.contrib.slim.quantization import OutScaleForInferencePass
        >>> graph = fluid.framework.IrGraph(fluid.core.Graph(fluid.Program().desc), for_test=True)
        >>> OutScaleForInferencePass(fluid.global_scope()).apply(graph)  # a program without operators
    """

    def __init__(self, scope: Any = None) -> None:
        self._scope = scope

    def apply(self, graph: IrGraph) -> None:
        """Sets the attributes of a graph for evaluation.

        Args:
            graph (IrGraph): graph of the same program.

        Raises:
            AssertionError: ``graph`` is not an IrGraph, or ``scope`` is missing.
            LookupError: the scope has no average of a result.
        """
        rewriting.check_graph(graph, "OutScaleForInferencePass")
        rewriting.check_given(self._scope, "scope", "OutScaleForInferencePass")
        found = {}
        for op in rewriting.ops_of(graph, WITH_OUT_SCALE):
            for name in arguments_of(op.op(), 1):
                if rewriting.named(op.outputs, name).dtype() in (VarType.FP32, VarType.FP64):
                    found[op] = float(rewriting.array_of(self._scope, name + _SUFFIX).item())
        for op, scale in found.items():
            op.set_attr("out_threshold", scale)
        graph.resolve_hazard()
