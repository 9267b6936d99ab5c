"""Describes the columns of CSV and TSV files, and proposes a schema for them.

    anabranch data stats clicks.csv
    anabranch data stats day-*.csv --against today.csv
    anabranch data stats clicks.csv --schema clicks_schema.py

The files are read once, and memory use does not depend on their size. Counts
and ranges are exact; medians come from a sample of 4096 values, and numbers of
distinct values above 256 (with ~) are within about 2 %.
"""
from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from ..looking.command_line import Parser, ended
from . import features, report
from .drift import drift
from .statistics import SEPARATORS, Form, Statistics, expanded, form_of, read


def add_form_options(made: argparse.ArgumentParser) -> None:
    """Adds the options that say how files are written."""
    made.add_argument("--separator", choices=sorted(SEPARATORS), help="Character between the fields (default: the one "
                      "that occurs most often in the first line).")
    made.add_argument("--header", choices=["yes", "no"], help="Whether the first line contains the names of the "
                      "columns (default: yes, unless one of its fields is a number).")


def form(path: str, args: argparse.Namespace) -> Form:
    """Form: how a file is written, by the options."""
    return form_of(path, SEPARATORS.get(args.separator), None if args.header is None else args.header == "yes")


def _stats(args: argparse.Namespace) -> int:
    files = expanded(args.files)
    stats = read(files, form(files[0], args))
    proposed = features.proposals(stats)
    sys.stdout.write("%s\n\n%s\n" % (report.heading(stats), report.columns_table(proposed)))
    if args.against:
        _compare(stats, expanded(args.against))
    code = features.schema_code(stats.form, proposed)
    if args.schema is None:
        sys.stdout.write("\nA schema to start with:\n\n%s" % code)
        return 0
    with open(args.schema, "w", encoding="utf-8") as file:
        file.write("import anabranch\n\n" + code)
    sys.stdout.write("\nwrote %s\n" % args.schema)
    return 0


def _compare(stats: Statistics, files: list[str]) -> None:
    other = read(files, stats.form)
    found = drift(stats, other)
    sys.stdout.write("\n%s\n\n%s\n" % (report.heading(other), report.drift_table(found)))


def parser() -> argparse.ArgumentParser:
    """ArgumentParser: the parser of ``anabranch data``."""
    made = Parser(prog="anabranch data", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("what", choices=["stats"], help="What to do.")
    made.add_argument("files", nargs="+", metavar="FILE",
                      help="Files, or patterns such as 'day-*.csv'; also .gz and .zst.")
    made.add_argument("--against", nargs="+", metavar="FILE", help="Other files, whose columns are compared with "
                      "these. A population stability index (PSI) of 0.1 means some drift, 0.25 strong drift.")
    made.add_argument("--schema", metavar="OUT", help="Python file that the proposed schema is written to (default: "
                      "it is printed).")
    add_form_options(made)
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Runs ``anabranch data``.

    Args:
        argv (list of str, optional): arguments. Default: those of the process.

    Returns:
        int: 0; 1 if a file cannot be read.
    """
    args = parser().parse_args(argv)
    return ended("data", lambda: _stats(args))
