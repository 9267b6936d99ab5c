"""Files of pictures: the suffix says which form."""
import os
import shutil
import subprocess

from ..profiling.files import write_whole

__all__ = ["write_picture"]

GRAPHVIZ_FORMATS = (".png", ".pdf", ".ps", ".jpg")


def write_picture(graph, path):
    """Writes a graph as ``.svg`` or ``.dot``; as ``.png``, ``.pdf``, ``.ps`` or ``.jpg`` where Graphviz is installed.

    Args:
        graph (Graph): what to draw.
        path (str): file to write; its folder is made.

    Raises:
        ValueError: another suffix. NotImplementedError: the suffix needs Graphviz, and its program ``dot`` is not
            on the path. RuntimeError: Graphviz failed. OSError: the file cannot be written.

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
            raise Unsupported("a picture as %s is drawn by Graphviz, whose program `dot` is not on the path; .svg and "
                              ".dot need no other program" % suffix)
        done = subprocess.run([dot, "-T" + suffix[1:]], input=graph.dot().encode("utf-8"), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)
        if done.returncode:
            raise Unavailable("dot failed: " + done.stderr.decode("utf-8", "replace").strip())
        write_whole(path, done.stdout)
    else:
        raise InvalidValue("a picture is .svg, .dot, %s, got %r" % (", ".join(GRAPHVIZ_FORMATS), path))
