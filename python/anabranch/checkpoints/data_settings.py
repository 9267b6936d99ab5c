"""The settings on which the rows of the batches of a run depend: those of this process, and of its checkpoint."""
from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

_FORMAT, _BATCHES = "data_format", "data_batches"


class DataSettings:
    """Settings of the data set that a run trains on."""

    def __init__(self) -> None:
        self._now: dict[str, Any] = {_FORMAT: None, _BATCHES: None}
        self._saved: dict[str, Any] = {}    # those of the checkpoint, until the first pass after it

    def status(self) -> dict[str, Any]:
        """dict: the settings, for a checkpoint."""
        return self._now

    def resume(self, status: dict[str, Any]) -> None:
        """Takes the settings of a checkpoint, with which :meth:`compare` compares those of the first pass."""
        self._saved = {name: status.get(name) for name in self._now}

    def compare(self, dataset: Any, skips: bool, say: Callable[[str], None]) -> None:
        """Says what differs from the checkpoint. ``skips``: the pass skips batches that are completed."""
        self._now = {_FORMAT: hashlib.sha256(dataset._format.encode()).hexdigest()[:16],
                     _BATCHES: dataset._settings_of_batches()}
        differs = {name: self._saved.get(name) not in (None, now) for name, now in self._now.items()}
        self._saved = {}
        if differs[_FORMAT]:
            say("the data set has another format (set_format) than before: if a salt, a number of buckets, a "
                "vocabulary or a column has changed, ids stand for other texts than those trained on")
        if differs[_BATCHES] and skips:
            say("the data set has another batch size, other files or another share than before: the completed batches, "
                "which this epoch skips, had other rows, so that some rows are used twice or not at all")
