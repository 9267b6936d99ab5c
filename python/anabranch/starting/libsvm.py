"""The contents of libsvm files, read by the data set itself."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import fluid
from ..fluid.errors import InvalidValue, Unsupported

#: Indices below this number have a row of a table.
HEIGHT = 2 ** 22
_FORMAT = "libsvm\nlabel = label\nindex = index"


class Lines(NamedTuple):
    """The contents of libsvm files."""

    rows: int
    bad: int
    height: int             # above all indices
    labels: list[float]     # the different ones: two


def read(files: Sequence[str], both_labels: bool = True) -> Lines:
    """Reads files once.

    Args:
        files (list of str): paths.
        both_labels (bool): whether there must be two different labels. Default True.

    Returns:
        Lines: rows, malformed lines, indices and labels.

    Raises:
        ValueError: there is no well-formed line, or there are not two different labels where there must be.
        NotImplementedError: an index is too large for a table.
    """
    rows, bad, highest, lowest, labels = 0, 0, 0, 0, np.zeros(0, "float32")
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        dataset: Any = fluid.DatasetFactory().create_dataset("QueueDataset")
        dataset.set_use_var([fluid.data("label", [None, 1], "float32"),
                             fluid.data("index", [None, 1], "int64", lod_level=1)])
    dataset.set_format(_FORMAT)
    dataset.set_filelist(list(files))
    dataset.set_batch_size(4096)
    dataset.set_bad_rows("skip")
    for batch in dataset._batches():
        index = np.array(batch["index"])
        rows += len(np.array(batch["label"]))
        highest, lowest = max(highest, int(index.max())), min(lowest, int(index.min()))
        labels = np.unique(np.append(labels, np.array(batch["label"])))[:9]
    bad = dataset.statistics()["bad_rows"]
    if not rows:
        raise InvalidValue("%s: there is no well-formed line: label index:value index:value ..." % ", ".join(files))
    if both_labels and len(labels) != 2:
        raise InvalidValue("%s: a libsvm file must have two different labels, got %s" % (
            ", ".join(files), ", ".join("%g" % label for label in labels)))
    if lowest < 0 or highest >= HEIGHT:
        raise Unsupported("anabranch train: an index must be from 0 to %d, got %d: hash the indices"
                          % (HEIGHT - 1, lowest if lowest < 0 else highest))
    return Lines(rows, bad, highest + 1, [float(label) for label in labels])
