"""``fluid.framework.IrGraph``: a program as a graph, with the methods that scripts use to rewrite it."""
from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import Any

from ... import _core
from ..errors import InvalidType, Violated, require
from . import graph_walks
from .dtype import VarType, convert_np_dtype_to_dtype_
from .graph_nodes import Graph, Node, join
from .ir_nodes import IrNode, IrOpNode, IrVarNode, set_attribute
from .program import Program

__all__ = ["IrGraph"]


class IrGraph:
    """A program's global block as a graph of operators and variables that a script can rewrite.

    Args:
        graph (core.Graph): graph of the program.
        for_test (bool): whether the program is one for evaluation, for passes that ask ``is_test``. Default False.

    Raises:
        AssertionError: ``graph`` is not a core.Graph.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> main = fluid.Program()
        >>> with fluid.program_guard(main):
        ...     y = fluid.layers.relu(fluid.layers.scale(fluid.data("x", [2], "float32"), 2.0))
        >>> graph = fluid.framework.IrGraph(fluid.core.Graph(main.desc), for_test=True)
        >>> [node.name() for node in graph.topology_sort()]
        ['scale', 'relu']
        >>> [op.type for op in graph.to_program().global_block().ops]
        ['scale', 'relu']
    """

    def __init__(self, graph: Graph, for_test: bool = False) -> None:
        require(isinstance(graph, Graph), "IrGraph: graph must be a core.Graph, got %s" % type(graph).__name__)
        self.graph = graph
        self._for_test = for_test

    def clone(self) -> IrGraph:
        """IrGraph: a copy, which can be changed by itself."""
        return IrGraph(self.graph.clone(), self._for_test)

    def is_test(self) -> bool:
        """bool: ``for_test``."""
        return self._for_test

    # ---- nodes

    def all_nodes(self) -> set[IrNode]:
        """set of IrNode: all nodes."""
        return {IrNode(node) for node in self.graph.nodes()}

    def all_var_nodes(self) -> set[IrVarNode]:
        """set of IrVarNode: the variables, a node for each value, and control variables."""
        return {IrVarNode(node) for node in self.graph.nodes() if node.is_var()}

    def all_persistable_nodes(self) -> set[IrVarNode]:
        """set of IrVarNode: the persistable variables."""
        return {IrVarNode(node) for node in self.graph.nodes() if node.var() is not None and node.var().persistable()}

    def all_op_nodes(self) -> set[IrOpNode]:
        """set of IrOpNode: the operators."""
        return {IrOpNode(node) for node in self.graph.nodes() if node.is_op()}

    def _find_node_by_name(self, nodes: Collection[IrNode], node_name: str) -> IrNode:
        """The last of some nodes with a name. Raises AssertionError where there is none."""
        found = [node for node in nodes if node.name() == node_name]
        require(found, "IrGraph: none of the nodes has the name %r" % (node_name,))
        return found[-1]

    # ---- new nodes

    def create_control_dep_var(self) -> IrVarNode:
        """IrVarNode: a new node that only gives an order."""
        return IrVarNode(self.graph.create_control_dep_var())

    def create_var_node(self, name: str, var_type: Any, shape: Any, var_dtype: Any) -> IrVarNode:
        """A node for a variable.

        Args:
            name (str): name of the variable, which is created if the program does not have it.
            var_type (VarType): its kind.
            shape (list of int): its shape.
            var_dtype (VarType or str): its dtype.

        Returns:
            IrVarNode: the node, without edges.
        """
        return self._create(name, var_type, shape, var_dtype, False)

    def create_persistable_node(self, name: str, var_type: Any, shape: Any, var_dtype: Any) -> IrVarNode:
        """Like ``create_var_node``, for a persistable variable."""
        return self._create(name, var_type, shape, var_dtype, True)

    def _create(self, name: str, kind: Any, shape: Any, dtype: Any, persistable: bool) -> IrVarNode:
        if not isinstance(name, str) or not name:
            raise InvalidType("IrGraph: the name of a variable must be a nonempty str, got %r" % (name,))
        made = _core.Program().block(0).var(name)
        made.set_type(VarType(kind))
        made.set_shape([int(extent) for extent in shape])
        made.set_dtype(dtype if isinstance(dtype, VarType) else convert_np_dtype_to_dtype_(dtype))
        made.set_persistable(persistable)
        return IrVarNode(self.graph.create_var_node(made))

    def create_var_node_from_desc(self, var_desc: Any) -> IrVarNode:
        """IrVarNode: a node for a variable with a copy of this VarDesc."""
        return IrVarNode(self.graph.create_var_node(var_desc))

    def create_op_node(self, op_type: str, attrs: Mapping[str, Any], inputs: Mapping[str, Any],
                       outputs: Mapping[str, Any]) -> IrOpNode:
        """A node for an operator. ``link_to`` connects it with the nodes of its variables.

        Args:
            op_type (str): type of the operator.
            attrs (dict): its attributes.
            inputs (dict): slot to a node or a list of nodes.
            outputs (dict): slot to a node or a list of nodes.

        Returns:
            IrOpNode: the node, without edges.

        Raises:
            TypeError: what a slot holds is not a node.
        """
        made = _core.Program().block(0).append_op()
        made.set_type(op_type)
        for name, value in attrs.items():
            set_attribute(made, name, value)
        for slots, put, of in ((inputs, made.set_input, "inputs"), (outputs, made.set_output, "outputs")):
            for slot, nodes in (slots or {}).items():
                put(slot, [_name_of(node, op_type, of) for node in (
                    nodes if isinstance(nodes, (list, tuple)) else [nodes])])
        return IrOpNode(self.graph.create_op_node(made))

    def create_op_node_from_desc(self, op_desc: Any) -> IrOpNode:
        """IrOpNode: a node, without edges, for an operator with a copy of this OpDesc."""
        return IrOpNode(self.graph.create_op_node(op_desc))

    # ---- edges

    def link_to(self, node_in: IrNode, node_out: IrNode) -> None:
        """Adds an edge from ``node_in`` to ``node_out``."""
        self._require_own(node_in, node_out)
        join(node_in.node, node_out.node)

    def update_input_link(self, old_input_node: IrNode, new_input_node: IrNode, op_node: IrOpNode) -> None:
        """Lets an operator read one variable instead of another."""
        self._require_own(old_input_node, new_input_node, op_node)
        old_input_node.remove_output(op_node)
        op_node.remove_input(old_input_node)
        join(new_input_node.node, op_node.node)
        op_node.rename_input(old_input_node.name(), new_input_node.name())

    def update_output_link(self, old_output_node: IrNode, new_output_node: IrNode, op_node: IrOpNode) -> None:
        """Lets an operator write one variable instead of another."""
        self._require_own(old_output_node, new_output_node, op_node)
        old_output_node.remove_input(op_node)
        op_node.remove_output(old_output_node)
        join(op_node.node, new_output_node.node)
        op_node.rename_output(old_output_node.name(), new_output_node.name())

    def _require_own(self, *nodes: IrNode) -> None:
        for node in nodes:
            if self.graph.retrieve_node(node.id()) is not node.node:
                raise Violated("IrGraph: node %s does not belong to this graph" % node.name())

    def safe_remove_nodes(self, remove_nodes: Any) -> None:
        """Removes a node, or several, together with their edges.

        Raises:
            TypeError: a node is not an IrNode.
            LookupError: the graph does not have such a node.
        """
        nodes = remove_nodes if isinstance(remove_nodes, (set, frozenset, list, tuple)) else [remove_nodes]
        for node in nodes:
            if not isinstance(node, IrNode):
                raise InvalidType("IrGraph.safe_remove_nodes: a node must be an IrNode, got %s" % type(node).__name__)
        graph_walks.graph_safe_remove_nodes(self.graph, {node.node for node in nodes})

    def resolve_hazard(self) -> None:
        """Adds control variables that keep the values of a variable that is written several times in order."""
        values: dict[str, list[Node]] = {}
        for node in graph_walks.topology_sort(self.graph):
            for var in [*node.inputs, *node.outputs]:
                known = values.setdefault(var.name(), [])
                if not var.is_ctrl_var() and var not in known:
                    known.append(var)
        self.graph.resolve_hazard(values)

    # ---- walks

    def has_circle(self) -> bool:
        """bool: whether operators read each other's outputs in a circle."""
        return graph_walks.has_circle(self.graph)

    def graph_num(self) -> int:
        """int: number of parts of the graph that no edge connects."""
        return graph_walks.graph_num(self.graph)

    def topology_sort(self) -> list[IrNode]:
        """list of IrNode: the operators, each after those whose outputs it reads.

        Raises:
            ValueError: operators read each other's outputs in a circle.
        """
        return [IrNode(node) for node in graph_walks.topology_sort(self.graph)]

    def build_adjacency_list(self) -> dict[IrNode, set[IrNode]]:
        """dict: the operators, each with the operators whose outputs it reads."""
        return {IrNode(op): {IrNode(writer) for writer in writers}
                for op, writers in graph_walks.build_adjacency_list(self.graph).items()}

    # ---- results

    def draw(self, save_path: str, name: str, marked_nodes: Collection[IrNode] | None = None,
             remove_ctr_var: bool = True) -> None:
        """Writes the graph as ``name.dot``, and as ``name.pdf`` where Graphviz is installed.

        Args:
            save_path (str): folder, which is created if it does not exist.
            name (str): name of the file without its suffix.
            marked_nodes (set of IrNode, optional): nodes to color. Default None.
            remove_ctr_var (bool): whether control variables are left out. They are removed from the graph, too, as in
                Fluid 1.8.5. Default True.
        """
        from .graph_pictures import draw_graph
        if remove_ctr_var:
            self.safe_remove_nodes({node for node in self.all_var_nodes() if node.is_ctrl_var()})
        draw_graph(self.graph, os.path.join(save_path, name), {node.node for node in marked_nodes or ()})

    def to_program(self) -> Program:
        """Program: one with the operators and variables of the graph. Blocks of loops and branches are kept.

        Raises:
            ValueError: operators read each other's outputs in a circle.
        """
        return Program._construct_from_desc(graph_walks.program_of(self.graph)[0])

    def _update_desc_attr(self, desc: Any, name: str, val: Any) -> None:
        set_attribute(desc, name, val)


def _name_of(node: Any, op_type: str, of: str) -> str:
    if not isinstance(node, IrNode):
        raise InvalidType("IrGraph.create_op_node: the %s of %s must be nodes of variables, got %s"
                          % (of, op_type, type(node).__name__))
    return node.name()
