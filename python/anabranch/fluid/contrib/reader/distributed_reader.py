"""Batches of one reader shared out to workers."""
from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

from ...errors import Violated

__all__ = ["distributed_batch_reader"]


def distributed_batch_reader(batch_reader: Callable[[], Iterator[Any]]) -> Callable[[], Iterator[Any]]:
    """Every worker takes its turn: of each round of batches, one for each worker, this one gets its own.

    Who this is say PADDLE_TRAINERS_NUM (1) and PADDLE_TRAINER_ID (0) of the environment. Batches of a last round that
    is not complete are left out, so that all workers have equally many.

    Args:
        batch_reader (callable): makes an iterator over batches, the same in all workers.

    Returns:
        callable: makes an iterator over this worker's batches.

    Raises:
        AssertionError: the number of this worker is not below that of workers.

    Examples:
        >>> import os
        >>> os.environ.update(PADDLE_TRAINERS_NUM="2", PADDLE_TRAINER_ID="1")
        >>> list(distributed_batch_reader(lambda: iter(range(5)))())
        [1, 3]
    """
    count = int(os.environ.get("PADDLE_TRAINERS_NUM", "1"))
    mine = int(os.environ.get("PADDLE_TRAINER_ID", "0")) if count > 1 else 0
    if not 0 <= mine < count:
        raise Violated("distributed_batch_reader: PADDLE_TRAINER_ID must be below PADDLE_TRAINERS_NUM, got %d and %d"
                       % (mine, count))

    def reader() -> Iterator[Any]:
        held = None
        for number, batch in enumerate(batch_reader()):
            if number % count == mine:
                held = batch
            if number % count == count - 1:
                yield held
    return reader
