"""The tables of a profile as text. Times are in milliseconds, as Fluid prints them."""

#: sorted_key -> (what it says, the value to sort by, descending).
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


def text_of(report, sorted_key=None, detail="Default", state="CPU"):
    """The whole report as text."""
    rows = _sorted(report.rows("node" if detail == "AllOpDetail" else "type", state), sorted_key)
    parts = [_title(report, sorted_key, state), _events(report, rows, sorted_key, detail, state)]
    if rows:
        parts.append(_critical(report))
    return "\n".join(parts)


def _banner(text, arrows=False):
    return "\n%s     %s     %s\n" % ("-" * 25 + (">" if arrows else ""), text, ("<" if arrows else "") + "-" * 25)


def _percent(part, whole):
    return "%.4g%%" % (100.0 * part / whole if whole else 0.0)


def _title(report, sorted_key, state):
    runs = 0 if state == "GPU" and not report.on_devices_ns else report.run_ns
    computing = min(runs, report.on_devices_ns if state == "GPU" else report.computing_ns)
    lines = [_banner("Profiling Report", arrows=True),
             "Place: " + {"GPU": "CUDA"}.get(state, state),
             "Time unit: ms",
             "Sorted by %s in descending order" % SORT_KEYS[sorted_key][0],
             "",
             "Total time: %.6g%s" % (runs / 1e6, "   (runs: %d)" % report.runs if runs else ""),
             "  Computation time       Total: %-11.6g Ratio: %s" % (computing / 1e6, _percent(computing, runs)),
             "  Framework overhead     Total: %-11.6g Ratio: %s" % ((runs - computing) / 1e6,
                                                                    _percent(runs - computing, runs)),
             "  One core at best       %.4g GFLOP/s, %.4g GB/s" % (report.ceiling[0] / 1e9, report.ceiling[1] / 1e9)]
    if report.profile.dropped_events:
        lines.append("  Events left out of the trace (not of the tables): %d" % report.profile.dropped_events)
    return "\n".join(lines)


def _sorted(rows, sorted_key):
    value = SORT_KEYS[sorted_key][1]
    return sorted(rows.values(), key=value, reverse=True)


def _number(value, places=4):
    return "%.*g" % (places, value) if value else "-"


def _cells(name, row, total, with_devices=False):
    cells = (name, str(row.calls), "%.6g" % (row.total_ns / 1e6), "%.6g" % (row.min_ns / 1e6),
            "%.6g" % (row.max_ns / 1e6), "%.6g" % (row.mean_ns / 1e6), "%.4g" % (row.total_ns / total if total else 0),
            _number(row.gflops), _number(row.gbytes), "%.0f%%" % (100 * row.of_ceiling) if row.ceiling_ns else "-")
    return cells + ("%.6g" % (row.device_ns / 1e6),) if with_devices else cells


def _events(report, rows, sorted_key, detail, state):
    total = sum(row.total_ns for row in rows)
    lines = []
    nodes = _nodes_by_type(report, sorted_key, state) if detail == "OpDetail" else {}
    with_devices = state == "All" and report.on_devices_ns > 0
    for row in rows:
        lines.append(_cells(row.name, row, total, with_devices))
        for name, node in nodes.get(row.name, ()):
            lines.append(_cells("  " + name, node, total, with_devices))
    table = _aligned([("Event",) + COLUMNS + (("On devices",) if with_devices else ())] + lines)
    return _banner("Event Summary") + "\n" + table


def _nodes_by_type(report, sorted_key, state):
    """Type -> [(title, row of one node)], when there is more than one."""
    by_type = {}
    for title, row in report.rows("node", state).items():
        by_type.setdefault(title.split(" ")[0], []).append((title, row))
    value = SORT_KEYS[sorted_key][1]
    return {kind: sorted(rows, key=lambda item: value(item[1]), reverse=True)
            for kind, rows in by_type.items() if len(rows) > 1}


def _aligned(table):
    widths = [max(len(line[i]) for line in table) + 2 for i in range(len(table[0]))]
    return "\n".join("".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in table) + "\n"


#: Entries of the critical path that are printed.
PATH_LINES = 12


def _critical(report):
    """How far more threads could help, and the nodes on the longest chain that take the most time."""
    plan, path = report.main_plan(), report.critical_path()
    if plan is None:
        return ""
    mean_run = plan["run_ns"] / plan["runs"]
    chain = sum(ns for _, ns in path)
    measured = (node["on_device"] if node["on_device"]["calls"] else node
                for node in plan["nodes"] if not node["inner"])
    work = sum(m["total_ns"] / m["calls"] for m in measured if m["calls"])
    lines = [_banner("Critical Path"),
             "A run takes %.4g ms, all of its %d operators together %.4g ms, their longest chain %.4g ms:"
             % (mean_run / 1e6, sum(not node["inner"] for node in plan["nodes"]), work / 1e6, chain / 1e6),
             "at most %.3g of them can be at work at once on average." % (work / chain if chain else 1.0),
             ""]
    longest = sorted(range(len(path)), key=lambda i: -path[i][1])[:PATH_LINES]
    table = [("Ave.", "of chain", "Event")]
    for i in sorted(longest):
        node, ns = path[i]
        table.append(("%.4g" % (ns / 1e6), "%.1f%%" % (100.0 * ns / chain if chain else 0), node_title(node)))
    lines.append(_aligned(table).rstrip("\n"))
    if len(path) > PATH_LINES:
        lines.append("and %d shorter ones between them" % (len(path) - PATH_LINES))
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
