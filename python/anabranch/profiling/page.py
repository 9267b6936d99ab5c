"""A profile as one page for the browser: a sortable table, a timeline of the threads, the graph and the memory.

The page needs no other file and no network.
"""
from __future__ import annotations

import datetime
import os
from html import escape
from string import Template

from .._terminal import bytes_text, counted, time_text
from ..drawing.svg import to_svg
from ..drawing.timeline import RUN, timeline_svg
from .files import write_whole
from .tables import COLUMNS, node_title

__all__ = ["page_of", "write_page"]

#: Larger graphs make a page that browsers cannot scroll smoothly.
MOST_NODES = 2000
_HERE = os.path.dirname(os.path.abspath(__file__))


def _cells(row, total):
    """(text, value to sort by) of a row, in the order of COLUMNS."""
    times = [row.total_ns, row.min_ns, row.max_ns, row.mean_ns]
    share = 100.0 * row.total_ns / total if total else 0.0
    return ([(str(row.calls), row.calls)] + [(time_text(ns), ns) for ns in times] + [("%.1f %%" % share, share)]
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
    longest = sorted(path, key=lambda part: -part[1])[:12]
    items = "".join("<tr><th>%s</th><td>%s</td><td>%.1f %%</td></tr>" % (
        escape(node_title(node), quote=False), time_text(ns), 100.0 * ns / chain) for node, ns in longest)
    return ("<p>A run takes %s. Its longest chain of operators, which no number of threads shortens, takes %s. "
            "The %d longest operators of the chain, the longest first:</p><div class=scroll><table><thead><tr>"
            "<th>operator</th><th>time</th><th>of the chain</th></tr></thead><tbody>%s</tbody></table></div>"
            % (time_text(plan["run_ns"] / plan["runs"]), time_text(chain), len(longest), items))


def _memory(memory):
    """Bars of the owners, and the largest variables."""
    from ..fluid.memory import OWNERS
    total = memory["total"] or 1
    bars = "".join(
        '<tr><th>%s</th><td>%s</td><td class=bar><div style="width:%.2f%%"></div></td></tr>'
        % (owner, bytes_text(memory[owner]), 100.0 * memory[owner] / total) for owner in OWNERS)
    rows = "".join("<tr><th>%s</th><td>%s</td><td>%s</td><td>%d</td></tr>" % (
        escape(entry["name"], quote=False), bytes_text(entry["bytes"]), entry["owner"], entry["replica"])
        for entry in memory.variables[:200])
    return ("<p>Tensors take %s. The process holds %s; its peak was %s.</p><div class=scroll><table><thead><tr>"
            "<th>owner</th><th>size</th><th></th></tr></thead><tbody>%s</tbody></table></div>"
            "<h3>Variables</h3><div class=scroll><table><thead><tr><th>name</th><th>size</th><th>owner</th>"
            "<th>replica</th></tr></thead><tbody>%s</tbody></table></div>"
            % (bytes_text(memory["total"]), bytes_text(memory.resident), bytes_text(memory.peak), bars, rows))


def _graph(graph):
    if graph is None:
        return "<p>This page was made without a graph.</p>"
    if len(graph.nodes) > MOST_NODES:
        return ("<p>The graph has %d nodes, too many for this page. <code>anabranch draw --graph</code> writes it "
                "to a file.</p>" % len(graph.nodes))
    return to_svg(graph)


def _in_python(report, each):
    """Time from the start of a run to the start of the next one that the engine did not take: Python, and its
    reader."""
    starts = sorted(start for events in report.threads().values() for _, kind, start, _ in events if kind == RUN)
    if len(starts) < 2:
        return ""
    whole = (starts[-1] - starts[0]) / (len(starts) - 1)
    return (" From run to run it was %s: %s of it went to Python code (Executor.run, the script and its reader)."
            % (time_text(whole), time_text(max(whole - each, 0))))


def page_of(report, title="profile", graph=None, memory=None, runs=2):
    """The page as text.

    Args:
        report (Report): measurements.
        title (str): title of the page.
        runs (int): number of the last runs in the timeline, at least 1. Default 2.
        graph (drawing.Graph, optional): graph to show.
        memory (MemoryReport, optional): memory report to show.

    Returns:
        str: HTML, without a reference to any other file.
    """
    with open(os.path.join(_HERE, "page.html"), encoding="utf-8") as file:
        page = Template(file.read())
    overhead = max(report.run_ns - report.computing_ns, 0)
    each = report.run_ns / max(report.runs, 1)
    facts = "%s. The engine took %s per run, and in %.1f %% of that time no operator ran.%s Measured %s." % (
        counted(report.runs, "run"), time_text(each), 100.0 * overhead / max(report.run_ns, 1),
        _in_python(report, each), datetime.datetime.now().strftime("%Y-%m-%d %H:%M"))
    return page.substitute(
        title=escape(title), facts=facts,
        columns="".join("<th><button>%s</button></th>" % name for name in ("Operator", *COLUMNS)),
        types=_table(report.rows("type"), "type"), nodes=_table(report.rows("node"), "node"), chain=_chain(report),
        timeline=timeline_svg(report, runs), graph=_graph(graph),
        memory=_memory(memory) if memory is not None else "<p>This page was made without a memory report.</p>")


def write_page(report, path, title="profile", graph=None, memory=None, runs=2):
    """Writes :func:`page_of` to a file.

    Raises:
        OSError: the file cannot be written.
    """
    write_whole(path, page_of(report, title, graph, memory, runs).encode("utf-8"))
