"""A profile as one page for the browser: a table that sorts, what each thread did, the graph, the memory.

The page holds all that it shows: it opens from a disk without a network.
"""
from __future__ import annotations

import datetime
import os
from html import escape
from string import Template

from ..drawing.lanes import lanes_svg
from ..drawing.svg import to_svg
from .files import write_whole
from .tables import COLUMNS, node_title

__all__ = ["page_of", "write_page"]

#: Larger graphs make a page that no browser moves in.
MOST_NODES = 2000
_HERE = os.path.dirname(os.path.abspath(__file__))


def _cells(row, total):
    """(text, value to sort by) of a row, in the order of COLUMNS."""
    ms = [row.total_ns / 1e6, row.min_ns / 1e6, row.max_ns / 1e6, row.mean_ns / 1e6]
    share = 100.0 * row.total_ns / total if total else 0.0
    return ([(str(row.calls), row.calls)] + [("%.3g" % value, value) for value in ms] + [("%.1f %%" % share, share)]
            + [("%.3g" % value if value else "", value) for value in (row.gflops, row.gbytes)]
            + [("%.0f %%" % (100 * row.of_ceiling) if row.ceiling_ns else "", row.of_ceiling)])


def _table(rows, kind):
    """Rows of the table of operators; ``kind``: "type" or "node"."""
    total = sum(row.total_ns for row in rows.values())
    out = []
    for row in sorted(rows.values(), key=lambda row: -row.total_ns):
        cells = "".join('<td data-v="%r">%s</td>' % (float(value), text) for text, value in _cells(row, total))
        out.append('<tr class="%s"><th title="%s">%s</th>%s</tr>'
                   % (kind, escape(row.place), escape(row.name, quote=False), cells))
    return "\n".join(out)


def _chain(report):
    """The critical path as a list."""
    plan, path = report.main_plan(), report.critical_path()
    if plan is None or not path:
        return "<p>No run was measured.</p>"
    chain = sum(ns for _, ns in path)
    longest = sorted(sorted(range(len(path)), key=lambda i: -path[i][1])[:12])
    items = "".join("<tr><th>%s</th><td>%.3g</td><td>%.1f %%</td></tr>" % (
        escape(node_title(path[i][0]), quote=False), path[i][1] / 1e6, 100.0 * path[i][1] / chain) for i in longest)
    return ("<p>A run takes %.3f ms; its longest chain of operators, which no number of threads shortens, %.3f ms. "
            "Its %d longest parts:</p><div class=scroll><table><thead><tr><th>operator</th><th>ms</th><th>of the "
            "chain</th></tr></thead><tbody>%s</tbody></table></div>"
            % (plan["run_ns"] / plan["runs"] / 1e6, chain / 1e6, len(longest), items))


def _memory(memory):
    """Bars of the owners, and the largest variables."""
    from ..fluid.memory import OWNERS
    total = memory["total"] or 1
    bars = "".join(
        '<tr><th>%s</th><td>%.3f</td><td class=bar><div style="width:%.2f%%"></div></td></tr>'
        % (owner, memory[owner] / 1e6, 100.0 * memory[owner] / total) for owner in OWNERS)
    rows = "".join("<tr><th>%s</th><td>%.3f</td><td>%s</td><td>%d</td></tr>" % (
        escape(entry["name"], quote=False), entry["bytes"] / 1e6, entry["owner"], entry["replica"])
        for entry in memory.variables[:200])
    return ("<p>%.1f MB in all; the process holds %.1f MB, at its peak %.1f MB.</p><div class=scroll><table><thead><tr>"
            "<th>owner</th><th>MB</th><th></th></tr></thead><tbody>%s</tbody></table></div>"
            "<h3>Variables</h3><div class=scroll><table><thead><tr><th>name</th><th>MB</th><th>owner</th>"
            "<th>replica</th></tr></thead><tbody>%s</tbody></table></div>"
            % (total / 1e6, memory.resident / 1e6, memory.peak / 1e6, bars, rows))


def _graph(graph):
    if graph is None:
        return "<p>No graph was given.</p>"
    if len(graph.nodes) > MOST_NODES:
        return ("<p>The graph has %d nodes, too many for a page; <code>anabranch draw --graph</code> writes a file."
                "</p>" % len(graph.nodes))
    return to_svg(graph)


def page_of(report, title="profile", graph=None, memory=None, runs=2):
    """The page as text.

    Args:
        report (Report): what was measured.
        title (str): of the page. ``runs`` (int): how many of the last runs the timeline shows, at least 1. Default 2.
        graph (drawing.Graph, optional): to show. ``memory`` (MemoryReport, optional): to show.

    Returns:
        str: HTML, without a reference to any other file.
    """
    with open(os.path.join(_HERE, "page.html"), encoding="utf-8") as file:
        page = Template(file.read())
    overhead = max(report.run_ns - report.computing_ns, 0)
    facts = "%d runs, %.3f ms each; %.1f %% of that no operator was at work; measured %s" % (
        report.runs, report.run_ns / max(report.runs, 1) / 1e6, 100.0 * overhead / max(report.run_ns, 1),
        datetime.datetime.now().strftime("%Y-%m-%d %H:%M"))
    return page.substitute(
        title=escape(title), facts=facts,
        columns="".join("<th><button>%s</button></th>" % name for name in ("Operator", *COLUMNS)),
        types=_table(report.rows("type"), "type"), nodes=_table(report.rows("node"), "node"), chain=_chain(report),
        timeline=lanes_svg(report, runs), graph=_graph(graph),
        memory=_memory(memory) if memory is not None else "<p>No report of the memory was given.</p>")


def write_page(report, path, title="profile", graph=None, memory=None, runs=2):
    """Writes :func:`page_of` to a file.

    Raises:
        OSError: the file cannot be written.
    """
    write_whole(path, page_of(report, title, graph, memory, runs).encode("utf-8"))
