"""Tables about the columns of files, for a terminal of 80 columns."""
from __future__ import annotations

from .._terminal import counted, cut, display_width, wrapped
from .drift import Drift
from .features import Proposal, shown
from .statistics import Column, Statistics

_WIDTH = 80


def _aligned(rows: list[list[str]], left: set[int]) -> list[str]:
    """list of str: rows whose columns are aligned; those in ``left`` to the left. The last one is cut at a comma."""
    widths = [max(display_width(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [text + " " * (width - display_width(text)) if i in left else
                 " " * (width - display_width(text)) + text for i, (text, width) in enumerate(zip(row, widths))]
        line = "  ".join(cells).rstrip()
        lines.append(line if display_width(line) <= _WIDTH else cut(line, _WIDTH + 1).rpartition(", ")[0])
    return lines


def _percent(part: float, whole: float) -> str:
    return "%.3g %%" % (100 * part / whole) if part and whole else "-"


def _distinct(column: Column) -> str:
    number = int(column.distinct + 0.5)
    return "%s%s" % ("" if column.distinct_is_exact else "~", format(number if number < 1000 else
                     int(float("%.3g" % number)) if not column.distinct_is_exact else number, ","))


def values(column: Column, kind: str) -> str:
    """str: the range of a column of numbers, or the heaviest values with their shares."""
    if kind == "number":
        half = " median %s" % shown(float(sorted(column.sample)[len(column.sample) // 2])) if len(column.sample) else ""
        bad = ", %s not a number" % format(column.not_numbers, ",") if column.not_numbers else ""
        huge = ", %s infinite" % format(column.infinite, ",") if column.infinite else ""
        return "%s to %s,%s, mean %s%s%s" % (shown(column.low), shown(column.high), half, shown(column.mean), bad, huge)
    heavy = [(text, count) for text, count in column.heavy if count > 1][:6]
    texts = ["%s %s" % (cut(text, 16) if text.isprintable() else repr(text)[:16], _percent(count, column.values))
             for text, count in heavy]
    return ", ".join(texts) or "no value occurs twice"


def columns_table(proposed: list[Proposal]) -> str:
    """str: a row for each column."""
    rows = [["column", "becomes", "missing", "distinct", "range, or heaviest values"]]
    for one in proposed:
        name = str(one.column.key)
        rows.append([cut(name, 20) if name.isprintable() else repr(name)[:20], one.kind,
                     _percent(one.column.missing, one.column.values), _distinct(one.column),
                     values(one.column, "number" if one.column.is_numeric and one.kind in ("number", "ignored")
                            else one.kind)])
    return "\n".join(_aligned(rows, {0, 1, 4}))


def heading(stats: Statistics) -> str:
    """str: files, rows and malformed lines, with the first of them."""
    files = stats.files[0] if len(stats.files) == 1 else counted(len(stats.files), "file")
    lines = ["%s: %s, %s, %s%s" % (
        files, counted(stats.rows, "row"), counted(len(stats.columns), "column"), counted(stats.bad, "bad line"),
        " (%s)" % _percent(stats.bad, stats.rows + stats.bad) if stats.bad else "")]
    for text in stats.shown_bad:
        printable = "".join(letter if letter.isprintable() else "?" for letter in text)
        lines.append(cut(printable, 3 * _WIDTH))
    return "\n".join(wrapped(line, _WIDTH) for line in lines)


def drift_table(found: list[Drift]) -> str:
    """str: the columns of two sets, those that differ most first."""
    rows = [["column", "PSI", "", "what changed"]]
    for one in found:
        rows.append([cut(one.name, 20), "%.3f" % one.psi, one.grade, one.what])
    return "\n".join(_aligned(rows, {0, 2, 3}))
