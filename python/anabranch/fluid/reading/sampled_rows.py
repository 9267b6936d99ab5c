"""Warnings about the rows that a program trains on, from some of them that are read before the pass: labels that are
sorted, of one class or out of range, and columns that equal the label."""
from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ... import _core
from ..errors import EnforceNotMet
from ..user_warnings import advise

_BLOCKS, _BLOCK_BYTES = 16, 1 << 13     # that are read of all files
_LEAST_ROWS, _LEAST_OF_A_LABEL = 100, 10
_NOT_TEXT = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PAR1", b"ARROW1")
#: Operators between a variable that is fed and a label; those that keep its values.
_SAME_VALUES = {"cast", "reshape2", "squeeze2", "unsqueeze2", "assign"}
_SAME_ORDER = _SAME_VALUES | {"scale", "clip", "one_hot", "one_hot_v2", "greater_equal", "greater_than", "less_than",
                              "less_equal", "equal"}
_NEVER = float("nan")
_OF_TWO = {"sigmoid_cross_entropy_with_logits", "log_loss", "auc"}


class Label(NamedTuple):
    """A variable that is fed and from which losses take their labels."""

    name: str
    of_two: str | None      # type of an operator that takes 0 to 1, and gets its values as they are
    ignored: float          # label of rows that do not count


def labels_of(program: Any) -> dict[str, Label]:
    """dict: name -> Label, for the variables from which the losses and metrics of a program take their labels."""
    ops = program.desc.block(0).ops()
    made = {name: op for op in ops if op._type in _SAME_ORDER for name in op.output_arg_names()}
    found: dict[str, Label] = {}
    for op in ops:
        for name in [name for slot in op.input_names() if slot in ("Label", "Labels") for name in op.input(slot)]:
            as_it_is = True
            while name in made:
                as_it_is &= made[name]._type in _SAME_VALUES
                name = made[name].input("X")[0]
            if as_it_is and op._type in _OF_TWO or name not in found:
                ignored = op.attr("ignore_index") if op.has_attr("ignore_index") else _NEVER
                found[name] = Label(name, op._type if as_it_is and op._type in _OF_TWO else None, ignored)
    return found


def warn_of_rows(what: str, files: Sequence[str], settings: Any, dense: Sequence[str], labels: Mapping[str, Label],
                 in_order: bool) -> None:
    """Warns if the rows mislead a program that trains on them.

    Args:
        what (str): name of the call.
        files (list of str): files of text.
        settings (DataSettings): for a pass over them, which this function changes.
        dense (list of str): slots with the same number of values in each row.
        labels (dict): name -> Label.
        in_order (bool): whether the rows are used in their order.
    """
    chosen = [name for name in dense if name in labels]
    text, are_all = _lines(files) if chosen else (b"", False)
    if not text:
        return
    with tempfile.NamedTemporaryFile() as file:
        file.write(text)
        file.flush()
        values = _values(file.name, settings, dense)
    for name in chosen:
        if name in values and values[name].shape[1] == 1:
            others = {other: column for other, column in values.items() if other not in labels}
            for why in _faults(labels[name], values[name][:, 0], others, are_all, in_order):
                advise("%s: %s" % (what, why))


def _faults(label: Label, values: Any, others: Mapping[str, Any], are_all: bool, in_order: bool) -> Iterator[str]:
    counting = values[values != label.ignored]
    kinds, counts = np.unique(counting, return_counts=True)
    if len(counting) < _LEAST_ROWS:
        return
    if label.of_two and (kinds[0] < 0 or kinds[-1] > 1):
        yield ("the label %s must be from 0 to 1 for %s, got %g to %g: check the order of the columns or slots; map "
               "two classes to 0 and 1" % (label.name, label.of_two, kinds[0], kinds[-1]))
        return
    if len(kinds) == 1 and are_all:
        yield ("all rows have the label %s %g, so that there is nothing to learn: check its column"
               % (label.name, kinds[0]))
    if len(kinds) < 2 or counts.min() < _LEAST_OF_A_LABEL:
        return
    if in_order and np.count_nonzero(counting[1:] != counting[:-1]) < len(kinds):
        yield ("the rows are sorted by the label %s: those with %g come first, those with %g last, so that the last "
               "rows decide what is learned. Load them into an InMemoryDataset and call local_shuffle(), or shuffle "
               "the lines of the files" % (label.name, counting[0], counting[-1]))
    for name, column in others.items():
        same = np.flatnonzero((column == values[:, None]).all(axis=0))
        if len(same):
            yield ("value %d of %s equals the label %s in all of %d rows: a model that has it as an input is given the "
                   "answer, which it lacks when it is served" % (same[0], name, label.name, len(values)))


def _values(path: str, settings: Any, names: Sequence[str]) -> dict[str, Any]:
    """dict: slot -> its values in the well-formed rows of a file, [rows, width]."""
    settings.files, settings.in_memory, settings.cache_folder, settings.batch_size = [path], False, "", 1 << 12
    settings.threads, settings.drop_last, settings.joins = 1, False, False
    settings.set_share(0.0, 1.0, 0)
    settings.set_bad_rows("skip", -1, "")
    found: dict[str, list[Any]] = {name: [] for name in names}
    try:
        stream = _core.Dataset(settings).open(True, 1)
        while (batch := stream.next()) is not None:
            for name in names:
                values = np.array(batch[name])  # type: ignore[index]
                found[name].append(values.reshape(len(values), -1))
        stream.close()
    except EnforceNotMet:   # the pass says what is wrong
        return {}
    return {name: np.concatenate(parts) for name, parts in found.items() if parts}


def _lines(files: Sequence[str]) -> tuple[bytes, bool]:
    """Lines at equally distant places of files, in their order, and whether these are all lines. The first one starts a
    file. Empty if a file is not text, or cannot be read: the pass says why."""
    try:
        sizes = [os.path.getsize(path) for path in files]
        if sum(sizes) <= _BLOCKS * _BLOCK_BYTES:
            return b"".join(_part(path, 0, size) for path, size in zip(files, sizes)), True
        ends, parts = np.cumsum(sizes), []
        for start in (sum(sizes) * block // _BLOCKS for block in range(_BLOCKS)):
            at = int(np.searchsorted(ends, start, "right"))
            parts.append(_part(files[at], start - int(ends[at]) + sizes[at], _BLOCK_BYTES))
        return b"".join(parts), False
    except (OSError, EOFError):
        return b"", False


def _part(path: str, start: int, size: int) -> bytes:
    """The lines that begin in a part of a file. EOFError if the file is compressed or a table."""
    with open(path, "rb") as file:
        if file.read(6).startswith(_NOT_TEXT):
            raise EOFError
        file.seek(start)
        text = file.read(size)
    begin = text.find(b"\n") + 1 if start else 0    # the first line starts before
    return text[begin:text.rfind(b"\n") + 1]
