"""Pictures of graphs and traces. SVG and DOT are written by this package itself; Graphviz draws the other formats.

A DOT file, for instance one that ``BuildStrategy.debug_graphviz_path`` has left, becomes a picture with

    python -m anabranch.drawing graph_03_reuse_input.dot graph.svg

>>> from anabranch import drawing
>>> graph = drawing.Graph("two steps")
>>> _ = graph.node("a", "mul", fill="#cfe3f5"), graph.node("b", "relu", fill="#cfe3f5")
>>> graph.edge("a", "b")
>>> drawing.to_svg(graph).startswith("<svg ")
True
"""
from .graph import Graph, parse_dot
from .program import program_graph
from .svg import to_svg
from .write import draw_new, write_picture

__all__ = ["Graph", "draw_new", "parse_dot", "program_graph", "to_svg", "write_picture"]
