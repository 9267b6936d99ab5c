"""Shows, copies and compares growable embedding tables.

TABLE is a file, a folder of files, or a running server.

    anabranch table stat model/clicks
    anabranch table stat 127.0.0.1:6174 --name clicks
    anabranch table dump model/clicks --out clicks.npz
    anabranch table diff before/clicks after/clicks

A server continues to apply updates while its table is read, so different rows
may be from different steps.
"""
from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

import numpy as np

from .command_line import Parser, complain
from .table_data import TableData, read

_SHARES = (0, 50, 90, 99, 100)
_COUNTERS = ("created", "waiting", "refused", "evicted", "expired", "shrunk")


def weights(table: TableData) -> tuple[str, np.ndarray]:
    """(str, numpy.ndarray): the meaning of the weight of a row, and the weights: how often an id was seen, its shows,
    or the length of its row, whichever the table has."""
    if len(table.counts):
        return "seen", table.counts
    if table.policy == "score":
        return "shows", table.rows[:, 0]
    return "length", np.sqrt((table.rows.astype("float64") ** 2).sum(axis=1))


def rules(table: TableData) -> str:
    """str: the rules in the header of a table."""
    header = table.header
    found = ["%s%s=%g" % (name, "_s" * (table.timed and name == "expire_after"), header[name]) for name, off in (
        ("max_bytes", 0), ("admit_count", 1), ("admit_probability", 1), ("expire_after", 0)) if header[name] != off]
    if header["max_bytes"]:
        found.append("evict=%s" % (table.policy if header["rules"] & 1 else "False"))
    return ", ".join(found) or "none"


def stat(table: TableData, top: int) -> str:
    """str: sizes, ages and the heaviest ids of a table."""
    header, (kind, weight) = table.header, weights(table)
    row_bytes = 12 + 4 * (table.rows.shape[1] + table.moments.shape[1] + bool(len(table.counts)))
    lines = ["table %s" % table.name,
             "  rows      %d of width %d with %s, %.1f MB" % (
                 len(table.keys), header["width"], "the moments of %s" % table.rule if table.moments.size else
                 "no moments", len(table.keys) * row_bytes / 1e6),
             "  time      %d" % header["clock"] if table.timed else "  updates   %d" % (header["clock"] - 1),
             "  rules     %s" % rules(table)]
    if len(table.keys):
        for name, numbers in (("age", table.ages), (kind, weight)):
            lines.append("  %-9s %s" % (name, ", ".join("%d %%: %g" % (share, np.percentile(numbers, share))
                                                        for share in _SHARES)))
        heavy = np.argsort(-weight, kind="stable")[:top]
        lines.append("  heaviest  %s" % ", ".join("%d: %g" % (table.keys[i], weight[i]) for i in heavy))
    if table.found:
        lines.append("  counts    %s" % ", ".join("%s %d" % (name, table.found[name]) for name in _COUNTERS))
    return "\n".join(lines)


def dump(table: TableData, path: str) -> None:
    """Writes a table to a NumPy archive (``.npz``), or to text: an id, its age and its numbers a line."""
    if path.endswith(".npz"):
        np.savez(path, keys=table.keys, ages=table.ages, rows=table.rows, moments=table.moments, counts=table.counts)
        return
    lines = ("%d\t%d\t%s\n" % (key, age, " ".join("%.9g" % number for number in row))
             for key, age, row in zip(table.keys, table.ages, table.rows))
    if path == "-":
        sys.stdout.writelines(lines)
        return
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(lines)


def diff(one: TableData, other: TableData, top: int) -> tuple[bool, str]:
    """(bool, str): whether two tables have the same rows and moments, and how they differ."""
    if one.header["width"] != other.header["width"]:
        return False, "rows of %d and of %d numbers" % (one.header["width"], other.header["width"])
    _, left, right = np.intersect1d(one.keys, other.keys, assume_unique=True, return_indices=True)
    gap = np.abs(one.rows[left].astype("float64") - other.rows[right]).max(axis=1, initial=0.0)
    moved = (one.rows[left].view("u4") != other.rows[right].view("u4")).any(axis=1)
    lines = ["ids only in the first: %d, only in the second: %d, in both: %d" % (
        len(one.keys) - len(left), len(other.keys) - len(left), len(left)),
        "rows that differ: %d%s" % (moved.sum(), ", by up to %g" % gap.max() if moved.any() else "")]
    same = len(one.keys) == len(other.keys) == len(left) and not moved.any()
    if one.moments.shape[1] == other.moments.shape[1]:
        moments = (one.moments[left].view("u4") != other.moments[right].view("u4")).any(axis=1)
        lines.append("moments that differ: %d" % moments.sum())
        same = same and not moments.any()
    far = [i for i in np.argsort(-gap, kind="stable")[:top] if moved[i]]
    if far:
        lines.append("farthest: %s" % ", ".join("%d: %g" % (one.keys[left][i], gap[i]) for i in far))
    return bool(same), "\n".join(lines)


def parser() -> argparse.ArgumentParser:
    """ArgumentParser: the parser of ``anabranch table``."""
    made = Parser(prog="anabranch table", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("what", choices=["stat", "dump", "diff"], help="What to do. diff ends with exit code 1 if the "
                      "tables differ.")
    made.add_argument("tables", nargs="+", metavar="TABLE", help="File, folder or HOST:PORT; diff takes two.")
    made.add_argument("--name", help="Name of the table, if a folder or a server holds several.")
    made.add_argument("--out", default="-", metavar="FILE", help="File that dump writes: a NumPy archive if the name "
                      "ends in .npz, otherwise text (default: -, text to stdout).")
    made.add_argument("--top", type=int, default=10, metavar="N", help="Number of ids to list (default: 10).")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Runs ``anabranch table``.

    Args:
        argv (list of str, optional): arguments. Default: those of the process.

    Returns:
        int: 0; 1 if the compared tables differ, or a table cannot be read.
    """
    made = parser()
    args = made.parse_args(argv)
    if len(args.tables) != 2 and args.what == "diff":
        made.error("diff takes two tables, got %d" % len(args.tables))
    try:
        found = [read(where, args.name) for where in args.tables]
        if args.what == "stat":
            sys.stdout.write("\n".join(stat(table, args.top) for tables in found for table in tables) + "\n")
            return 0
        for where, tables in zip(args.tables, found):
            if len(tables) > 1:
                made.error("%s holds several tables: choose one by --name: %s"
                           % (where, ", ".join(table.name for table in tables)))
        if args.what == "dump":
            if len(found) > 1:
                made.error("dump takes one table, got %d" % len(found))
            dump(found[0][0], os.fspath(args.out))
            return 0
        same, text = diff(found[0][0], found[1][0], args.top)
        sys.stdout.write(text + "\n")
        return 0 if same else 1
    except BrokenPipeError:
        return 1
    except (OSError, RuntimeError, ValueError) as e:
        return complain("table", e)
