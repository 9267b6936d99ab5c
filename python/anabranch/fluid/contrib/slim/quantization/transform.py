"""QuantizationTransformPass: a program trains with weights and activations that are rounded to levels."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .... import unique_name
from ....errors import InvalidValue, Unsupported, require
from ....framework.dtype import VarType
from ....framework.ir_graph import IrGraph
from ....framework.ir_nodes import IrOpNode, IrVarNode
from . import rewriting
from .tables import BY_CHANNEL, CHANNEL_NUMBERS, LEVELS, NUMBERS, WITH_WEIGHT

__all__ = ["QuantizationTransformPass"]

_NAME = "QuantizationTransformPass"
_COUNTER = "@STEP_COUNTER@"


class QuantizationTransformPass:
    """Rounds the weights and the activations of operators to levels, in the forward and in the backward pass.

    Each input ``x`` of an operator of ``quantizable_op_type`` is replaced by
    ``round(clip(x, -s, s) / s * n) * s / n``, where ``s`` is its scale and ``n = 2 ** (bits - 1) - 1``. The gradient
    of ``x`` is the gradient of the rounded value. An operator without a persistable input, and one whose name scope
    contains a pattern of ``skip_pattern``, stays as it is.

    Args:
        scope (Scope): scope of the parameters, which also gets the states of the scales.
        place (Place): place of these states.
        weight_bits (int): bits of a weight, from 2 to 16. Default 8.
        activation_bits (int): bits of an activation, from 2 to 16. Default 8.
        activation_quantize_type (str): how the scale of an activation is found: ``"abs_max"`` (max |x| of the batch),
            ``"range_abs_max"`` (the largest of the last ``window_size`` steps) or ``"moving_average_abs_max"``.
            Default ``"abs_max"``.
        weight_quantize_type (str): the same for weights, or ``"channel_wise_abs_max"``: a scale for each output
            channel of a convolution. Default ``"abs_max"``.
        window_size (int): number of steps of ``"range_abs_max"``. Default 10000.
        moving_rate (float): decay of ``"moving_average_abs_max"`` per step. Default 0.9.
        skip_pattern (str or list of str): part of the names of scopes to skip. Default ``["skip_quant"]``.
        quantizable_op_type (list of str): ``conv2d``, ``depthwise_conv2d``, ``mul``, ``matmul``. Default: the first
            three.
        weight_quantize_func (callable, optional): not supported. Default None.
        act_quantize_func (callable, optional): not supported. Default None.
        weight_preprocess_func (callable, optional): not supported. Default None.
        act_preprocess_func (callable, optional): not supported. Default None.
        optimizer_func (callable, optional): not supported. Default None.
        executor (Executor, optional): ignored: it would run the functions. Default None.

    Raises:
        ValueError: there is no such kind of scale.
        AssertionError: a type of operator or a number of bits is not supported.
        NotImplementedError: a function is given.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> from anabranch.fluid.contrib.slim.quantization import QuantizationTransformPass
        >>> main = fluid.Program()
        >>> with fluid.program_guard(main, fluid.Program()):
        ...     y = fluid.layers.fc(fluid.data("x", [None, 4], "float32"), 2, bias_attr=False)
        >>> graph = fluid.framework.IrGraph(fluid.core.Graph(main.desc), for_test=False)
        >>> QuantizationTransformPass(fluid.global_scope(), fluid.CPUPlace()).apply(graph)
        >>> [op.type for op in graph.to_program().global_block().ops][:2]
        ['fake_quantize_abs_max', 'fake_dequantize_max_abs']
    """

    _supported_quantizable_op_type = list(WITH_WEIGHT)

    def __init__(self, scope: Any = None, place: Any = None, weight_bits: int = 8, activation_bits: int = 8,
                 activation_quantize_type: str = "abs_max", weight_quantize_type: str = "abs_max",
                 window_size: int = 10000, moving_rate: float = 0.9,
                 skip_pattern: Sequence[str] | str = ("skip_quant",),
                 quantizable_op_type: Sequence[str] = ("conv2d", "depthwise_conv2d", "mul"),
                 weight_quantize_func: Callable[..., Any] | None = None,
                 act_quantize_func: Callable[..., Any] | None = None,
                 weight_preprocess_func: Callable[..., Any] | None = None,
                 act_preprocess_func: Callable[..., Any] | None = None,
                 optimizer_func: Callable[..., Any] | None = None, executor: Any = None) -> None:
        for name, function in (("weight_quantize_func", weight_quantize_func), ("act_quantize_func", act_quantize_func),
                               ("weight_preprocess_func", weight_preprocess_func),
                               ("act_preprocess_func", act_preprocess_func), ("optimizer_func", optimizer_func)):
            if function is not None:
                raise Unsupported("%s: %s is not supported: build the function into the program" % (_NAME, name))
        require(activation_quantize_type != "channel_wise_abs_max",
                "%s: activation_quantize_type must not be 'channel_wise_abs_max', which is for weights" % _NAME)
        for name, kind in (("activation_quantize_type", activation_quantize_type),
                           ("weight_quantize_type", weight_quantize_type)):
            if kind not in LEVELS:
                raise InvalidValue("%s: %s must be one of %s, got %r" % (_NAME, name, ", ".join(LEVELS), kind))
        rewriting.check_bits(weight_bits, "weight_bits", _NAME)
        rewriting.check_bits(activation_bits, "activation_bits", _NAME)
        rewriting.check_types(quantizable_op_type, WITH_WEIGHT, _NAME)
        self._scope, self._place, self._skip = scope, place, skip_pattern
        self._kinds = (activation_quantize_type, weight_quantize_type)
        self._bits = (activation_bits, weight_bits)
        self._window, self._rate = window_size, moving_rate
        self._types = tuple(quantizable_op_type)

    def apply(self, graph: IrGraph) -> None:
        """Rewrites a graph.

        Args:
            graph (IrGraph): graph of a program for training, or with ``for_test`` one for evaluation, whose scales do
                not change.

        Raises:
            AssertionError: ``graph`` is not an IrGraph, or ``scope`` or ``place`` is missing.
        """
        rewriting.check_graph(graph, _NAME)
        if self._kinds != ("abs_max", "abs_max"):
            rewriting.check_given(self._scope, "scope", _NAME)
            rewriting.check_given(self._place, "place", _NAME)
        kept = rewriting.kept_names(graph)
        ops = rewriting.ops_of(graph, self._types)
        gradients = rewriting.ops_of(graph, [kind + "_grad" for kind in self._types])
        chosen = [op for op in ops if not rewriting.is_skipped(op, self._skip)
                  and not rewriting.only_activations(op, kept)]
        if "range_abs_max" in self._kinds and chosen and not graph.is_test():
            self._count_steps(graph)
        rounded: dict[str, IrVarNode] = {}
        for op in chosen:
            op.set_attr("quantization_type", "qat_with_weight")
            for node in list(rewriting.input_nodes(op)):
                if node.name() not in rounded:
                    rounded[node.name()] = self._round(graph, node, op, node.name() in kept)
                graph.update_input_link(node, rounded[node.name()], op)
        rewriting.read_rounded(graph, gradients, rounded)

    # ---- one variable

    def _round(self, graph: IrGraph, node: IrVarNode, op: IrOpNode, is_weight: bool) -> IrVarNode:
        """The node of a variable's rounded value, with the operators that compute it."""
        kind, bits = self._kinds[is_weight], self._bits[is_weight]
        if kind == "channel_wise_abs_max" and op.name() not in BY_CHANNEL:
            kind = "abs_max"
        made = rewriting.like(graph, node, node.name() + ".quantized")
        scale = _MAKERS[kind](self, graph, node, made, bits)
        result = rewriting.like(graph, made, made.name() + ".dequantized")
        if kind == "channel_wise_abs_max":
            rewriting.insert(graph, CHANNEL_NUMBERS, {"quant_bits": [bits]}, {"X": made, "Scales": scale},
                             {"Out": result})
        else:
            rewriting.insert(graph, NUMBERS, {"max_range": float(rewriting.levels(bits))},
                             {"X": made, "Scale": scale}, {"Out": result})
        return result

    def _by_batch(self, graph: IrGraph, node: IrVarNode, made: IrVarNode, bits: int) -> IrVarNode:
        scale = rewriting.like(graph, node, node.name() + ".scale", shape=[1])
        rewriting.insert(graph, LEVELS["abs_max"], {"bit_length": bits}, {"X": node}, {"Out": made, "OutScale": scale})
        return scale

    def _by_channel(self, graph: IrGraph, node: IrVarNode, made: IrVarNode, bits: int) -> IrVarNode:
        scale = rewriting.like(graph, node, node.name() + ".scale", shape=[node.shape()[0]])
        rewriting.insert(graph, LEVELS["channel_wise_abs_max"], {"bit_length": bits}, {"X": node},
                         {"Out": made, "OutScale": scale})
        return scale

    def _by_window(self, graph: IrGraph, node: IrVarNode, made: IrVarNode, bits: int) -> IrVarNode:
        inputs, outputs, scale = self._scaled(graph, node, made)
        if not graph.is_test():
            outputs["OutScales"] = self._state(graph, unique_name.generate("scales"), [0.0] * self._window, node)
            inputs["Iter"] = self._counter
        rewriting.insert(graph, LEVELS["range_abs_max"], {
            "window_size": self._window, "bit_length": bits, "is_test": graph.is_test()}, inputs, outputs)
        return scale

    def _by_average(self, graph: IrGraph, node: IrVarNode, made: IrVarNode, bits: int) -> IrVarNode:
        inputs, outputs, scale = self._scaled(graph, node, made)
        if not graph.is_test():
            for slot, name in (("State", "state"), ("Accum", "accum")):
                inputs["In" + slot] = self._state(graph, unique_name.generate(name), 1.0, node)
                outputs["Out" + slot] = graph.create_var_node_from_desc(inputs["In" + slot].var())
        rewriting.insert(graph, LEVELS["moving_average_abs_max"], {
            "bit_length": bits, "moving_rate": self._rate, "is_test": graph.is_test()}, inputs, outputs)
        return scale

    def _scaled(self, graph: IrGraph, node: IrVarNode, made: IrVarNode) -> tuple[dict, dict, IrVarNode]:
        """Inputs, outputs and the new scale of an operator that keeps the scale of a variable."""
        before = rewriting.kept_scale(graph, self._scope, self._place, node.name() + ".scale", node)
        scale = graph.create_var_node_from_desc(before.var())
        return {"X": node, "InScale": before}, {"Out": made, "OutScale": scale}, scale

    def _state(self, graph: IrGraph, name: str, value: Any, node: IrVarNode) -> IrVarNode:
        return rewriting.state(graph, self._scope, self._place, name, value, node.dtype())

    def _count_steps(self, graph: IrGraph) -> None:
        """Lets the program count its steps, from 1."""
        before = rewriting.state(graph, self._scope, self._place, _COUNTER, 0, VarType.INT64)
        self._counter = graph.create_var_node_from_desc(before.var())
        rewriting.insert(graph, "increment", {"step": 1.0}, {"X": before}, {"Out": self._counter})


_MAKERS: dict[str, Callable[..., IrVarNode]] = {
    "abs_max": QuantizationTransformPass._by_batch, "channel_wise_abs_max": QuantizationTransformPass._by_channel,
    "range_abs_max": QuantizationTransformPass._by_window,
    "moving_average_abs_max": QuantizationTransformPass._by_average}
