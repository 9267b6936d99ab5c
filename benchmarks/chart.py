"""The chart of the README: rates of all engines in the workloads that a user asks about first, as SVG.

It is as wide as a phone, so that its text stays readable there, and draws its own background: light or dark, as the
reader's system prefers.
"""
from html import escape

import intervals
import page
from report import NAMES, number, short

WIDTH, LABEL, BAR, LINE, GAP = 420, 102, 128, 20, 16
STYLE = """<style>
  .card { fill: #ffffff; stroke: #d0d7de } .title { font-weight: 600 } text { fill: #1f2328; font: 13px sans-serif }
  .own { fill: #0a7d5a } .other { fill: #9aa5b1 } .quiet { fill: #59636e }
  @media (prefers-color-scheme: dark) {
    .card { fill: #14171c; stroke: #3d444d } text { fill: #e6e8eb } .own { fill: #3fb68b } .other { fill: #6b7683 }
    .quiet { fill: #9aa5b1 }
  }
</style>"""


def draw(found):
    """The text of the SVG file; of workloads that were measured."""
    parts, y = [], 26
    for what, row, pattern in page.WORKLOADS:
        entries = page.of_workload(found, row, pattern)
        if entries:
            parts += group(what, entries, y)
            y += LINE * (len(entries) + 1) + GAP
    parts.append('<text class="quiet" x="12" y="%d">%s</text>' % (y, escape(caption(found))))
    height = y + 14
    return "\n".join(['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img">'
                      % (WIDTH * 1.35, height * 1.35, WIDTH, height), "<title>Anabranch and other engines</title>", STYLE,
                      '<rect class="card" x="0.5" y="0.5" width="%d" height="%d" rx="6"/>' % (WIDTH - 1, height - 1)] +
                     parts + ["</svg>", ""])


def caption(found):
    if not found:
        return "nothing was measured"
    model, cores = found[-1]["machine"].split(", ")[:2]
    return "%s, %s, %s" % (model, cores, max(e["date"] for e in found)[:10])


def group(what, entries, y):
    """A title, and a bar for each engine; the longest one belongs to the largest value."""
    unit = entries[0]["unit"]
    unit += ", less is better" if intervals.lower_is_better(unit) else ""
    parts = ['<text class="title" x="12" y="%d">%s</text>' % (y, escape(what)),
             '<text class="quiet" x="%d" y="%d" text-anchor="end">%s</text>' % (WIDTH - 12, y, escape(unit))]
    most = max(e["value"] for e in entries)
    for e in entries:
        y += LINE
        bar = max(1.0, BAR * max(0.0, e["value"]) / most)
        value = number(e["value"]) + (" (%s)" % times(e) if e["ratio"] else "")
        parts += ['<text x="12" y="%d">%s</text>' % (y, escape(NAMES[e["engine"]])),
                  '<rect class="%s" x="%d" y="%d" width="%.1f" height="12" rx="2"/>' % (
                      "own" if e["engine"] == "product" else "other", LABEL, y - 10, bar),
                  '<text x="%.1f" y="%d">%s</text>' % (LABEL + bar + 6, y, escape(value))]
    return parts


def times(e):
    """The ratio as a reader sees it: how many times as fast Anabranch is, with its interval."""
    value, low, high = e["ratio"]
    return short(value) + "x" if low is None else "%sx, %s\u2013%s" % (short(value), short(low), short(high))
