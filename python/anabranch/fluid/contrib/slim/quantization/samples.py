"""The ranges of the variables of a model over sample batches."""
from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence

import numpy

from .thresholds import kl_threshold


class Ranges:
    """The largest size, the minimum and the maximum of each variable over some batches, and its values where a
    threshold needs them.

    Args:
        algo (str): ``"KL"``, ``"abs_max"`` or ``"min_max"``.
        folder (str, optional): folder of files for the values, which are in memory without one. Default None.
    """

    def __init__(self, algo: str, folder: str | None = None) -> None:
        self._algo, self._folder = algo, folder
        self._ends: dict[str, tuple[float, float]] = {}
        self._values: dict[str, list[numpy.ndarray | str]] = {}

    def add(self, name: str, array: numpy.ndarray) -> None:
        """Adds the values of a variable in one batch."""
        if not array.size:
            return
        low, high = float(array.min()), float(array.max())
        before = self._ends.get(name, (low, high))
        self._ends[name] = min(low, before[0]), max(high, before[1])
        if self._algo == "KL":
            sizes = numpy.abs(array).ravel()
            self._values.setdefault(name, []).append(self._kept(sizes) if self._folder else sizes)

    def _kept(self, sizes: numpy.ndarray) -> str:
        handle, path = tempfile.mkstemp(".npy", dir=self._folder)
        with os.fdopen(handle, "wb") as file:
            numpy.save(file, sizes)
        return path

    def names(self) -> Sequence[str]:
        """list of str: the variables."""
        return list(self._ends)

    def ends(self, name: str) -> tuple[float, float]:
        """(minimum, maximum) of a variable."""
        return self._ends[name]

    def threshold(self, name: str) -> float:
        """float: the scale of a variable."""
        if self._algo == "KL":
            return kl_threshold(numpy.concatenate([
                numpy.load(part) if isinstance(part, str) else part for part in self._values[name]]))
        low, high = self._ends[name]
        return max(abs(low), abs(high))


@contextlib.contextmanager
def cache_folder(used: bool, path: str) -> Iterator[str | None]:
    """A new folder in ``path`` for values, which is removed at the end. None unless it is used."""
    if not used:
        yield None
        return
    os.makedirs(path, exist_ok=True)
    made = tempfile.mkdtemp(dir=path)
    try:
        yield made
    finally:
        shutil.rmtree(made)
