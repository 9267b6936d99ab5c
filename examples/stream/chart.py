"""Line charts as SVG, with a background: light or dark, as the reader's system prefers."""
import math
from html import escape

WIDTH, HEIGHT, LEFT, RIGHT, TOP, GAP = 640, 190, 52, 16, 50, 44
STYLE = """<style>
  .card { fill: #ffffff; stroke: #d0d7de } text { fill: #1f2328; font: 12px sans-serif } .quiet { fill: #59636e }
  .title { font-weight: 600 } .grid { stroke: #d0d7de; stroke-width: 0.6 } .line { fill: none; stroke-width: 1.8 }
  .a { stroke: #0a7d5a } .b { stroke: #c2410c } .c { stroke: #6b7683; stroke-dasharray: 5 3 }
  @media (prefers-color-scheme: dark) {
    .card { fill: #14171c; stroke: #3d444d } text { fill: #e6e8eb } .quiet { fill: #9aa5b1 }
    .grid { stroke: #3d444d } .a { stroke: #3fb68b } .b { stroke: #fb923c } .c { stroke: #9aa5b1 }
  }
</style>"""


def draw(title, axis, panels, footer=""):
    """The text of an SVG file.

    Args:
        title (str): title of the chart.
        axis (str): name of the horizontal axis.
        panels (list): for each panel its title, the lowest value to show (None: that of the lines) and its lines. A
            line is its kind ("a", "b", "c"), its name and its points (x, y).
        footer (str): a line below the chart.
    """
    xs = [x for _, _, lines in panels for _, _, points in lines for x, _ in points] or [0]
    span = (min(xs), max(max(xs), min(xs) + 1))
    parts = ['<text class="title" x="12" y="22">%s</text>' % escape(title)]
    top = TOP
    for name, least, lines in panels:
        parts += panel(name, least, lines, span, top)
        top += HEIGHT + GAP
    parts.append(text(WIDTH / 2, top - GAP + 32, axis, "middle"))
    parts.append(text(12, top - GAP + 52, footer))
    height = top - GAP + 64
    return "\n".join(['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img">'
                      % (WIDTH, height, WIDTH, height), "<title>%s</title>" % escape(title), STYLE,
                      '<rect class="card" x="0.5" y="0.5" width="%d" height="%d" rx="6"/>' % (WIDTH - 1, height - 1),
                      *parts, "</svg>", ""])


def text(x, y, words, anchor="start"):
    return '<text class="quiet" x="%.1f" y="%.1f" text-anchor="%s">%s</text>' % (x, y, anchor, escape(words))


def panel(name, least, lines, span, top):
    """A panel with its grid, its lines, and their names above it."""
    ys = [y for _, _, points in lines for _, y in points] or [0.0]
    least = min(ys) if least is None else least
    step = nice(max(ys) - least or abs(least) or 1.0)
    low, high = step * (least // step), step * -(-max(ys) // step)
    high = max(high, low + step)

    def at(x, y):
        return (LEFT + (x - span[0]) / (span[1] - span[0]) * (WIDTH - LEFT - RIGHT),
                top + 26 + (high - y) / (high - low) * (HEIGHT - 26))
    parts = ['<text class="title" x="12" y="%.1f">%s</text>' % (top + 4, escape(name)), *names(lines, top)]
    for k in range(round((high - low) / step) + 1):
        y = at(span[0], low + k * step)[1]
        parts.append('<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/>' % (LEFT, WIDTH - RIGHT, y, y))
        parts.append(text(LEFT - 6, y + 4, "%.4g" % (low + k * step), "end"))
    wide = nice(span[1] - span[0])
    for k in range(int(-(-span[0] // wide)), int(span[1] // wide) + 1):
        parts.append(text(at(k * wide, low)[0], top + HEIGHT + 15, "%.4g" % (k * wide), "middle"))
    for kind, _, points in lines:
        found = " ".join("%.1f,%.1f" % at(x, y) for x, y in points)
        parts.append('<polyline class="line %s" points="%s"/>' % (kind, found))
    return parts


def names(lines, top):
    """The names of lines, from the right."""
    parts, right = [], WIDTH - RIGHT
    for kind, label, _ in reversed(lines):
        parts.append(text(right, top + 4, label, "end"))
        right -= 6.2 * len(label) + 8
        parts.append('<line class="line %s" x1="%.0f" x2="%.0f" y1="%d" y2="%d"/>'
                     % (kind, right - 20, right, top, top))
        right -= 34
    return parts


def nice(span):
    """A round step that divides a span into three to six parts.

    >>> nice(0.2), nice(7), nice(60)
    (0.05, 2.0, 10.0)
    """
    power = 10.0 ** math.floor(math.log10(span))
    return next(power * part for part in (0.2, 0.5, 1, 2, 5) if span / (power * part) <= 6)
