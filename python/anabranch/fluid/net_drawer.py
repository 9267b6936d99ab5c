"""Drawings of networks."""
from __future__ import annotations

import os
from typing import Any

from ..drawing import program_graph, write_picture
from .errors import InvalidType
from .framework import Program

__all__ = ["draw_graph"]


def draw_graph(startup_program: Program, main_program: Program, **kwargs: Any) -> Any:
    """Draws a main program and its parameters.

    Args:
        startup_program (Program): ignored, because parameters are drawn where they are read.
        main_program (Program): program to draw.
        filename (str, optional): file to write, with the suffix .svg, .dot or one of Graphviz. Without a suffix, .svg
            and .dot are written.
        graph_attr (dict, optional): ignored.

    Returns:
        anabranch.drawing.Graph: the graph.

    Raises:
        TypeError: ``main_program`` is not a Program.
        ValueError: the suffix is unknown.
        OSError: a file cannot be written.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> from anabranch.fluid import net_drawer
        >>> y = fluid.layers.relu(fluid.data("x", [None, 2]))
        >>> graph = net_drawer.draw_graph(fluid.default_startup_program(), fluid.default_main_program(),
        ...                               filename="net.svg")
        >>> len(graph.edges)
        2
    """
    if not isinstance(main_program, Program):
        raise InvalidType("draw_graph: main_program must be a Program, got %s" % type(main_program).__name__)
    graph = program_graph(main_program.global_block())
    filename = kwargs.get("filename")
    if filename:
        named = os.path.splitext(filename)[1]
        for path in [filename] if named else [filename + ".svg", filename + ".dot"]:
            write_picture(graph, path)
    return graph
