"""SVG of a graph."""
from html import escape

from .layout import layout

__all__ = ["to_svg"]

FONT = 'font-family="Helvetica, Arial, sans-serif"'
CHARACTER = 5.8        # mean width of a character at the size of labels
LINE = 13.0
LAYER = 30.0           # between the boxes of two layers
MARGIN = 12.0


def _quoted(value):
    return '"%s"' % escape(value)


def _size(node):
    width = max(len(line) for line in node.lines) * CHARACTER + (14 if node.shape == "box" else 20)
    return width, LINE * len(node.lines) + 8


def to_svg(graph):
    """A picture of a graph.

    Args:
        graph (Graph): graph to draw.

    Returns:
        str: an SVG document.

    Examples:
        >>> from anabranch import drawing
        >>> drawing.to_svg(drawing.parse_dot("digraph g { a -> b; }")).count("<text")
        3
    """
    sizes = {key: _size(node) for key, node in graph.nodes.items()}
    where, paths = layout(list(graph.nodes), [(s, t) for s, t, _ in graph.edges], lambda key: sizes[key][0])
    tops, heights, bottom = _rows(where, sizes, MARGIN + (26 if graph.title or graph.legend else 0))
    rims = [x + sizes[key][0] / 2 for key, (x, _) in where.items()] + [x for path in paths.values() for x, _ in path]
    width = max(rims + [_head_width(graph)]) + 2 * MARGIN
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d">'
           % (width, bottom + MARGIN, width, bottom + MARGIN),
           '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto">'
           '<path d="M0 0L8 4L0 8z" fill="#888"/></marker></defs>',
           '<rect width="100%" height="100%" fill="white"/>']
    out += _head(graph)
    out.append('<g fill="none" stroke="#999" stroke-width="0.8" marker-end="url(#tip)">')
    for source, target, label in graph.edges:
        out.append(_edge(where, sizes, tops, heights, paths[source, target], source, target, label))
    out.append("</g>")
    out.append('<g %s font-size="10.5" text-anchor="middle" stroke-width="0.8">' % FONT)
    for key, node in graph.nodes.items():
        x, layer = where[key]
        out += _node(node, x + MARGIN, tops[layer] + heights[layer] / 2, sizes[key])
    return "\n".join(out + ["</g>", "</svg>", ""])


def _rows(where, sizes, top):
    """Top and height of each layer, and the end of the last one."""
    heights = {}
    for key, (_, layer) in where.items():
        heights[layer] = max(heights.get(layer, 0.0), sizes[key][1])
    tops = {}
    for layer in range(len(heights)):
        tops[layer] = top
        top += heights.get(layer, LINE) + LAYER
    return tops, heights, top - LAYER if heights else top


def _head_width(graph):
    return len(graph.title) * 7.5 + sum(len(text) * CHARACTER + 34 for text, _ in graph.legend)


def _head(graph):
    out, x = [], MARGIN
    if graph.title:
        out.append('<text x="%.0f" y="22" %s font-size="13" font-weight="bold">%s</text>'
                   % (x, FONT, escape(graph.title, quote=False)))
        x += len(graph.title) * 7.5 + 16
    for text, color in graph.legend:
        out.append('<rect x="%.0f" y="13" width="12" height="10" fill=%s stroke="#666" stroke-width="0.6"/>'
                   '<text x="%.0f" y="22" %s font-size="10.5">%s</text>'
                   % (x, _quoted(color), x + 16, FONT, escape(text, quote=False)))
        x += len(text) * CHARACTER + 34
    return out


def _edge(where, sizes, tops, heights, bends, source, target, label):
    """A curve from the lower rim of one box, through its bends, to the upper rim of the other."""
    (x0, layer0), (x1, layer1) = where[source], where[target]
    down = layer0 <= layer1
    middle0, middle1 = (tops[at] + heights[at] / 2 for at in (layer0, layer1))
    half0, half1 = sizes[source][1] / 2, sizes[target][1] / 2
    points = [(x0, middle0 + (half0 if down else -half0))]
    for x, layer in bends:
        over, under = tops[layer], tops[layer] + heights[layer]
        points += [(x, over), (x, under)] if down else [(x, under), (x, over)]
    points.append((x1, middle1 - (half1 if down else -half1)))
    path = "M%.1f %.1f" % (points[0][0] + MARGIN, points[0][1])
    for (xa, ya), (xb, yb) in zip(points, points[1:]):
        if abs(xa - xb) < 0.5:
            path += "L%.1f %.1f" % (xb + MARGIN, yb)
        else:
            half = (ya + yb) / 2
            path += "C%.1f %.1f %.1f %.1f %.1f %.1f" % (xa + MARGIN, half, xb + MARGIN, half, xb + MARGIN, yb)
    tip = "<title>%s</title>" % escape(label, quote=False) if label else ""
    return '<path d="%s">%s</path>' % (path, tip) if tip else '<path d="%s"/>' % path


def _node(node, x, y, size):
    width, height = size
    radius = 3 if node.shape == "box" else height / 2
    out = ['<g><rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="%.1f" fill=%s stroke=%s/>'
           % (x - width / 2, y - height / 2, width, height, radius, _quoted(node.fill), _quoted(node.stroke))]
    if node.tip:
        out.append("<title>%s</title>" % escape(node.tip, quote=False))
    for at, line in enumerate(node.lines):
        out.append('<text x="%.1f" y="%.1f">%s</text>'
                   % (x, y - height / 2 + 4 + LINE * (at + 1) - 3.5, escape(line, quote=False)))
    return ["".join(out) + "</g>"]
