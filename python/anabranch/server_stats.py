"""Shows the traffic and the state of each table of parameter servers.

    anabranch ps top 127.0.0.1:6174 127.0.0.1:6175
    anabranch ps top --format prometheus --count 1 127.0.0.1:6174

Rates and times are measured since the last update of the table. Staleness is
the number of server updates that a worker had not seen when its gradients
arrived: its median and its 90th percentile.
"""
from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from typing import Any

from . import _cluster
from .looking.command_line import Parser, complain

_COUNTS = ("number", "rows", "bytes", "pulls", "rows_pulled", "pull_us", "pushes", "rows_pushed", "push_us",
           "found", "missed", "created", "waiting", "refused", "evicted", "expired", "shrunk")
_GONE = ("evicted", "expired", "shrunk")
_COLUMNS = ("server", "table", "rows", "MB", "found", "pulls/s", "rows/s", "us",
            "pushes/s", "rows/s", "us", "stale 50 %", "90 %",
            "new/min", "gone/min")
_NAMED = 3                         # number of stragglers to name, the slowest ones
_TROUBLE = {"refused": "requests were refused", "malformed": "requests were not valid messages",
            "unread": "answers were not read to their end", "failed_snapshots": "snapshots could not be written",
            "lost": "updates were lost with an earlier server",
            "files_returned": "files of dead workers went back to their queue",
            "files_late": "files were finished by workers that had lost their lease"}


def read(endpoint: str, deadline_s: float = 5.0) -> dict[str, Any]:
    """Queries the statistics of a server without joining its job.

    Args:
        endpoint (str): address of the server, ``host:port``.
        deadline_s (float): seconds to wait for the answer. Default 5.

    Returns:
        dict: counters of the server by name: "malformed" counts invalid requests, and "unread" counts answers that a
        caller did not read completely. File queues have "files_taken", "files_done", "files_returned" (files of dead
        workers) and "files_late" (files that were completed after another worker had taken them). "awaited_us"
        contains, for each worker, the time that other workers have waited for it in steps of sync training, sums and
        barriers. "tables" contains, for each table with sparse gradients: rows, bytes, pulls, rows_pulled, pull_us
        (total time within the server), pushes, rows_pushed, push_us, "found" and "missed" (for a growable table:
        lookups of ids with and without a row), "created" (rows of it), "waiting" and "refused" (occurrences of ids
        without a row in updates: not admitted yet, or without room), "evicted", "expired" and "shrunk" (rows that were
        removed at the limit, by age and by score), "number" (of the table on the server), and "late": the numbers of
        pushes from workers that had not seen 0, 1, 2 to 3, 4 to 7 ... updates.

    Raises:
        RuntimeError: no server answers at the address.
    """
    found: dict[str, Any] = {"server": endpoint, "tables": {}, "awaited_us": {}}
    for line in _cluster.server_stats(endpoint, int(1000 * deadline_s)).splitlines():
        if line.startswith("trainer "):
            _, trainer, number = line.split(" ")
            found["awaited_us"][int(trainer)] = int(number)
            continue
        if not line.startswith("table "):
            name, _, number = line.partition(" ")
            found[name] = int(number)
            continue
        parts = line.split(" ", len(_COUNTS) + 2)
        table: dict[str, Any] = dict(zip(_COUNTS, map(int, parts[1:])))
        table["late"] = [int(n) for n in parts[-2].split(",")]
        found["tables"][parts[-1]] = table
    return found


def staleness(late: Sequence[int], share: float) -> int:
    """int: the maximum number of updates that this share of all pushes had missed, rounded to a power of two.

    >>> staleness([5, 3, 2], 0.5), staleness([5, 3, 2], 0.9)
    (0, 3)
    """
    seen, all_of_them = 0, sum(late)
    for place, count in enumerate(late):
        seen += count
        if seen >= share * all_of_them:
            return (1 << place) - 1
    return (1 << len(late)) - 1


def prometheus(found: Sequence[dict[str, Any]]) -> str:
    """str: the statistics in the text format of Prometheus.

    >>> print(prometheus([{"server": "h:1", "updates": 3, "tables": {}, "awaited_us": {}}]))
    # TYPE anabranch_ps_updates counter
    anabranch_ps_updates{server="h:1"} 3
    """
    samples: dict[str, list[str]] = {}
    for one in found:
        labels = 'server="%s"' % one["server"]
        for name, number in one.items():
            if name not in ("server", "tables", "awaited_us"):
                samples.setdefault(name, []).append("{%s} %d" % (labels, number))
        for trainer, number in sorted(one["awaited_us"].items()):
            samples.setdefault("awaited_us", []).append('{%s,trainer="%d"} %d' % (labels, trainer, number))
        for table, counts in sorted(one["tables"].items()):
            mine = labels + ',table="%s"' % table.replace("\\", r"\\").replace('"', r'\"')
            for name in _COUNTS[1:]:
                samples.setdefault("table_" + name, []).append("{%s} %d" % (mine, counts[name]))
            below = 0
            for place, count in enumerate(counts["late"]):
                below += count
                samples.setdefault("staleness_bucket", []).append('{%s,le="%d"} %d' % (mine, (1 << place) - 1, below))
            samples["staleness_bucket"].append('{%s,le="+Inf"} %d' % (mine, below))
            samples.setdefault("staleness_count", []).append("{%s} %d" % (mine, below))
    lines = []
    for name, values in samples.items():
        if not name.startswith("staleness"):
            kind = "gauge" if name in ("table_rows", "table_bytes") else "counter"
            lines.append("# TYPE anabranch_ps_%s %s" % (name, kind))
        elif name == "staleness_bucket":
            lines.append("# TYPE anabranch_ps_staleness histogram")
        lines += ["anabranch_ps_%s%s" % (name, value) for value in values]
    return "\n".join(lines)


def table(found: Sequence[dict[str, Any]], before: Sequence[dict[str, Any]] | None, seconds: float) -> str:
    """str: one row per table. Rates are measured since ``before``, or since the start of the server if it is None.
    The lines below the table report errors and stragglers since the start of the server.

    Args:
        found (list): results of :func:`read`.
        before (list, optional): earlier results of :func:`read`.
        seconds (float): time between the two.
    """
    rows = [_COLUMNS]
    for i, one in enumerate(found):
        for name, now in sorted(one["tables"].items()):
            old = before[i]["tables"].get(name) if before else None
            new = {k: now[k] - (old[k] if old else 0) for k in _COUNTS}
            late = [n - o for n, o in zip(now["late"], old["late"])] if old else now["late"]
            rows.append((one["server"], name, format(now["rows"], ","), "%.1f" % (now["bytes"] / 1e6),
                         _share_found(new),
                         *["%.0f" % (new[k] / seconds) for k in ("pulls", "rows_pulled")],
                         "%.0f" % (new["pull_us"] / max(1, new["pulls"])),
                         *["%.0f" % (new[k] / seconds) for k in ("pushes", "rows_pushed")],
                         "%.0f" % (new["push_us"] / max(1, new["pushes"])),
                         str(staleness(late, 0.5)), str(staleness(late, 0.9)),
                         *["%.0f" % (60 * count / seconds) for count in (new["created"],
                                                                        sum(new[k] for k in _GONE))]))
    widths = [max(len(row[c]) for row in rows) for c in range(len(_COLUMNS))]
    lines = ["  ".join(text.ljust(w) if c < 2 else text.rjust(w)
                       for c, (text, w) in enumerate(zip(row, widths))).rstrip() for row in rows]
    for one in found:
        told = ["%d %s" % (one[name], text) for name, text in _TROUBLE.items() if one[name]]
        slowest = sorted(one["awaited_us"].items(), key=lambda item: -item[1])[:_NAMED]
        told += ["others waited %.1f s for worker %d" % (number / 1e6, trainer) for trainer, number in slowest]
        if told:
            lines.append("%s: %s" % (one["server"], ", ".join(told)))
    return "\n".join(lines)


def _share_found(new: dict[str, int]) -> str:
    """str: a percentage, or "-" for a table that is not growable or without lookups."""
    asked = new["found"] + new["missed"]
    return "%.1f %%" % (100 * new["found"] / asked) if asked else "-"


def parser() -> argparse.ArgumentParser:
    """ArgumentParser: the parser of ``anabranch ps``."""
    made = Parser(prog="anabranch ps", description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("what", choices=["top"], help="What to show; top prints the statistics repeatedly.")
    made.add_argument("servers", nargs="+", metavar="HOST:PORT", help="Addresses of servers.")
    made.add_argument("--format", choices=["table", "json", "prometheus"], default="table",
                      help="Output format; json writes one line per server and update (default: table).")
    made.add_argument("--every", type=float, default=2.0, help="Seconds between two updates (default: 2).")
    made.add_argument("--count", type=int, default=0, help="Number of updates; 0 runs until Ctrl-C or until a server "
                      "has stopped (default: 0).")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Runs ``anabranch ps``.

    Args:
        argv (list of str, optional): arguments. Default: those of the process.

    Returns:
        int: 0, or 1 if a server does not answer.
    """
    args = parser().parse_args(argv)
    before, updates, begun = None, 0, time.monotonic()
    try:
        while True:
            found = [read(server) for server in args.servers]
            now = time.monotonic()
            _show(args.format, found, before, max(now - begun, 1e-3))
            before, updates, begun = found, updates + 1, now
            if updates == args.count:
                return 0
            time.sleep(args.every)
    except KeyboardInterrupt:
        return 0
    except RuntimeError as e:
        return complain("ps", e)


def _show(how: str, found: list[dict[str, Any]], before: list[dict[str, Any]] | None, seconds: float) -> None:
    if how == "json":
        text = "\n".join(json.dumps(dict(one, time=time.time())) for one in found)
    else:
        text = prometheus(found) if how == "prometheus" else table(found, before, seconds)
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
