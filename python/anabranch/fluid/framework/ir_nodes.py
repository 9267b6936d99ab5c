"""The nodes of :class:`IrGraph`: views of the nodes of a ``core.Graph``."""
from __future__ import annotations

from typing import Any

from ... import _core
from ..errors import NotFound, require
from .block import Block
from .graph_nodes import Node

__all__ = ["IrNode", "IrOpNode", "IrVarNode", "set_attribute"]


class IrNode:
    """An operator or a value of a variable in an :class:`IrGraph`.

    Args:
        node (core.Node): node of the ``core.Graph``.
    """

    def __init__(self, node: Node) -> None:
        require(isinstance(node, Node), "IrNode: node must be a core.Node, got %s" % type(node).__name__)
        self.node = node

    def name(self) -> str:
        """str: type of the operator, or name of the variable."""
        return self.node.name()

    def id(self) -> int:
        """int: number of the node."""
        return self.node.id()

    def node_type(self) -> Any:
        """core.Node.Type: operator or variable."""
        return self.node.node_type()

    def var(self) -> Any:
        """VarDesc: description of the variable, None for operators."""
        return self.node.var()

    def op(self) -> Any:
        """OpDesc: description of the operator, None for variables."""
        return self.node.op()

    def is_op(self) -> bool:
        """bool: whether the node is an operator."""
        return self.node.is_op()

    def is_var(self) -> bool:
        """bool: whether the node is a variable."""
        return self.node.is_var()

    def is_ctrl_var(self) -> bool:
        """bool: whether the node only gives an order."""
        return self.node.is_ctrl_var()

    @property
    def inputs(self) -> list[Any]:
        """list of IrNode: nodes with an edge to this one."""
        return [self._near(node) for node in self.node.inputs]

    @property
    def outputs(self) -> list[Any]:
        """list of IrNode: nodes with an edge from this one."""
        return [self._near(node) for node in self.node.outputs]

    def _near(self, node: Node) -> IrNode:
        return IrNode(node)

    def append_input(self, node: IrNode) -> None:
        """Adds an edge from ``node`` on this side only."""
        self.node.append_input(node.node)

    def append_output(self, node: IrNode) -> None:
        """Adds an edge to ``node`` on this side only."""
        self.node.append_output(node.node)

    def remove_input(self, node: IrNode) -> None:
        """Removes the edge from ``node`` on this side only."""
        self.node.remove_input(node.node)

    def remove_output(self, node: IrNode) -> None:
        """Removes the edge to ``node`` on this side only."""
        self.node.remove_output(node.node)

    def remove_input_by_id(self, node_id: int) -> None:
        """Removes the edge from the node with this number on this side only."""
        self.node.remove_input(node_id)

    def remove_output_by_id(self, node_id: int) -> None:
        """Removes the edge to the node with this number on this side only."""
        self.node.remove_output(node_id)

    def clear_inputs(self) -> None:
        """Removes all edges to this node on this side."""
        self.node.clear_inputs()

    def clear_outputs(self) -> None:
        """Removes all edges from this node on this side."""
        self.node.clear_outputs()

    def __repr__(self) -> str:
        return "%s(%s, %d)" % (type(self).__name__, self.name(), self.id())


class IrVarNode(IrNode):
    """A value of a variable."""

    def __init__(self, node: Node) -> None:
        super().__init__(node)
        require(node.is_var(), "IrVarNode: node must be a variable, got the operator %s" % node.name())

    def _near(self, node: Node) -> IrNode:
        return IrOpNode(node)

    def _desc(self) -> Any:
        desc = self.node.var()
        require(desc is not None, "IrVarNode: %s is a control variable, which has no description" % self.name())
        return desc

    def set_shape(self, shape: Any) -> None:
        """Sets the shape."""
        self._desc().set_shape([int(extent) for extent in shape])

    def shape(self) -> list[int]:
        """list of int: shape."""
        return list(self._desc().shape())

    def persistable(self) -> bool:
        """bool: whether the variable is persistable."""
        return bool(self._desc().persistable())

    def type(self) -> Any:
        """VarType: kind."""
        return self._desc().type()

    def dtype(self) -> Any:
        """VarType: dtype."""
        return self._desc().dtype()


class IrOpNode(IrNode):
    """An operator."""

    def __init__(self, node: Node) -> None:
        super().__init__(node)
        require(node.is_op(), "IrOpNode: node must be an operator, got the variable %s" % node.name())

    def _near(self, node: Node) -> IrNode:
        return IrVarNode(node)

    def _slot(self, slots: dict[str, list[str]], name: str) -> list[str]:
        if name not in slots:
            raise NotFound("IrOpNode: operator %s has no slot %r; it has %s"
                           % (self.op().type(), name, ", ".join(sorted(slots)) or "none"))
        return list(slots[name])

    def rename_input(self, old_input_name: str, new_input_name: str) -> None:
        """Replaces the name of a variable in all inputs."""
        self.op()._rename_input(old_input_name, new_input_name)

    def rename_output(self, old_output_name: str, new_output_name: str) -> None:
        """Replaces the name of a variable in all outputs."""
        self.op()._rename_output(old_output_name, new_output_name)

    def input(self, name: str) -> list[str]:
        """list of str: names of the variables in an input slot."""
        return self._slot(self.op().inputs(), name)

    def output(self, name: str) -> list[str]:
        """list of str: names of the variables in an output slot."""
        return self._slot(self.op().outputs(), name)

    def input_arg_names(self) -> list[str]:
        """list of str: names of all inputs."""
        return list(self.op().input_arg_names())

    def output_arg_names(self) -> list[str]:
        """list of str: names of all outputs."""
        return list(self.op().output_arg_names())

    def set_type(self, new_type: str) -> None:
        """Changes the type of the operator. The name of the node stays as it is."""
        self.op().set_type(new_type)

    def set_attr(self, name: str, val: Any) -> None:
        """Sets an attribute."""
        set_attribute(self.op(), name, val)

    _update_desc_attr = set_attr


def set_attribute(desc: Any, name: str, value: Any) -> None:
    """Sets an attribute of an OpDesc to a number, a text, a list of them, a Block or a list of Blocks."""
    if isinstance(value, (Block, _core.Block)):
        desc.set_block_attr(name, getattr(value, "desc", value))
    elif isinstance(value, list) and value and all(isinstance(one, Block) for one in value):
        desc.set_blocks_attr(name, [one.desc for one in value])
    else:
        desc._set_attr(name, value)
