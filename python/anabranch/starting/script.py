"""Writes the script that trains a first model."""
from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from . import features, templates
from .features import Proposal, call, name_of
from .labels import Label
from .statistics import Column, Form

#: Number of rows that are used to choose the penalty of a regression.
_ROWS_TO_CHOOSE = 100_000
#: Weights that an epoch with a penalty may update, which updates all of them in every step: about ten seconds.
_MOST_UPDATES = 2e9


class Plan(NamedTuple):
    """The model of a script, and its data."""

    files: Sequence[str]
    test_files: Sequence[str]
    test_share: float       # of the files, if there are no files for the test
    model: str
    what: str               # the label in words
    epochs: int
    rows: int
    in_memory: bool
    folder: str             # of the model
    split_by: str | int | None = None   # column whose lines are wholly in one share


def filled(text: str, values: Mapping[str, str]) -> str:
    """str: a template with its values.

    >>> filled("@A@ + 1", {"A": "2"})
    '2 + 1'
    """
    return re.sub("@([A-Z_]+)@", lambda found: values[found.group(1)], text)


def csv_script(plan: Plan, form: Form, label: Label, proposed: Sequence[Proposal], group: Column | None = None) -> str:
    """str: a script for files of columns. ``group``: the column whose values form the groups of the grouped AUC."""
    lines, numbers, categories = _schema(form, proposed)
    lines += ["# the label: " + label.says, label.code]
    group_name = None if group is None else "group_" + name_of(group)
    if group is not None:
        lines += ["# the groups of GAUC", call(group, "text", name=group_name) + ".hash(2 ** 62)"]
    values = {"SCHEMA": "\n".join(lines), "GROUP_NAME": repr(group_name),
              "LABEL": repr(name_of(label.column)), "NUMBERS": _listed("numbers", numbers),
              "CATEGORIES": _listed("categories", categories),
              "CLASSES_LINE": "CLASSES = schema[label].size\n" if label.classes else ""}
    models = templates.MODELS
    if label.classes:
        models = templates.CLASS_MODELS
        loss = templates.SOFTMAX
    elif label.two_classes:
        loss = _classes('fluid.layers.cast(inputs[label], "float32")', group is not None, templates.MINIMIZE)
    else:
        loss = filled(templates.NUMBERS, {"MEAN": "%.6g" % label.column.mean, "SCALE": "%.6g" % label.column.deviation})
    return _whole(plan, filled(templates.COLUMNS, values) + "\n" + models[plan.model] + loss,
                  ", schema=schema")


def libsvm_script(plan: Plan, height: int, threshold: float) -> str:
    """str: a script for libsvm lines, whose labels are 1 from ``threshold`` on."""
    truth = "fluid.layers.cast(inputs[label] >= %r, \"float32\")" % threshold
    penalized = plan.model == "lr" and height * plan.rows / _batch(plan.rows) <= _MOST_UPDATES
    minimize = templates.MINIMIZE_PENALIZED if penalized else templates.MINIMIZE
    middle = (filled(templates.LIBSVM, {"HEIGHT": str(height)}) + templates.LIBSVM_MODELS[plan.model]
              + _classes(truth, False, minimize))
    return _whole(plan, middle, "", penalized)


def _classes(truth: str, grouped: bool, minimize: str) -> str:
    return filled(templates.CLASSES, {
        "MINIMIZE": minimize,
        "TRUTH": truth, "GROUP": ", inputs[group]" if grouped else "", "GAUC": ', "gauc"' if grouped else "",
        "GAUC_TEXT": "GAUC %.4f, " if grouped else "", "GAUC_VALUE": 'result["gauc"], ' if grouped else ""})


def _batch(rows: int) -> int:
    """A power of two, so that an epoch of a small file has enough steps."""
    return 1024 if rows >= 1_000_000 else min(max(2 ** int(math.log2(max(rows, 2) / 64)), 32), 256)


def _fit(plan: Plan, train_end: float, penalized: bool) -> dict[str, str]:
    """dict: the parts of the script that train."""
    if not penalized:
        return {"NUMPY": "", "ARGUMENTS": "", "SET_PENALTY": "", "FIT": templates.FIT}
    rows = max(round(plan.rows * train_end), 1)
    share = min(1, _ROWS_TO_CHOOSE / rows)
    some = "train" if share == 1 else "dataset(FILES, 0, %.6g)" % (train_end * share)
    return {"NUMPY": "import numpy as np\n\n", "ARGUMENTS": ", rows, l2_of_all", "SET_PENALTY": templates.SET_PENALTY,
            "FIT": filled(templates.FIT_PENALIZED, {"SOME": some, "ROWS": str(rows),
                                                    "SOME_ROWS": str(max(round(rows * share), 1))})}


def _whole(plan: Plan, middle: str, save: str, penalized: bool = False) -> str:
    train_end = 0.9 if plan.test_files else round(0.9 * (1 - plan.test_share), 6)
    valid_end = 1 if plan.test_files else round(1 - plan.test_share, 6)
    test = "%r, 0, 1" % list(plan.test_files) if plan.test_files else "FILES, %s, 1" % valid_end
    values = {"MODEL": plan.model, "WHAT": plan.what, "FILES": repr(list(plan.files)), "TEST": test,
              "TRAIN_END": str(train_end), "VALID_END": str(valid_end), "EPOCHS": str(plan.epochs),
              "RATE": "0.005" if plan.model == "lr" else "0.001",
              "BATCH": str(_batch(plan.rows)),
              "DATASET": "InMemoryDataset" if plan.in_memory else "QueueDataset",
              "IN_MEMORY": ", in memory" if plan.in_memory else ", in the order of the files",
              "LOAD": "    data.load_into_memory()\n" if plan.in_memory else "",
              "SHUFFLE": "            data.local_shuffle()\n" if plan.in_memory else "",
              "BY": "" if plan.split_by is None else " of %s" % ascii(plan.split_by)[:30],
              "COLUMN": "" if plan.split_by is None else ", column=%r" % (plan.split_by,),
              "FOLDER": repr(plan.folder), "SAVE": save, **_fit(plan, train_end, penalized)}
    return filled(templates.HEAD, values) + middle + filled(templates.TAIL, values)


def _schema(form, proposed):
    """(lines of Python, features that are numbers, features that are ids)."""
    lines = features.schema_code(form, []).splitlines()
    numbers, categories = [], []
    for one in proposed:
        lines += features.feature_code(one)
        if one.kind == "number":
            numbers.append(name_of(one.column))
            bounds = features.bounds(one.column)
            if bounds:
                categories.append(name_of(one.column) + "_bucket")
                lines += _bucket(one.column, bounds, categories[-1])
        elif one.kind == "date":
            categories += [features.date_name(one.column, part) for part in one.steps.split()]
        elif one.kind != "ignored":
            categories.append(name_of(one.column))
    return lines, numbers, categories


def _bucket(column: Column, bounds: list[float], name: str) -> list[str]:
    """Lines that add the buckets of a number; missing values have their own."""
    steps = ""
    if column.missing:
        steps += ".missing(%.9g)" % (column.low - max(1.0, abs(column.low)))
        bounds = [column.low, *(bound for bound in bounds if bound > column.low)]
    if column.infinite:
        steps += ".clip(%.9g, %.9g)" % (min(column.low - max(1.0, abs(column.low)), column.low), column.high)
    return _broken(call(column, "number", name=name) + steps + ".bucketize([",
                   ["%.9g" % bound for bound in bounds], "])")


def _listed(variable, names):
    return "\n".join(_broken("[", [repr(name) for name in names], "]", len(variable) + 3)) if names else "[]"


def _broken(start, items, end, before=0):
    """Lines of at most 79 columns: items separated by commas."""
    line = start + ", ".join(items) + end
    if before + len(line) <= 79:
        return [line]
    lines, now = [start], "   "
    for i, item in enumerate(items):
        text = " " + item + ("," if i + 1 < len(items) else end)
        if len(now) + len(text) > 79:
            lines.append(now)
            now = "   "
        now += text
    return [*lines, now]
