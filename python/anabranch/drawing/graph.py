"""A directed graph with labels and colors, and its form as DOT."""
import re

__all__ = ["Graph", "Node", "parse_dot"]


class Node:
    """A box (``shape`` "box") or a rounded label ("ellipse"). ``tip`` is shown when the mouse rests on it."""

    __slots__ = ("key", "lines", "shape", "fill", "stroke", "tip")

    def __init__(self, key, label, shape, fill, stroke, tip):
        self.key, self.lines = key, label.split("\n")
        self.shape, self.fill, self.stroke, self.tip = shape, fill, stroke, tip


class Graph:
    """Nodes in the order in which they were added, and edges between them.

    Args:
        title (str): text above the picture. Default "".
        legend (list of (str, str), optional): (text, color) pairs, shown next to the title.
    """

    def __init__(self, title="", legend=()):
        self.title, self.legend = title, list(legend)
        self.nodes = {}
        self.edges = []
        self._known_edges = set()

    def node(self, key, label, shape="box", fill="#ffffff", stroke="#666666", tip=""):
        """Adds a node, or replaces the node with this key.

        Returns:
            Node: it.
        """
        self.nodes[key] = node = Node(key, label, shape, fill, stroke, tip)
        return node

    def edge(self, source, target, label=""):
        """Adds an edge, if it does not exist. Missing nodes are added with their key as label."""
        if (source, target) in self._known_edges:
            return
        for key in (source, target):
            if key not in self.nodes:
                self.node(key, str(key))
        self._known_edges.add((source, target))
        self.edges.append((source, target, label))

    def boxes(self):
        """Returns the graph without its ellipses (variables). Boxes that were connected through an ellipse are
        connected directly.

        Returns:
            Graph: the smaller graph; the ellipse's first line is the label of the new edge.

        Examples:
            >>> from anabranch import drawing
            >>> graph = drawing.parse_dot('digraph g { a [shape=box]; b [shape=box]; a -> x; x -> b; }')
            >>> graph.boxes().edges
            [('a', 'b', 'x')]
        """
        out = Graph(self.title, self.legend)
        writers = {}
        for node in self.nodes.values():
            if node.shape == "box":
                out.nodes[node.key] = node
        for source, target, label in self.edges:
            if source in out.nodes and target in out.nodes:
                out.edge(source, target, label)
            elif source in out.nodes:
                writers.setdefault(target, []).append(source)
        for source, target, _ in self.edges:
            if target in out.nodes and source not in out.nodes:
                for writer in writers.get(source, ()):
                    out.edge(writer, target, self.nodes[source].lines[0])
        return out

    def dot(self):
        """str: the graph in Graphviz's language.

        Examples:
            >>> from anabranch.drawing import Graph
            >>> graph = Graph("t")
            >>> _ = graph.node("a", "mul")
            >>> graph.edge("a", "b")
            >>> print(graph.dot())
            digraph "t" {
              rankdir=TB;
              node [fontname="Helvetica", fontsize=10, style=filled];
              "a" [label="mul", shape=box, fillcolor="#ffffff", color="#666666"];
              "b" [label="b", shape=box, fillcolor="#ffffff", color="#666666"];
              "a" -> "b";
            }
            <BLANKLINE>
        """
        lines = ["digraph %s {" % _quoted(self.title or "graph"), "  rankdir=TB;",
                 '  node [fontname="Helvetica", fontsize=10, style=filled];']
        for node in self.nodes.values():
            tip = ", tooltip=%s" % _quoted(node.tip) if node.tip else ""
            lines.append("  %s [label=%s, shape=%s, fillcolor=%s, color=%s%s];" % (
                _quoted(str(node.key)), _quoted("\n".join(node.lines)), node.shape, _quoted(node.fill),
                _quoted(node.stroke), tip))
        for source, target, label in self.edges:
            more = " [label=%s]" % _quoted(label) if label else ""
            lines.append("  %s -> %s%s;" % (_quoted(str(source)), _quoted(str(target)), more))
        return "\n".join(lines) + "\n}\n"


def _quoted(text):
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return '"%s"' % escaped


# ---- reading

_STRING = r'"(?:[^"\\]|\\.)*"'
_NAME = r'(?:%s|[A-Za-z_0-9.]+)' % _STRING
_STATEMENT = re.compile(r"\s*(%s)\s*(?:->\s*(%s)\s*)?(?:\[((?:%s|[^\]\"])*)\])?\s*;" % (_NAME, _NAME, _STRING))
_ATTRIBUTE = re.compile(r"(\w+)\s*=\s*(%s|[^\s,\]]+)" % _STRING)

#: Graphviz's color scheme pastel19, which graphs of replicas use.
_PASTEL = ("#fbb4ae", "#b3cde3", "#ccebc5", "#decbe4", "#fed9a6", "#ffffcc", "#e5d8bd", "#fddaec", "#f2f2f2")


def _plain(text):
    if not text.startswith('"'):
        return text
    return re.sub(r"\\(.)", lambda m: "\n" if m.group(1) == "n" else m.group(1), text[1:-1])


def _color(text):
    found = re.match(r"/pastel19/(\d)$", text)
    return _PASTEL[int(found.group(1)) - 1] if found else text


def _replicas(graph):
    """The legend of a graph of several replicas: which color the boxes of each one have."""
    fills = {node.fill for node in graph.nodes.values() if node.shape == "box"}
    used = [(at, color) for at, color in enumerate(_PASTEL) if color in fills]
    return [("replica %d" % at, color) for at, color in used] if len(used) > 1 else []


def parse_dot(text):
    """The graph of a DOT file as this project writes it: one ``digraph``, statements that end with a semicolon.

    Args:
        text (str): the file's content.

    Returns:
        Graph: the graph of the file.

    Raises:
        ValueError: the text does not start with ``digraph NAME {``.

    Examples:
        >>> from anabranch import drawing
        >>> drawing.parse_dot('digraph g { n1 [label="mul"]; n1 -> n2; }').edges
        [('n1', 'n2', '')]
    """
    opening = re.match(r"\s*digraph\s*(%s)?\s*\{" % _NAME, text)
    if not opening:
        from ..fluid.errors import InvalidValue
        raise InvalidValue("parse_dot: the text does not begin with digraph")
    graph = Graph(_plain(opening.group(1) or ""))
    at = opening.end()
    while True:
        found = _STATEMENT.match(text, at)
        if not found:
            at = text.find(";", at) + 1
            if not at:
                graph.legend = _replicas(graph)
                return graph
            continue
        at = found.end()
        source, target = _plain(found.group(1)), found.group(2)
        attributes = {key: _plain(value) for key, value in _ATTRIBUTE.findall(found.group(3) or "")}
        if target is not None:
            for key in (source, _plain(target)):
                if key not in graph.nodes:
                    graph.node(key, key, "ellipse")
            graph.edge(source, _plain(target), attributes.get("label", ""))
        elif source not in ("node", "edge", "graph"):
            shape = attributes.get("shape", "ellipse")
            graph.node(source, attributes.get("label", source), shape,
                       _color(attributes.get("fillcolor", "#ffffff")), attributes.get("color", "#666666"),
                       attributes.get("tooltip", ""))
