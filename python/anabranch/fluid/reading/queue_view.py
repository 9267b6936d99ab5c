"""``reader.queue``: the queue of a reader, with the methods of Fluid's ``LoDTensorBlockingQueue``."""
from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from typing import Any

from ..errors import InvalidType, InvalidValue, NotAllowed

_END = object()
_POLL_S = 0.2  # after reset(), the thread that waits for a batch stops within this time


class Count(int):
    """A number that can also be called, as a method of Fluid is.

    >>> Count(3), Count(3)()
    (3, 3)
    """

    def __call__(self) -> int:
        return int(self)


class QueueView:
    """The queue of a reader, in every pass.

    Args:
        current (callable): returns the BatchQueue of the pass, or None.
        capacity (int): number of batches kept ready.
        source (ReaderSource, optional): the reader that a program reads from; batches can be pushed into its queue.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> reader = fluid.layers.py_reader(capacity=4, shapes=[[-1, 1]], dtypes=["float32"])
        >>> reader.queue.size(), reader.queue.capacity()
        (0, 4)
    """

    def __init__(self, current: Callable[[], Any], capacity: int, source: Any = None) -> None:
        self._current, self._capacity, self._source = current, capacity, source
        self._pushed: queue.Queue[Any] | None = None

    def size(self) -> int:
        """int: number of batches that are ready."""
        found = self._current()
        pushed = self._pushed.qsize() if self._pushed is not None else 0
        return pushed + (found.size() if found is not None else 0)

    @property
    def capacity(self) -> Count:
        """int: number of batches kept ready."""
        found = self._current()
        return Count(found.capacity if found is not None else self._capacity)

    def push(self, batch: Any) -> bool:
        """Adds a batch, for readers without a data source; waits while the queue is full.

        Args:
            batch (LoDTensorArray|list of LoDTensor): one tensor per variable.

        Returns:
            bool: whether it was added; False after :meth:`close`.

        Raises:
            RuntimeError: the reader has a data source.
            TypeError, ValueError: the batch has the wrong type or size.
        """
        if self._source is None:
            raise NotAllowed("queue.push: the loader is iterable: set a data source")
        if not hasattr(batch, "__iter__") and not hasattr(batch, "__getitem__"):
            raise InvalidType("queue.push: batch must be a LoDTensorArray, got %s" % type(batch).__name__)
        tensors = [batch[i] for i in range(len(batch))]
        if len(tensors) != len(self._source.names):
            raise InvalidValue("queue.push: a batch must have one tensor for each of %s, got %d"
                               % (", ".join(self._source.names), len(tensors)))
        if self._pushed is None:
            if self._source.has_batches():
                raise NotAllowed("queue.push: the reader of %s has a data source" % ", ".join(self._source.names))
            self._pushed = queue.Queue(self._capacity)
            self._source.set_batches(self._batches)
        if self._current() is None:
            self._source.start()
        self._pushed.put(tensors)
        return True

    def _batches(self) -> Iterator[Any]:
        assert self._pushed is not None
        while True:
            try:
                taken = self._pushed.get(timeout=_POLL_S)
            except queue.Empty:
                if self._current() is not None and not self._current().is_closed():
                    continue
                return
            if taken is _END:
                return
            yield taken

    def close(self) -> None:
        """Ends the pass after the batches that have been pushed, or at once if a data source fills the queue."""
        if self._pushed is not None:
            self._pushed.put(_END)
        elif self._current() is not None:
            self._current().close()

    def kill(self) -> None:
        """Ends the pass at once."""
        self.close()

    def wait_for_inited(self) -> None:
        """Does nothing: the queue exists with its reader."""
