"""The indices of the samples that form the batches of a map-style data set."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy

from ..errors import require

__all__ = ["BatchSampler"]


class BatchSampler:
    """Lists of the indices of the samples of each batch. A subclass defines ``__iter__`` and ``__len__``.

    Args:
        dataset (Dataset, optional): data set whose samples are all taken.
        indices (list|tuple, optional): the indices that are taken, instead of ``dataset``.
        shuffle (bool): draws a new order with ``numpy.random`` for each pass. Default False.
        batch_size (int): number of indices of a batch. Default 1.
        drop_last (bool): omits a last batch that is smaller. Default False.

    Raises:
        AssertionError: neither or both of ``dataset`` and ``indices`` are given, or an argument is invalid.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> list(fluid.io.BatchSampler(indices=[5, 6, 7], batch_size=2))
        [[5, 6], [7]]
    """

    def __init__(self, dataset: Any = None, indices: Sequence[int] | None = None, shuffle: bool = False,
                 batch_size: int = 1, drop_last: bool = False) -> None:
        require((dataset is None) != (indices is None), "BatchSampler: give either dataset or indices")
        if indices is None:
            require(hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__"),
                    "BatchSampler: dataset must have __getitem__ and __len__, got %s" % type(dataset).__name__)
            indices = range(len(dataset))
        require(isinstance(indices, (list, tuple, range, numpy.ndarray)),
                "BatchSampler: indices must be a list or tuple, got %s" % type(indices).__name__)
        require(isinstance(batch_size, (int, numpy.integer)) and not isinstance(batch_size, bool) and batch_size > 0,
                "BatchSampler: batch_size must be a positive int, got %r" % (batch_size,))
        for name, flag in (("shuffle", shuffle), ("drop_last", drop_last)):
            require(isinstance(flag, (bool, numpy.bool_)), "BatchSampler: %s must be a bool, got %r" % (name, flag))
        self.indices = indices
        self.shuffle, self.batch_size, self.drop_last = shuffle, int(batch_size), drop_last

    def __iter__(self) -> Iterator[list[int]]:
        order = list(self.indices)
        if self.shuffle:
            numpy.random.shuffle(order)  # noqa: NPY002 - the generator that scripts seed
        for begin in range(0, len(order), self.batch_size):
            if begin + self.batch_size <= len(order) or not self.drop_last:
                yield order[begin:begin + self.batch_size]

    def __len__(self) -> int:
        return (len(self.indices) + (0 if self.drop_last else self.batch_size - 1)) // self.batch_size
