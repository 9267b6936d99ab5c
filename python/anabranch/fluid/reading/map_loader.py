"""Batches of map-style data sets, which are indexed by sample."""
from __future__ import annotations

from typing import Any

import numpy as np

from .. import arguments
from ..dataloader.batch_sampler import BatchSampler
from ..described import Described
from ..errors import require
from .decorators import xmap_readers
from .generator_loader import GeneratorLoader

__all__ = ["MapLoader", "default_collate_fn"]

_AHEAD = 2  # batches read ahead


def default_collate_fn(batch: Any) -> Any:
    """Collates a list of samples to a list of arrays, one per field.

    >>> [a.tolist() for a in default_collate_fn([(1, 2.0), (3, 4.0)])]
    [[1, 3], [2.0, 4.0]]
    """
    return [np.stack([np.asarray(field) for field in column]) for column in zip(*batch)]


class MapLoader(Described):
    """Base class of ``DataLoader(dataset, ...)``; see there."""

    def __init__(self, dataset: Any, feed_list: Any = None, places: Any = None, return_list: Any = False,
                 batch_sampler: Any = None, batch_size: Any = 1, shuffle: Any = False, drop_last: Any = False,
                 collate_fn: Any = None, num_workers: Any = 0, use_buffer_reader: Any = True,
                 use_shared_memory: Any = True, timeout: Any = 0, worker_init_fn: Any = None) -> None:
        require(hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__"),
                "DataLoader: dataset must have __getitem__ and __len__")
        require(feed_list is not None, "DataLoader: feed_list, the variables to fill, must be given")
        require(places is not None, "DataLoader: places must be given")
        require(num_workers >= 0, "DataLoader: num_workers must be at least 0, got %s" % num_workers)
        require(timeout >= 0, "DataLoader: timeout must be at least 0, got %s" % timeout)
        if batch_sampler is not None:
            require(batch_size == 1 and not shuffle and not drop_last,
                    "DataLoader: batch_sampler excludes batch_size, shuffle and drop_last")
        else:
            require(batch_size > 0, "DataLoader: batch_size must be at least 1, got %s" % batch_size)
        self.dataset = dataset
        self.batch_sampler = batch_sampler if batch_sampler is not None else BatchSampler(
            dataset, shuffle=bool(shuffle), batch_size=batch_size, drop_last=bool(drop_last))
        self._collate = collate_fn or default_collate_fn
        self._num_workers, self._worker_init = num_workers, worker_init_fn
        self._loader = GeneratorLoader(feed_list, max(_AHEAD, num_workers), use_buffer_reader, True, return_list,
                                       drop_last=False)
        self._loader.set_batch_generator(self._batches, places)

    def _batches(self):
        if self._worker_init is not None:
            self._worker_init(0)
        if self._num_workers > 1:
            indices = self.batch_sampler.__iter__
            return xmap_readers(self._batch_of, indices, self._num_workers, self._num_workers, order=True)()
        return map(self._batch_of, iter(self.batch_sampler))

    def _batch_of(self, indices):
        return self._collate([self.dataset[i] for i in indices])

    def __len__(self) -> Any:
        return len(self.batch_sampler)

    def __iter__(self) -> Any:
        return iter(self._loader)

    def __call__(self) -> Any:
        return iter(self)


arguments.explain(globals())
