"""Functions of ``fluid.core`` on graphs: order, circles, parts, copies, and the program of a graph."""
from __future__ import annotations

from typing import Any

from ... import _core
from ..errors import InvalidType, InvalidValue, NotFound
from .graph_nodes import Graph, Node, checked_nodes

__all__ = ["build_adjacency_list", "graph_num", "graph_safe_remove_nodes", "has_circle", "topology_sort"]


def _checked(graph: Any, function: str) -> Graph:
    if not isinstance(graph, Graph):
        raise InvalidType("core.%s: graph must be a core.Graph, got %s" % (function, type(graph).__name__))
    return graph


def _ordered(nodes: Any) -> list[Node]:
    return sorted(nodes, key=Node.id)


# ---- walks


def build_adjacency_list(graph: Graph) -> dict[Node, set[Node]]:
    """dict: the operators, each with the operators whose outputs it reads."""
    return {op: {writer for value in op.inputs for writer in value.inputs}
            for op in _ordered(_checked(graph, "build_adjacency_list").nodes()) if op.is_op()}


def topology_sort(graph: Graph) -> list[Node]:
    """The operators, each after those whose outputs it reads, and otherwise in the order of their numbers.

    Raises:
        ValueError: operators read each other's outputs in a circle.
    """
    writers = build_adjacency_list(graph)
    order: list[Node] = []
    done: set[Node] = set()
    entered: set[Node] = set()  # those on the path from the start of the walk
    for start in writers:
        path = [start]
        while path:
            node = path[-1]
            missing = [] if node in done else [one for one in writers[node] if one not in done]
            if any(one in entered for one in missing):
                raise InvalidValue("core.topology_sort: the operators cannot be ordered: %s (node %d) reads what "
                                   "depends on its own output" % (node.name(), node.id()))
            if missing:
                entered.add(node)
                path.extend(sorted(missing, key=Node.id, reverse=True))
            elif node in done:
                path.pop()
            else:
                done.add(node)
                order.append(path.pop())
    return order


def has_circle(graph: Graph) -> bool:
    """bool: whether operators read each other's outputs in a circle."""
    try:
        topology_sort(graph)
    except InvalidValue:
        return True
    return False


def graph_num(graph: Graph) -> int:
    """int: number of parts of the graph that no edge connects. Variables that no operator uses do not count."""
    near: dict[Node, set[Node]] = {}
    for op, writers in build_adjacency_list(graph).items():
        near.setdefault(op, set()).update(writers)
        for writer in writers:
            near.setdefault(writer, set()).add(op)
    parts, seen = 0, set()
    for start in near:
        if start in seen:
            continue
        parts, waiting = parts + 1, [start]
        while waiting:
            node = waiting.pop()
            if node not in seen:
                seen.add(node)
                waiting.extend(near[node])
    return parts


# ---- changes


def graph_safe_remove_nodes(graph: Graph, nodes: Any) -> None:
    """Removes nodes and their edges.

    Args:
        graph (Graph): graph.
        nodes (Node or set of Node): nodes to remove.

    Raises:
        LookupError: the graph does not have such a node.
    """
    removed = set(checked_nodes(nodes, "core.graph_safe_remove_nodes"))
    for node in removed:
        if graph.retrieve_node(node.id()) is not node:
            raise NotFound("core.graph_safe_remove_nodes: the graph has no node %s with the number %d"
                           % (node.name(), node.id()))
    for node in removed:
        graph.remove_node(node)
    for node in graph.nodes():
        node.inputs = [one for one in node.inputs if one not in removed]
        node.outputs = [one for one in node.outputs if one not in removed]


# ---- programs and copies


def program_of(graph: Graph) -> tuple[Any, dict[Node, Any]]:
    """A program with the operators and variables of a graph.

    Returns:
        tuple: its ProgramDesc, and a dict from each operator's node to its OpDesc there.
    """
    order = topology_sort(graph)
    held = list(graph._program.block(0).ops())
    made = graph._program.clone()
    block = made.block(0)
    copies = list(block.ops())
    index = {id(op): at for at, op in enumerate(held)}
    placed = {node: copies[index[id(node.op())]] for node in order}
    block.remove_ops(0, len(copies))
    for node in order:
        block.insert_op(block.op_size(), placed[node])
    names = {node.name() for node in graph.nodes() if node.is_var() and not node.is_ctrl_var()}
    for var in block.all_vars():
        if var.name() not in names:
            block.remove_var(var.name())
    made.touch()
    return made, placed


def copy_graph(graph: Graph) -> Graph:
    """Graph: a copy. Its nodes are new, and have the same numbers."""
    made = Graph(_core.Program())
    made._origin, made._program = graph._origin, graph._program.clone()
    made._next, made._attributes = graph._next, dict(graph._attributes)
    block = made._program.block(0)
    ops = dict(zip(map(id, graph._program.block(0).ops()), block.ops()))
    copies = {}
    for node in _ordered(graph.nodes()):
        desc = ops.get(id(node.op())) if node.is_op() else node.var() and block.find_var(node.name())
        copies[node] = made._nodes[node.id()] = Node(node.id(), node.name(), node.node_type(), desc)
    for node, copy in copies.items():
        copy.inputs = [copies[one] for one in node.inputs if one in copies]
        copy.outputs = [copies[one] for one in node.outputs if one in copies]
    return made
