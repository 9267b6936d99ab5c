"""The graph passes of Fluid 1.8.5, which scripts add by their names."""
from __future__ import annotations

from typing import Any

from .. import _core
from .errors import InvalidType, InvalidValue, Unsupported
from .framework.context import OpRole

#: Passes whose work the engine's own passes do, or that have no counterpart: they leave all results as they are.
_SAME_RESULTS = frozenset("""
add_reader_dependency_pass all_reduce_deps_pass all_reduce_mode_multi_devices_pass async_multi_devices_pass
attention_lstm_fuse_pass backward_optimizer_op_deps_pass buffer_shared_cross_op_memory_reuse_pass
buffer_shared_inplace_pass coalesce_grad_tensor_pass conv_affine_channel_fuse_pass conv_bias_mkldnn_fuse_pass
conv_elementwise_add2_act_fuse_pass conv_elementwise_add_act_fuse_pass conv_elementwise_add_fuse_pass
conv_elementwise_add_mkldnn_fuse_pass conv_relu_mkldnn_fuse_pass depthwise_conv_mkldnn_pass dist_multi_devices_pass
eager_deletion_pass embedding_fc_lstm_fuse_pass fc_fuse_pass fc_gru_fuse_pass fc_lstm_fuse_pass fuse_adam_op_pass
fuse_all_reduce_op_pass fuse_bn_act_pass fuse_elewise_add_act_pass fuse_momentum_op_pass
fuse_relu_depthwise_conv_pass fuse_sgd_op_pass identity_scale_op_clean_pass lock_free_optimize_pass
mkldnn_placement_pass modify_op_lock_and_record_event_pass mul_gru_fuse_pass mul_lstm_fuse_pass
multi_devices_check_pass multi_devices_print_pass multihead_matmul_fuse_pass reduce_mode_multi_devices_pass
reference_count_pass repeated_fc_relu_fuse_pass runtime_context_cache_pass seq_concat_fc_fuse_pass
seqconv_eltadd_relu_fuse_pass seqpool_concat_fuse_pass seqpool_cvm_concat_fuse_pass sequential_execution_pass
shuffle_channel_detect_pass simplify_with_basic_ops_pass skip_layernorm_fuse_pass squared_mat_sub_fuse_pass
transpose_flatten_concat_fuse_pass""".split())

#: Passes that change results, and what to use instead.
_INSTEAD = {
    **dict.fromkeys(("conv_bn_fuse_pass", "conv_eltwiseadd_bn_fuse_pass", "conv_transpose_bn_fuse_pass",
                     "conv_eltwiseadd_affine_channel_fuse_pass"),
                    "create_paddle_predictor fuses batch norm into convolutions of inference models"),
    **dict.fromkeys(("cpu_quantize_pass", "cpu_quantize_placement_pass", "cpu_quantize_squash_pass",
                     "delete_quant_dequant_op_pass", "quant_conv2d_dequant_fuse_pass"),
                    "quantized kernels are not available: run the model in float32"),
    "graph_to_program_pass": "IrGraph.to_program() makes a program of a graph",
    "sync_batch_norm_pass": "set BuildStrategy.sync_batch_norm to True",
}
_SPECIAL = ("graph_viz_pass", "is_test_pass", "multi_batch_merge_pass")


class OldPass:
    """A pass with the name of Fluid 1.8.5.

    Args:
        name (str): its name.

    Raises:
        NotImplementedError: the pass would change results in a way that is not available; the error says what to use.
        ValueError: Fluid 1.8.5 has no pass of this name.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> merge = fluid.core.get_pass("multi_batch_merge_pass")
        >>> merge.set("num_repeats", 2)
        >>> merge.type(), merge.has("num_repeats")
        ('multi_batch_merge_pass', True)
    """

    def __init__(self, name: str) -> None:
        if name in _INSTEAD:
            raise Unsupported("pass %s is not available: %s" % (name, _INSTEAD[name]))
        if name not in _SAME_RESULTS and name not in _SPECIAL:
            raise InvalidValue("there is no pass %r; the engine's are %s" % (
                name, ", ".join(own for own, *_ in _core.pass_list())))
        self._name = name
        self._attributes: dict[str, Any] = {}

    def type(self) -> str:
        """str: the name."""
        return self._name

    def has(self, name: str) -> bool:
        """bool: whether an attribute has been set."""
        return name in self._attributes

    def set(self, name: str, value: Any) -> None:
        """Sets an attribute. ``num_repeats`` must be an int of at least 1."""
        if name == "num_repeats" and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise InvalidValue("multi_batch_merge_pass: num_repeats must be an int of at least 1, got %r" % (value,))
        self._attributes[name] = value

    set_not_owned = set

    def apply(self, graph: Any) -> Any:
        """Applies the pass to a graph. Passes whose work the engine does itself leave the graph as it is.

        Args:
            graph (core.Graph): graph to change.

        Returns:
            core.Graph: the graph.

        Raises:
            TypeError: ``graph`` is not a core.Graph.
            ValueError: ``graph_viz_path`` is not set.
            NotImplementedError: the pass is ``multi_batch_merge_pass``.
        """
        from .framework.graph_nodes import Graph
        if not isinstance(graph, Graph):
            raise InvalidType("pass %s: graph must be a core.Graph, got %s" % (self._name, type(graph).__name__))
        if self._name == "multi_batch_merge_pass":
            raise Unsupported("pass %s cannot be applied to a graph: add it to the passes of a BuildStrategy"
                              % self._name)
        if self._name == "is_test_pass":
            _set_is_test(graph)
        if self._name == "graph_viz_pass":
            _draw(graph, self._attributes.get("graph_viz_path"))
        return graph

    def for_strategy(self) -> OldPass:
        """OldPass: the pass itself. Raises NotImplementedError if only graphs can take it."""
        if self._name == "is_test_pass":
            raise Unsupported("pass is_test_pass is not available in a BuildStrategy: use Program.clone(for_test=True)")
        return self

    def check(self, program: Any) -> None:
        """Raises NotImplementedError where a program that runs with this pass would give other results here."""
        if self._name != "multi_batch_merge_pass" or self._attributes.get("num_repeats", 1) == 1:
            return
        for op in program.global_block().ops:
            role = op.attr("op_role") if op.has_attr("op_role") else 0
            if role & ~OpRole.Loss not in (OpRole.Forward, OpRole.Backward):
                continue
            why = _differs(op, program.global_block())
            if why:
                raise Unsupported("multi_batch_merge_pass: %s %s, so that repeating a batch gives another result: feed "
                                  "batches that are num_repeats times as large" % (op.type, why))

    def __repr__(self) -> str:
        return "OldPass(%r)" % self._name


def _set_is_test(graph: Any) -> None:
    """Sets ``is_test`` of the operators that have it."""
    for node in graph.nodes():
        desc = node.op()
        if desc is not None and desc.type() in _core.op_types() and any(
                attribute["name"] == "is_test" for attribute in _core.op_info(desc.type())["attrs"]):
            desc._set_attr("is_test", True)


def _draw(graph: Any, path: Any) -> None:
    """Writes the graph as DOT."""
    if not path:
        raise InvalidValue("graph_viz_pass: set graph_viz_path to the file to write")
    from .framework.graph_pictures import write_dot
    write_dot(graph, path)


def _differs(op: Any, block: Any) -> str:
    """str: why a repetition of an operator on the same batch gives another result; "" if it gives the same."""
    if op.type == "read":
        return "reads the next batch"
    if "random" in str(_core.op_info(op.type)["effects"]):
        return "draws random numbers"
    for name in op.output_arg_names:
        var = block._find_var_recursive(name)
        if var is not None and var.persistable:
            return "changes %s" % name
    return ""
