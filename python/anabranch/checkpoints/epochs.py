"""The iterator of ``Checkpoints.epochs``."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any


class Epochs:
    """Numbers of the remaining epochs.

    Args:
        numbers (iterator): the numbers.
        follow (callable): called by a :class:`anabranch.Loop` that iterates over the numbers, with itself, so that its
            state is saved and restored too.
    """

    def __init__(self, numbers: Iterator[int], follow: Callable[[Any], None]) -> None:
        self._numbers = numbers
        self.follow = follow

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        return next(self._numbers)
