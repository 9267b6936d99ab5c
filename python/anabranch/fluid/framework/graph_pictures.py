"""Pictures of a ``core.Graph``: DOT files, and PDF files where Graphviz is installed."""
from __future__ import annotations

import os
import shutil
from collections.abc import Collection
from typing import Any

from ... import drawing
from ...profiling.files import write_whole
from .graph_nodes import Graph, Node

__all__ = ["draw_graph", "write_dot"]

_MARKED = "#ffe680"


def draw_graph(graph: Graph, path: str, marked: Collection[Node] = ()) -> None:
    """Writes ``path + ".dot"``, and ``path + ".pdf"`` where Graphviz is installed.

    Args:
        graph (Graph): graph.
        path (str): file without its suffix. Missing folders are created.
        marked (set of Node): nodes to color. Default ().
    """
    write_dot(graph, path + ".dot", marked)
    if shutil.which("dot"):
        drawing.write_picture(_picture(graph, marked), path + ".pdf")


def write_dot(graph: Graph, path: str, marked: Collection[Node] = ()) -> None:
    """Writes a graph in the language of Graphviz. Missing folders are created."""
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    write_whole(path, _picture(graph, marked).dot().encode("utf-8"))


def _picture(graph: Graph, marked: Collection[Node]) -> Any:
    picture = drawing.Graph()
    nodes = sorted(graph.nodes(), key=Node.id)
    for node in nodes:
        fill = _MARKED if node in marked else "#dddddd" if node.is_op() else "#ffffff"
        picture.node("node_%d" % node.id(), node.name(), "box" if node.is_op() else "ellipse", fill)
    for node in nodes:
        for after in node.outputs:
            picture.edge("node_%d" % node.id(), "node_%d" % after.id())
    return picture
