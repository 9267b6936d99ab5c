"""``core.Graph`` and ``core.Node``: the operators and variables of a program's global block as a graph that scripts
rewrite.

A variable has a node for each value that it takes: a new one whenever an operator writes it. Variables that only give
an order (control variables) keep a write after the reads of the earlier value.
"""
from __future__ import annotations

import enum
from typing import Any

from ... import _core
from ..errors import InvalidType, NotFound

__all__ = ["Graph", "Node"]

_CONTROL = "__control_var"


class _Type(enum.Enum):
    """Kinds of nodes."""

    Operation = 0
    Variable = 1

    def __str__(self) -> str:
        return "Type.%s" % self.name


class Node:
    """An operator or a value of a variable. ``inputs`` and ``outputs`` are the nodes next to it.

    Args:
        key (int): number, which no other node of the graph has.
        name (str): type of the operator, or name of the variable.
        kind (Node.Type): which of the two it is.
        desc (OpDesc or VarDesc, optional): description. Default None: a control variable or an empty node.
    """

    Type = _Type
    Operation, Variable = _Type.Operation, _Type.Variable

    def __init__(self, key: int, name: str, kind: _Type, desc: Any = None) -> None:
        self._key, self._name, self._kind, self._desc = key, name, kind, desc
        self.inputs: list[Node] = []
        self.outputs: list[Node] = []

    def id(self) -> int:
        """int: number of the node."""
        return self._key

    def name(self) -> str:
        """str: type that the operator had when the node was made, or name of the variable."""
        return self._name

    def node_type(self) -> _Type:
        """Node.Type: operator or variable."""
        return self._kind

    def is_op(self) -> bool:
        """bool: whether the node is an operator."""
        return self._kind is _Type.Operation

    def is_var(self) -> bool:
        """bool: whether the node is a variable, which control variables are, too."""
        return self._kind is _Type.Variable

    def is_ctrl_var(self) -> bool:
        """bool: whether the node only gives an order."""
        return self.is_var() and self._name.startswith(_CONTROL)

    def op(self) -> Any:
        """OpDesc: description of the operator, None for variables."""
        return self._desc if self.is_op() else None

    def var(self) -> Any:
        """VarDesc: description of the variable, None for operators and control variables."""
        return self._desc if self.is_var() else None

    def append_input(self, node: Node) -> None:
        """Adds an edge from ``node`` on this side only."""
        self.inputs.append(node)

    def append_output(self, node: Node) -> None:
        """Adds an edge to ``node`` on this side only."""
        self.outputs.append(node)

    def remove_input(self, node: Node | int) -> None:
        """Removes the edges from a node, or from the node with this number, on this side only."""
        self.inputs = [one for one in self.inputs if one is not node and one.id() != node]

    def remove_output(self, node: Node | int) -> None:
        """Removes the edges to a node, or to the node with this number, on this side only."""
        self.outputs = [one for one in self.outputs if one is not node and one.id() != node]

    def clear_inputs(self) -> None:
        """Removes all edges to this node on this side."""
        self.inputs = []

    def clear_outputs(self) -> None:
        """Removes all edges from this node on this side."""
        self.outputs = []

    def __repr__(self) -> str:
        return "Node(%s, %d)" % (self._name, self._key)


class Graph:
    """The graph of a program's global block. The program itself is copied.

    Args:
        desc (ProgramDesc): description of the program.

    Raises:
        TypeError: ``desc`` is not a ProgramDesc.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> with fluid.program_guard(fluid.Program()):
        ...     y = fluid.layers.scale(fluid.data("x", [2], "float32"), 2.0)
        ...     graph = fluid.core.Graph(y.block.program.desc)
        >>> sorted(node.name() for node in graph.nodes())
        ['scale', 'scale_0.tmp_0', 'x']
    """

    def __init__(self, desc: Any) -> None:
        if not isinstance(desc, _core.Program):
            raise InvalidType("core.Graph: desc must be a ProgramDesc, got %s" % type(desc).__name__)
        self._origin = desc
        self._program = desc.clone()
        self._nodes: dict[int, Node] = {}
        self._next = 0
        self._attributes: dict[str, Any] = {}
        self.resolve_hazard(self._connect())

    # ---- nodes

    def _new(self, name: str, kind: _Type, desc: Any = None) -> Node:
        node = self._nodes[self._next] = Node(self._next, name, kind, desc)
        self._next += 1
        return node

    def _connect(self) -> dict[str, list[Node]]:
        """Makes the nodes of the block, and returns those of each variable in the order of its values."""
        block = self._program.block(0)
        values: dict[str, list[Node]] = {}

        def latest(name: str, written: bool) -> Node:
            known = values.setdefault(name, [])
            if written and known and (known[-1].inputs or known[-1].outputs) or not known:
                known.append(self._new(name, _Type.Variable, block.find_var(name)))
            return known[-1]

        for op in block.ops():
            node = self._new(op.type(), _Type.Operation, op)
            for name in dict.fromkeys(op.input_arg_names()):
                join(latest(name, False), node)
            for name in dict.fromkeys(op.output_arg_names()):
                join(node, latest(name, True))
        for var in block.all_vars():
            if var.name() not in values:
                latest(var.name(), True)
        return values

    def nodes(self) -> set[Node]:
        """set of Node: all nodes."""
        return set(self._nodes.values())

    def create_var_node(self, desc: Any) -> Node:
        """A node for another variable. Its description is copied."""
        made = self._program.block(0).var(desc.name())
        made.set_type(desc.type())
        made.set_shape(desc.shape())
        made.set_dtype(desc.dtype())
        made.set_lod_level(desc.lod_level())
        made.set_persistable(desc.persistable())
        return self._new(desc.name(), _Type.Variable, made)

    def create_op_node(self, desc: Any) -> Node:
        """A node without edges for another operator. Its description is copied."""
        made = self._program.block(0).append_op()
        made.copy_from(desc)
        return self._new(desc.type(), _Type.Operation, made)

    def create_control_dep_var(self) -> Node:
        """A node that only gives an order."""
        return self._new("%s@%d" % (_CONTROL, self._next), _Type.Variable)

    def create_empty_node(self, name: str, kind: _Type) -> Node:
        """A node without a description."""
        return self._new(name, kind)

    def remove_node(self, node: Node) -> Node:
        """Removes a node, whose neighbors keep their edges, and returns it."""
        return self._nodes.pop(node.id())

    def release_nodes(self) -> list[Node]:
        """list of Node: all nodes, which are removed."""
        released, self._nodes = list(self._nodes.values()), {}
        return released

    def retrieve_node(self, key: int) -> Node | None:
        """Node: the node with a number, or None."""
        return self._nodes.get(key)

    def resolve_hazard(self, values: dict[str, list[Node]]) -> None:
        """Adds control variables that keep the values of a variable in order.

        Args:
            values (dict): the nodes of each variable, in the order of its values.
        """
        for nodes in values.values():
            for earlier, later in zip(nodes, nodes[1:]):
                for writer in later.inputs:
                    for before in earlier.inputs:
                        self._order(before, writer)
                    for reader in earlier.outputs:
                        if reader is not writer and not any(one in writer.inputs for one in reader.outputs):
                            self._order(reader, writer)

    def _order(self, first: Node, then: Node) -> None:
        control = self.create_control_dep_var()
        join(first, control)
        join(control, then)

    # ---- copies and programs

    def origin_program_desc(self) -> Any:
        """ProgramDesc: the description that the graph was made of."""
        return self._origin

    def clone(self) -> Graph:
        """Graph: a copy, which can be changed by itself."""
        from .graph_walks import copy_graph
        return copy_graph(self)

    # ---- attributes

    def set(self, name: str, value: Any) -> None:
        """Sets an attribute of the graph, which passes read."""
        self._attributes[name] = value

    set_not_owned = set

    def has(self, name: str) -> bool:
        """bool: whether the graph has an attribute."""
        return name in self._attributes

    def erase(self, name: str) -> None:
        """Removes an attribute."""
        self._attributes.pop(name, None)

    def _attribute(self, name: str) -> Any:
        if name not in self._attributes:
            raise NotFound("core.Graph: the graph has no attribute %r" % (name,))
        return self._attributes[name]

    get_bool = get_int = get_float = get_double = get_string = get_marked_nodes = _attribute


def join(source: Node, target: Node) -> None:
    """Adds an edge on both sides."""
    source.append_output(target)
    target.append_input(source)


def checked_nodes(nodes: Any, function: str) -> list[Node]:
    """list of Node: one node or several ones. Raises TypeError for anything else."""
    found = list(nodes) if isinstance(nodes, (list, tuple, set, frozenset)) else [nodes]
    for node in found:
        if not isinstance(node, Node):
            raise InvalidType("%s: a node must be a core.Node, got %s" % (function, type(node).__name__))
    return found
