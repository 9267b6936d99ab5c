"""Writes pictures to files. The suffix of the file determines the format."""
import glob
import os
import shutil
import subprocess
import warnings

from ..profiling.files import write_whole
from .graph import parse_dot

__all__ = ["draw_new", "write_picture"]

#: Larger graphs are only drawn on request: they are unreadable and take minutes.
MOST_NODES = 5000
GRAPHVIZ_FORMATS = (".png", ".pdf", ".ps", ".jpg")


def write_picture(graph, path):
    """Writes a graph as ``.svg`` or ``.dot``; as ``.png``, ``.pdf``, ``.ps`` or ``.jpg`` where Graphviz is installed.

    Args:
        graph (Graph): graph to draw.
        path (str): file to write; its folder is made.

    Raises:
        ValueError: the suffix is unknown.
        NotImplementedError: the suffix needs Graphviz, and its program ``dot`` is not on the path.
        RuntimeError: Graphviz failed.
        OSError: the file cannot be written.

    Examples:
        >>> from anabranch import drawing
        >>> drawing.write_picture(drawing.parse_dot("digraph g { a -> b; }"), "picture.svg")
    """
    from ..fluid.errors import InvalidValue, Unavailable, Unsupported
    from .svg import to_svg
    path = os.fspath(path)
    suffix = os.path.splitext(path)[1].lower()
    if suffix == ".dot":
        write_whole(path, graph.dot().encode("utf-8"))
    elif suffix == ".svg":
        write_whole(path, to_svg(graph).encode("utf-8"))
    elif suffix in GRAPHVIZ_FORMATS:
        dot = shutil.which("dot")
        if dot is None:
            raise Unsupported("%s pictures need Graphviz, whose program `dot` is not on the PATH; .svg and .dot need "
                              "no other program" % suffix)
        done = subprocess.run([dot, "-T" + suffix[1:]], input=graph.dot().encode("utf-8"), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)
        if done.returncode:
            raise Unavailable("dot failed: " + done.stderr.decode("utf-8", "replace").strip())
        write_whole(path, done.stdout)
    else:
        raise InvalidValue("a picture must be .svg, .dot, %s, got %r" % (", ".join(GRAPHVIZ_FORMATS), path))


def draw_new(path):
    """Draws ``path + "_<nn>_<pass>.dot"`` as .svg next to it, if there is none or the .dot is newer."""
    for dot in sorted(glob.glob(glob.escape(path) + "_[0-9][0-9]_*.dot")):
        picture = dot[:-len(".dot")] + ".svg"
        if os.path.exists(picture) and os.path.getmtime(picture) >= os.path.getmtime(dot):
            continue
        with open(dot, encoding="utf-8") as f:
            graph = parse_dot(f.read())
        if len(graph.nodes) > MOST_NODES:
            warnings.warn("%s is not drawn, because it has %d nodes; `python -m anabranch.drawing %s` draws it"
                          % (dot, len(graph.nodes), dot), stacklevel=4)
            continue
        write_picture(graph, picture)
