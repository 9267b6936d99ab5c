"""Distribution of the batches of one reader over workers."""
from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

from ... import arguments
from ...errors import Violated

__all__ = ["distributed_batch_reader"]


def distributed_batch_reader(batch_reader: Callable[[], Iterator[Any]]) -> Callable[[], Iterator[Any]]:
    """Distributes batches over the workers round-robin, and returns those of this worker.

    The environment variables PADDLE_TRAINERS_NUM (1) and PADDLE_TRAINER_ID (0) set the number of workers and this one's
    index. Batches of an incomplete last round are dropped, so that all workers have the same number.

    Args:
        batch_reader (callable): returns an iterator over batches, the same in all workers.

    Returns:
        callable: returns an iterator over this worker's batches.

    Raises:
        AssertionError: the index of this worker is not below the number of workers.

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


arguments.explain(globals())
