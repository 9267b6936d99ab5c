"""Warnings about data that are not those that a program was built for, or tested on those that it was trained on."""
from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from ..user_warnings import warn

Share = tuple[Any, ...]     # of the lines of a file: begin, end, seed; perhaps a column


def conversion(feature: Mapping[str, Any]) -> Any:
    """How a feature of a schema (as in its JSON) converts values: what decides its bits, apart from the names of its
    columns. Two conversions of different types, such as texts and their ids, may give equal bits.

    >>> conversion({"type": "text", "columns": ["user"], "steps": [["hash", 10]]})
    ('text', [['hash', 10, ['user']]])
    """
    if "cross" in feature:
        return "cross", [*map(conversion, feature["cross"]), feature["hash"]]
    steps = [[*step, feature["columns"]] if step[0] == "hash" and len(step) == 2 else step
             for step in feature.get("steps", [])]
    return feature["type"], steps


def warn_of_other_features(what: str, known: Mapping[str, Mapping[str, Any]], schema: str) -> None:
    """Warns if a schema converts values to an input in another way than the one that has made this input.

    Args:
        what (str): name of the call.
        known (dict): features of inputs that ``Schema.inputs`` has made, by name.
        schema (str): a schema as JSON.
    """
    for feature in json.loads(schema)["features"] if known else ():
        made = known.get(feature["name"])
        if made is None:
            continue
        one, other = conversion(made), conversion(feature)
        if one != other and one[0] == other[0]:
            warn("%s: the schema converts values to %s by %s, but the schema whose inputs() made this input by %s, so "
                 "that equal values differ: use the same schema to train and to serve"
                 % (what, feature["name"], _shown(other), _shown(one)))
            return


def _shown(found):
    return json.dumps(found[1]) if found[1] else "no step"


def remember(trained: dict[str, set[Share]], files: Sequence[str], share: Share) -> None:
    """Adds the shares of files that a pass trains on."""
    for path in files:
        trained.setdefault(os.path.realpath(path), set()).add(share)


def warn_of_trained_lines(trained: Mapping[str, set[Share]], files: Sequence[str], share: Share) -> None:
    """Warns if a pass that evaluates reads a share of a file that overlaps with one that was trained on. Equal shares
    are meant: they measure how well the model fits."""
    for path in files if trained else ():
        for other in trained.get(os.path.realpath(path), ()):
            if other != share and (other[2:] != share[2:] or max(other[0], share[0]) < min(other[1], share[1])):
                warn("infer_from_dataset: lines of %s were trained on: set_share(%s) overlaps with set_share(%s) of "
                     "the data set to train on: give both data sets shares without a common part, and the same seed "
                     "and column" % (path, _arguments(share), _arguments(other)))
                return


def _arguments(share):
    return "%g, %g%s%s" % (share[0], share[1], ", seed=%d" % share[2] if share[2] else "",
                           ", column=%r" % share[3] if len(share) > 3 else "")
