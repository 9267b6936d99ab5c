"""A warning about files that are sorted by their labels, from rows that are read here and there."""
from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import _core
from ..errors import EnforceNotMet
from ..user_warnings import warn

_BLOCKS, _BLOCK_BYTES = 16, 1 << 13     # that are read of all files
_LEAST_ROWS, _LEAST_OF_A_LABEL = 100, 10
_NOT_TEXT = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PAR1", b"ARROW1")
#: Operators between a variable that is fed and a label.
_SAME_ORDER = {"cast", "scale", "reshape2", "squeeze2", "unsqueeze2", "assign", "clip", "one_hot", "one_hot_v2",
               "greater_equal", "greater_than", "less_than", "less_equal", "equal"}


def labels_of(program: Any) -> list[str]:
    """list of str: names of the variables from which the losses of a program take their labels."""
    ops = program.desc.block(0).ops()
    made = {name: op for op in ops if op._type in _SAME_ORDER for name in op.output_arg_names()}
    found = []
    for op in ops:
        for name in [name for slot in op.input_names() if slot in ("Label", "Labels") for name in op.input(slot)]:
            while name in made:
                name = made.pop(name).input("X")[0]
            found.append(name)
    return list(dict.fromkeys(found))


def warn_of_sorted_labels(what: str, files: Sequence[str], settings: Any, labels: Sequence[str]) -> None:
    """Warns if all rows of each label follow one another.

    Args:
        what (str): name of the call.
        files (list of str): files of text.
        settings (DataSettings): for a pass over them, which this function changes.
        labels (list of str): slots that are labels.
    """
    places = [at for at, slot in enumerate(settings.slots) if slot.name in labels]
    text = _lines(files) if places else b""
    if not text:
        return
    with tempfile.NamedTemporaryFile() as file:
        file.write(text)
        file.flush()
        values = _values(file.name, settings, [settings.slots[at].name for at in places])
    for name, column in values.items():
        found = _sorted(column)
        if found is not None:
            warn("%s: the rows are sorted by the label %s: those with %g come first, those with %g last, so that the "
                 "last rows decide what is learned. Load them into an InMemoryDataset and call local_shuffle(), or "
                 "shuffle the lines of the files" % (what, name, *found))


def _sorted(values: Any) -> tuple[float, float] | None:
    """The first and the last label; None if the labels are mixed, or are too few to tell."""
    labels, counts = np.unique(values, return_counts=True)
    if len(values) < _LEAST_ROWS or len(labels) < 2 or counts.min() < _LEAST_OF_A_LABEL:
        return None
    mixed = np.count_nonzero(values[1:] != values[:-1]) >= len(labels)
    return None if mixed else (float(values[0]), float(values[-1]))


def _values(path, settings, names):
    """dict: label -> its values in the rows of a file."""
    settings.files, settings.in_memory, settings.cache_folder, settings.batch_size = [path], False, "", 1 << 12
    settings.threads, settings.drop_last, settings.joins = 1, False, False
    settings.set_share(0.0, 1.0, 0)
    settings.set_bad_rows("skip", -1, "")
    found: dict[str, list[Any]] = {name: [] for name in names}
    try:
        stream = _core.Dataset(settings).open(True, 1)
        while (batch := stream.next()) is not None:
            for name in names:
                found[name].append(np.array(batch[name]).reshape(-1))
        stream.close()
    except EnforceNotMet:   # the pass says what is wrong
        return {}
    return {name: np.concatenate(parts) for name, parts in found.items() if parts}


def _lines(files: Sequence[str]) -> bytes:
    """Lines at equally distant places of files, in their order. The first one starts a file. Empty if a file is no text
    or cannot be read: the pass says why."""
    try:
        sizes = [os.path.getsize(path) for path in files]
        if sum(sizes) <= _BLOCKS * _BLOCK_BYTES:
            parts = [_part(path, 0, size) for path, size in zip(files, sizes)]
        else:
            ends, parts = np.cumsum(sizes), []
            for start in (sum(sizes) * block // _BLOCKS for block in range(_BLOCKS)):
                at = int(np.searchsorted(ends, start, "right"))
                parts.append(_part(files[at], start - int(ends[at]) + sizes[at], _BLOCK_BYTES))
    except OSError:
        return b""
    return b"" if None in parts else b"".join(part or b"" for part in parts)


def _part(path: str, start: int, size: int) -> bytes | None:
    """The lines that begin in a part of a file; None if the file is compressed or a table."""
    with open(path, "rb") as file:
        if file.read(6).startswith(_NOT_TEXT):
            return None
        file.seek(start)
        text = file.read(size)
    begin = text.find(b"\n") + 1 if start else 0    # the first line begins before
    end = text.rfind(b"\n") + 1
    return text[begin:text.rfind(b"\n") + 1]
