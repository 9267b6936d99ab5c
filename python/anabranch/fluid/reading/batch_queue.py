"""A bounded queue that one thread fills with batches ahead of training."""
from __future__ import annotations

import atexit
import collections
import sys
import threading
import traceback
import weakref
from collections.abc import Callable
from typing import Any

from ... import _core

_FOLDER = __file__.rsplit("fluid", 1)[0]
_JOIN_S = 5.0
_alive: "weakref.WeakSet[BatchQueue]" = weakref.WeakSet()  # queues whose threads must stop before the interpreter exits


def place_of(thread: Any) -> Any:
    """The current position of a thread: "file:line in function", of the innermost frame outside this package."""
    frame = sys._current_frames().get(thread.ident)
    if frame is None:
        return "not running"
    stack = traceback.extract_stack(frame)
    calls = [call for call in stack if not call.filename.startswith(_FOLDER)] or stack
    return "%s:%s in %s" % (calls[-1].filename, calls[-1].lineno, calls[-1].name)


def stall_report_s() -> Any:
    """Seconds after which a wait is reported; None means never."""
    seconds = float(_core.all_flags()["FLAGS_stall_report_s"][0])
    return seconds if seconds > 0 else None


class BatchQueue:
    """Items of an iterable, produced ahead by a dedicated thread.

    The thread stops after the last item, at the first error, and when the queue is closed or garbage-collected. If the
    consumer waits longer than ``FLAGS_stall_report_s``, a report on stderr names the line that the thread runs.

    Args:
        items (callable): returns the iterable; called in the thread.
        capacity (int): number of items kept ready, at least 1.
        name (str): name of the source, for reports.
        source (BatchQueue, optional): the queue that ``items`` reads. It is closed with this one, its items also count
            as ready, and reports name the line that its thread runs.

    Examples:
        >>> queue = BatchQueue(lambda: [1, 2], 4, "two numbers")
        >>> queue.get(), queue.get(), queue.get() is BatchQueue.END
        (1, 2, True)
        >>> queue.close()
    """

    #: Returned by ``get`` after the last item.
    END = type("End", (), {"__repr__": lambda self: "END"})()

    def __init__(self, items: Callable[..., Any], capacity: int, name: str, source: BatchQueue | None = None) -> None:
        self._shared = _Shared(capacity)
        self.name, self._source = name, source
        self._thread = threading.Thread(target=_fill, args=(items, self._shared), name="anabranch reader", daemon=True)
        _alive.add(self)
        self._thread.start()

    def get(self, reports: bool = True) -> Any:
        """The next item, or END. Reraises an exception of the iterable, with its traceback, in every later call.

        Args:
            reports (bool): whether to report a long wait. Default True.
        """
        shared = self._shared
        report_s: Any = stall_report_s() if reports else None
        waited_s = 0.0
        with shared.changed:
            while not shared.items and shared.running and not shared.closed:
                if not shared.changed.wait(report_s):
                    waited_s += report_s
                    self._report(waited_s)
            if shared.items:
                item = shared.items.popleft()
                shared.changed.notify_all()
                return item
            if shared.error is not None:
                raise shared.error.with_traceback(shared.traceback)
            return self.END

    def size(self) -> int:
        """int: number of items that are ready."""
        return len(self._shared.items) + (self._source.size() if self._source else 0)

    @property
    def capacity(self) -> int:
        """int: maximum number of items kept ready."""
        return self._shared.capacity + (self._source.capacity if self._source else 0)

    def is_running(self) -> bool:
        """bool: whether the thread is still producing, or items are left."""
        return self._shared.running or bool(self._shared.items)

    def is_closed(self) -> bool:
        """bool: whether :meth:`close` was called."""
        return self._shared.closed

    def _report(self, waited_s):
        source = self._source
        makes = source if source and not source.size() and source.is_running() else self
        sys.stderr.write("anabranch: waited %.0f s for a batch of %s; its thread is at %s\n"
                         % (waited_s, self.name, place_of(makes._thread)))
        sys.stderr.flush()

    def close(self) -> None:
        """Drops the remaining items and stops the thread, which closes the iterable."""
        if self._source:
            self._source.close()
        shared = self._shared
        with shared.changed:
            shared.closed = True
            shared.items.clear()
            shared.changed.notify_all()
        if threading.current_thread() is self._thread:
            return
        self._thread.join(_JOIN_S)
        if self._thread.is_alive():
            sys.stderr.write("anabranch: the thread that reads %s still runs after it was stopped; it is at %s\n"
                             % (self.name, place_of(self._thread)))

    def __del__(self) -> None:
        if not sys.is_finalizing() and self._shared.running:
            self.close()


@atexit.register
def _close_all():
    for queue in list(_alive):
        queue.close()


class _Shared:
    """State shared by thread and consumer. The thread refers to this only, so a garbage-collected queue is closed."""

    def __init__(self, capacity):
        self.capacity = capacity
        self.changed = threading.Condition()
        self.items = collections.deque()
        self.error = self.traceback = None
        self.running = True
        self.closed = False

    def put(self, item):
        """Adds an item. Returns False if the queue is closed."""
        with self.changed:
            while len(self.items) >= self.capacity and not self.closed:
                self.changed.wait()
            if not self.closed:
                self.items.append(item)
                self.changed.notify_all()
            return not self.closed

    def end(self, error):
        with self.changed:
            self.error, self.traceback = error, error and error.__traceback__
            self.running = False
            self.changed.notify_all()


def _fill(items, shared):
    error = None
    try:
        source = items()
        try:
            for item in source:
                if not shared.put(item):
                    break
        finally:
            if hasattr(source, "close"):
                source.close()
    except BaseException as e:
        error = e
    shared.end(error)
