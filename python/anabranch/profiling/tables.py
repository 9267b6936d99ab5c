"""The tables of a profile as text, in the layout of Fluid. They fit the terminal, and 80 columns elsewhere."""
import sys

from .._terminal import WIDTH, columns, counted, cut, display_width, time_text, wrapped

#: sorted_key -> (description, the value to sort by, descending).
SORT_KEYS = {
    None: ("event first end time", lambda row: -row.first_end_ns),
    "default": ("event first end time", lambda row: -row.first_end_ns),
    "calls": ("number of calls", lambda row: row.calls),
    "total": ("total time", lambda row: row.total_ns),
    "max": ("maximum time", lambda row: row.max_ns),
    "min": ("minimum time", lambda row: row.min_ns),
    "ave": ("average time", lambda row: row.mean_ns),
}
COLUMNS = ("Calls", "Total", "Min.", "Max.", "Ave.", "Ratio.", "GFLOP/s", "GB/s", "Ceiling")
#: Columns that are left out of a table that is too wide, in this order.
_DROPPED = ("GB/s", "GFLOP/s", "Ceiling", "Min.", "Max.")


def text_of(report, sorted_key=None, detail="Default", state="CPU"):
    """str: the whole report as text."""
    width = columns(sys.stdout) if sys.stdout.isatty() else WIDTH
    rows = _sorted(report.rows("node" if detail == "AllOpDetail" else "type", state), sorted_key)
    unit = _unit(rows)
    parts = [_title(report, sorted_key, state, unit), _events(report, rows, sorted_key, detail, state, unit, width)]
    if rows:
        parts.append(_critical(report, width))
    return "\n".join(parts)


def short_text(report, most=10):
    """str: totals and the rows with the most time, ``most`` of them, for the end of ``anabranch profile``."""
    width = columns(sys.stdout) if sys.stdout.isatty() else WIDTH
    rows = _sorted(report.rows(), "total")
    unit = _unit(rows)
    total = sum(row.total_ns for row in rows)
    text = _title(report, "total", "CPU", unit) + "\n" + _events(report, rows[:most], "total", "Default", "CPU", unit,
                                                                width, total)
    if len(rows) > most:
        text += "and %s with %s together\n" % (counted(len(rows) - most, "event"),
                                              time_text(sum(row.total_ns for row in rows[most:])))
    return text


def _banner(text, arrows=False):
    return "\n%s     %s     %s\n" % ("-" * 25 + (">" if arrows else ""), text, ("<" if arrows else "") + "-" * 25)


def _percent(part, whole):
    return "%.1f%%" % (100.0 * part / whole if whole else 0.0)


def _unit(rows):
    """(nanoseconds, name) of the one unit of a table, in which no number has more than five digits before the point."""
    most = max((row.total_ns for row in rows), default=0)
    return (1e3, "us") if most < 1e8 else (1e6, "ms") if most < 1e11 else (1e9, "s")


def _title(report, sorted_key, state, unit):
    runs = 0 if state == "GPU" and not report.on_devices_ns else report.run_ns
    computing = min(runs, report.on_devices_ns if state == "GPU" else report.computing_ns)
    lines = [_banner("Profiling Report", arrows=True),
             "Place: " + {"GPU": "CUDA"}.get(state, state),
             "Time unit: " + unit[1],
             "Sorted by %s in descending order" % SORT_KEYS[sorted_key][0],
             "",
             "Total time: %s%s" % (time_text(runs), "   (runs: %d)" % report.runs if runs else ""),
             "  Computation time       Total: %-11s Ratio: %s" % (time_text(computing), _percent(computing, runs)),
             "  Framework overhead     Total: %-11s Ratio: %s" % (time_text(runs - computing),
                                                                  _percent(runs - computing, runs)),
             "  Peak of one core       %.4g GFLOP/s, %.4g GB/s" % (report.ceiling[0] / 1e9, report.ceiling[1] / 1e9)]
    if report.profile.dropped_events:
        lines.append("  Events left out of the trace (not of the tables): %d" % report.profile.dropped_events)
    return "\n".join(lines)


def _sorted(rows, sorted_key):
    value = SORT_KEYS[sorted_key][1]
    return sorted(rows.values(), key=value, reverse=True)


def _number(value):
    """Three decimals at most, four digits where there are more."""
    return "%.*f" % (3 if value < 9.9995 else 2 if value < 99.995 else 1 if value < 999.95 else 0, value)


def _rate(value):
    return _number(value) if value else "-"


def _cells(name, row, total, unit):
    """Column -> text, the name of the row under "Event"."""
    found = {"Event": name, "Calls": str(row.calls), "Ratio.": _percent(row.total_ns, total),
             "GFLOP/s": _rate(row.gflops), "GB/s": _rate(row.gbytes),
             "Ceiling": "%.0f%%" % (100 * row.of_ceiling) if row.ceiling_ns else "-",
             "On devices": _number(row.device_ns / unit[0])}
    for column, ns in (("Total", row.total_ns), ("Min.", row.min_ns), ("Max.", row.max_ns), ("Ave.", row.mean_ns)):
        found[column] = _number(ns / unit[0])
    return found


def _events(report, rows, sorted_key, detail, state, unit, width, total=None):
    total = sum(row.total_ns for row in rows) if total is None else total
    lines = []
    nodes = _nodes_by_type(report, sorted_key, state) if detail == "OpDetail" else {}
    with_devices = state == "All" and report.on_devices_ns > 0
    for row in rows:
        lines.append(_cells(row.name, row, total, unit))
        for name, node in nodes.get(row.name, ()):
            lines.append(_cells("  " + name, node, total, unit))
    shown = ["Event", *COLUMNS] + ["On devices"] * with_devices
    return _banner("Event Summary") + "\n" + _fitted(shown, lines, width)


def _fitted(shown, lines, width):
    """Returns the table without the columns that do not fit; the last line names them."""
    def needed():
        return sum(max([len(name)] + [len(line[name]) for line in lines]) + 2 for name in shown) - 2
    left_out = []
    for name in _DROPPED:
        if needed() > width:
            shown.remove(name)
            left_out.append(name)
    most = width - sum(max([len(name)] + [len(line[name]) for line in lines]) + 2 for name in shown[1:])
    names = [line["Event"] for line in lines]
    names = [name if display_width(name) <= most else cut(name, max(most - 3, 1)) + "..." for name in names]
    table = [tuple(shown)] + [(event, *(line[name] for name in shown[1:])) for event, line in zip(names, lines)]
    text = _aligned(table)
    return text + ("\nNot shown for lack of width: %s\n" % ", ".join(left_out) if left_out else "")


def _nodes_by_type(report, sorted_key, state):
    """Type -> [(title, row of one node)], when there is more than one."""
    by_type = {}
    for title, row in report.rows("node", state).items():
        by_type.setdefault(title.split(" ")[0], []).append((title, row))
    value = SORT_KEYS[sorted_key][1]
    return {kind: sorted(rows, key=lambda item: value(item[1]), reverse=True)
            for kind, rows in by_type.items() if len(rows) > 1}


def _aligned(table):
    """Lines with columns of equal width, all but the first to the right."""
    widths = [max(len(line[i]) for line in table) for i in range(len(table[0]))]
    return "\n".join("  ".join([line[0].ljust(widths[0])] + [cell.rjust(width) for cell, width
                                                            in zip(line[1:], widths[1:])]) for line in table) + "\n"


#: Entries of the critical path that are printed.
PATH_LINES = 12


def _critical(report, width):
    """How far more threads could help, and the nodes of the longest chain that take the most time."""
    plan, path = report.main_plan(), report.critical_path()
    if plan is None:
        return ""
    mean_run = plan["run_ns"] / plan["runs"]
    chain = sum(ns for _, ns in path)
    measured = (node["on_device"] if node["on_device"]["calls"] else node
                for node in plan["nodes"] if not node["inner"])
    work = sum(m["total_ns"] / m["calls"] for m in measured if m["calls"])
    lines = [_banner("Critical Path"),
             wrapped("A run takes %s, its %s together %s, their longest chain %s: on average, at most %.3g "
                     "operators can run at once." % (
                         time_text(mean_run), counted(sum(not node["inner"] for node in plan["nodes"]), "operator"),
                         time_text(work),
                         time_text(chain), work / chain if chain else 1.0), width).replace("\n  ", "\n"),
             ""]
    longest = sorted(range(len(path)), key=lambda i: -path[i][1])[:PATH_LINES]
    lines.append("%10s  %8s  Event" % ("Ave.", "of chain"))
    for i in sorted(longest):
        node, ns = path[i]
        lines.append("%10s  %8s  %s" % (time_text(ns), _percent(ns, chain), cut(node_title(node), width - 22)))
    if len(path) > PATH_LINES:
        lines.append("and %d shorter operators between them" % (len(path) - PATH_LINES))
    return "\n".join(lines) + "\n"


def node_title(node):
    """str: "mul -> fc_0.tmp_0", with the replica when it is not the first one; of an operator that passes made of
    others, "fused_adam of adam -> fc_0.w_0 ..."."""
    lines = node["place"].split("\n")
    first = lines[1] if len(lines) > 1 else lines[0]
    words = first.strip().split("  ")[0]
    title = (words.split(" ", 1)[1] if words.startswith("#") else words).split(" (")[0]
    if len(lines) > 2:
        title = "%s of %s ..." % (node["type"], title)
    elif len(lines) > 1:
        title = "%s of %s" % (node["type"], title)
    return title + (" @%d" % node["replica"] if node["replica"] else "")
