"""Trains a first model on a CSV, TSV or libsvm file.

    anabranch train clicks.csv --label clicked
    anabranch train ratings.csv --label rating --at-least 4 --model deepfm
    anabranch train flowers.csv --label kind --split-by plant
    anabranch train day-*.csv --test today.csv --label income --model dcn

The command proposes a schema, writes a script, and runs it. The script trains
on a part of the lines, stops when the AUC of a second part stops improving,
and prints the AUC of the rest. If the label has more than two texts, it uses
the log loss and the accuracy instead, and the root mean squared error if it is
a number. You can edit the script and run it again. The model takes
raw rows in `anabranch serve` and `anabranch.Predictor.run_rows`; a model of
libsvm lines takes lists.
"""
from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence

from .._terminal import counted
from ..fluid.errors import InvalidValue
from ..looking.command_line import Parser, ended
from . import features, libsvm, report, templates
from .data_command import add_form_options, form
from .labels import Label, label_of
from .script import Plan, csv_script, libsvm_script
from .statistics import Column, Statistics, expanded, read

_ROLES = ("number", "category", "date", "ignore")
#: Files above this size are streamed, in their order; others are shuffled in memory.
_IN_MEMORY_BYTES = 1 << 30


def _stem(path: str) -> str:
    return os.path.basename(path).split(".")[0].replace("*", "") or "model"


def _plan(args: argparse.Namespace, files: list[str], rows: int, what: str) -> Plan:
    size = sum(os.path.getsize(path) for path in files)
    tests = expanded(args.test or [])
    both = [path for path in tests if os.path.realpath(path) in map(os.path.realpath, files)]
    if both:
        raise InvalidValue("--test: %s is also a file to train on, so that the test would not be one of new rows: "
                           "without --test, a share of the lines (--test-share) is held out" % both[0])
    return Plan(files, tests, args.test_share, args.model, what, args.epochs, rows,
                size <= _IN_MEMORY_BYTES, "model_" + _stem(files[0]))


def _kinds(args: argparse.Namespace, known: Sequence[str]) -> dict[str, str]:
    """dict: column -> kind, as the options say."""
    from .._near import near
    found: dict[str, str] = {}
    for role in _ROLES:
        for name in [name for text in getattr(args, role) or [] for name in text.split(",")]:
            if name not in known:
                raise InvalidValue("--%s: there is no column %s; there are %s%s"
                                   % (role, name, ", ".join(known), near(name, known)))
            if found.get(name, role) != role:
                raise InvalidValue("--%s: the column %s is already given as --%s" % (role, name, found[name]))
            found[name] = role
    return {name: "ignored" if role == "ignore" else role for name, role in found.items()}


def _columns(args: argparse.Namespace, files: list[str]) -> str:
    if args.label is None:
        raise InvalidValue("--label must name the column to predict")
    stats = read(files, form(files[0], args))
    split_by = None if args.split_by is None else stats.column(args.split_by).key
    label = label_of(stats, args.label, args.positive, args.at_least, args.classes)
    kinds = _kinds(args, [str(column.key) for column in stats.columns])
    proposed = [one for one in features.proposals(stats, kinds) if one.column is not label.column]
    if all(one.kind == "ignored" for one in proposed):
        raise InvalidValue("%s: there is no column to predict %s from: %s" % (
            ", ".join(files), args.label,
            "; ".join("%s: %s" % (one.column.key, one.why) for one in proposed) or "it is the only one"))
    sys.stdout.write("%s\n\n%s\n\nlabel: %s, %s\n" % (report.heading(stats), report.columns_table(proposed), args.label,
                                                     label.says))
    return csv_script(_plan(args, files, stats.rows, args.label)._replace(split_by=split_by), stats.form, label,
                      proposed, _group(args, stats, label))


def _group(args: argparse.Namespace, stats: Statistics, label: Label) -> Column | None:
    """Column: the column whose values form the groups of the grouped AUC."""
    if args.group is None:
        return None
    column = stats.column(args.group)
    if column is label.column or not label.two_classes:
        raise InvalidValue("--group %s: a group needs a label of two classes in another column" % args.group)
    return column


def _lines(args: argparse.Namespace, files: list[str]) -> str:
    for option in ("label", "positive", "at_least", "group", "classes", "split_by", *_ROLES):
        if getattr(args, option) not in (None, False):
            raise InvalidValue("--%s: libsvm lines have no columns" % option.replace("_", "-"))
    lines = libsvm.read(files)
    low, high = lines.labels
    sys.stdout.write("%s: %s, %s, indices below %d\n\nlabel: 1 if it is %g\n" % (
        ", ".join(files), counted(lines.rows, "row"), counted(lines.bad, "bad line"), lines.height, high))
    plan = _plan(args, files, lines.rows, "the label")
    height = max([lines.height, *(libsvm.read([path], both_labels=False).height for path in plan.test_files)])
    return libsvm_script(plan, height, (low + high) / 2)


def _is_libsvm(args: argparse.Namespace, path: str) -> bool:
    if args.format is not None:
        return bool(args.format == "libsvm")
    return any(part in ("libsvm", "svm", "svmlight") for part in os.path.basename(path).split(".")[1:])


def _train(args: argparse.Namespace) -> int:
    files = expanded(args.files)
    path = args.out or "train_%s.py" % _stem(files[0])
    if os.path.exists(path) and not args.force:
        raise InvalidValue("%s exists: pass --out with another name, or --force to replace it" % path)
    script = _lines(args, files) if _is_libsvm(args, files[0]) else _columns(args, files)
    with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(script)
    sys.stdout.write("wrote %s\n" % path)
    sys.stdout.flush()
    if args.no_run:
        return 0
    code = subprocess.run([sys.executable, path]).returncode
    if code:
        return 1
    folder = "model_" + _stem(files[0])
    sys.stdout.write("wrote %s; to serve it: anabranch serve %s\n" % (folder, folder))
    return 0


def parser() -> argparse.ArgumentParser:
    """ArgumentParser: the parser of ``anabranch train``."""
    made = Parser(prog="anabranch train", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("files", nargs="+", metavar="FILE",
                      help="Files, or patterns such as 'day-*.csv'; also .gz and .zst.")
    made.add_argument("--label", metavar="COLUMN", help="Column to predict: two values, more texts (classes), or a "
                      "number. Files without a header have columns 0, 1, ...")
    made.add_argument("--positive", metavar="TEXT", help="Label that counts as 1 (default: the second of two values).")
    made.add_argument("--at-least", type=float, metavar="X", help="Labels of at least this number count as 1.")
    made.add_argument("--classes", action="store_true", help="Numbers of the label are classes (default: a number to "
                      "predict). Texts are classes anyway, if there are more than two.")
    made.add_argument("--split-by", metavar="COLUMN", help="Lines with equal texts in this column, such as those of a "
                      "user, are all in training or all in the test (default: lines are split one by one).")
    made.add_argument("--group", metavar="COLUMN", help="Column of groups, such as user ids: also prints the mean AUC "
                      "within the groups (GAUC).")
    made.add_argument("--model", choices=sorted(templates.MODELS), default="lr", help="Kind of model: logistic "
                      "(or linear) regression, or a network with embeddings (default: %(default)s).")
    made.add_argument("--test", nargs="+", metavar="FILE", help="Files to test on (default: a share of the lines).")
    made.add_argument("--test-share", type=float, default=0.1, metavar="S", help="Share of the lines to test on "
                      "(default: %(default)s).")
    for role, words in zip(_ROLES, ("that are numbers", "that are categories, such as ids", "that are dates or times",
                                  "to leave out")):
        made.add_argument("--" + role, action="append", metavar="A,B", help="Columns %s." % words)
    made.add_argument("--epochs", type=int, default=30, metavar="N", help="Maximum number of epochs; training stops "
                      "when the metric of the held-out lines has not improved for two epochs (default: %(default)s).")
    made.add_argument("--format", choices=["columns", "libsvm"], help="Format of the files (default: libsvm if a name "
                      "has .libsvm or .svm, otherwise columns).")
    add_form_options(made)
    made.add_argument("--out", metavar="SCRIPT", help="Script to write (default: train_FILE.py).")
    made.add_argument("--force", action="store_true", help="Replaces the script if it exists.")
    made.add_argument("--no-run", action="store_true", help="Only writes the script.")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Runs ``anabranch train``.

    Args:
        argv (list of str, optional): arguments. Default: those of the process.

    Returns:
        int: 0; 1 if the files cannot be used, or training fails.
    """
    made = parser()
    args = made.parse_args(argv)
    if not 0 < args.test_share < 1 or args.epochs < 1:
        made.error("--test-share must be between 0 and 1, and --epochs at least 1, got %g and %d"
                   % (args.test_share, args.epochs))
    if (args.positive is not None) + (args.at_least is not None) + args.classes > 1:
        made.error("--positive, --at-least and --classes exclude each other")
    return ended("train", lambda: _train(args))
