"""Requests that arrive together are answered by one run of the model."""
from __future__ import annotations

import collections
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import numpy as np


class Full(Exception):
    """The queue is full."""


class Answer(list):
    """The outputs of the model for a request, as a list.

    Attributes:
        version (int): version of the model that computed them.
    """

    def __init__(self, outputs: list[Any], version: int) -> None:
        super().__init__(outputs)
        self.version = version


class _Request:
    __slots__ = ("deadline", "future", "inputs", "key", "rows")

    def __init__(self, inputs, rows, deadline, key):
        self.inputs, self.rows, self.deadline, self.key = inputs, rows, deadline, key
        self.future: Future = Future()


class Batcher:
    """Worker threads, each with its own predictor, take requests from one queue.

    Args:
        predictors (list): one per thread; ``run(list of inputs)`` gives a list of outputs, and then ``version`` is that
            of the model.
        max_rows (int): maximum number of rows of a run. 1: requests are never combined.
        wait_s (float): seconds that a request waits for others to join it.
        queue (int): requests that may wait.
        ran (callable): function that is called with (requests, rows, seconds) of each run.
        candidate (callable): gives the :class:`~anabranch.following.canary.Candidate` that answers a share of the
            requests, or None.

    Any thread may call ``submit``. ``close`` answers all waiting requests and ends the threads.
    """

    def __init__(self, predictors: list[Any], max_rows: int = 64, wait_s: float = 0.001, queue: int = 1000,
                 ran: Callable[[int, int, float], None] = lambda requests, rows, seconds: None,
                 candidate: Callable[[], Any] = lambda: None) -> None:
        self._max_rows, self._wait_s, self._queue, self._ran = max_rows, wait_s, queue, ran
        self._candidate = candidate
        self._changed = threading.Condition()
        self._waiting: collections.deque[_Request] = collections.deque()
        self._closed = False
        self._until = [float("inf")] * len(predictors)  # the latest deadline of the requests that each thread runs
        self._threads = [threading.Thread(target=self._work, args=(i, p), name="anabranch serve %d" % i, daemon=True)
                         for i, p in enumerate(predictors)]
        for thread in self._threads:
            thread.start()

    def submit(self, inputs: list[Any], timeout_s: float, key: bytes = b"") -> Future:
        """The :class:`Answer` of the model to ``inputs``, later. ``key`` decides whether a candidate gives it.

        Raises:
            Full: too many requests wait, or the batcher is closed.
        """
        rows = len(inputs[0]) if self._max_rows > 1 else 1
        request = _Request(inputs, rows, time.monotonic() + timeout_s, key)
        with self._changed:
            if self._closed or len(self._waiting) >= self._queue:
                raise Full
            self._waiting.append(request)
            self._changed.notify()
        return request.future

    def waiting(self) -> int:
        """int: requests in the queue."""
        return len(self._waiting)

    def overdue(self) -> bool:
        """bool: every thread runs requests whose time is over, so nothing can be answered for now."""
        now = time.monotonic()
        return all(until < now for until in self._until)

    def close(self) -> None:
        """Stops accepting requests, answers those that are waiting, and stops the threads."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _work(self, index, predictor):
        while True:
            batch = self._take()
            if batch is None:
                return
            if batch:
                self._until[index] = max(request.deadline for request in batch)
                self._answer_all(predictor, batch)
                self._until[index] = float("inf")

    def _take(self):
        """Requests for one run; None at the end."""
        with self._changed:
            while not self._waiting:
                if self._closed:
                    return None
                self._changed.wait()
            if self._max_rows > 1 and self._wait_s > 0 and not self._closed:
                self._gather()
            batch, rows, now = [], 0, time.monotonic()
            while self._waiting and (not batch or rows + self._waiting[0].rows <= self._max_rows):
                request = self._waiting.popleft()
                if request.deadline < now:
                    request.future.set_exception(TimeoutError("the request waited too long in the queue"))
                elif request.future.set_running_or_notify_cancel():
                    batch.append(request)
                    rows += request.rows
            return batch

    def _gather(self):
        """Waits a little for requests that can be answered together."""
        until = time.monotonic() + self._wait_s
        while sum(r.rows for r in self._waiting) < self._max_rows and not self._closed:
            left = until - time.monotonic()
            if left <= 0 or not self._changed.wait(left):
                return

    def _answer_all(self, predictor, batch):
        """Answers requests, those that a candidate answers apart from the others."""
        candidate = self._candidate()
        parts = {False: batch} if candidate is None else {True: [], False: []}
        if candidate is not None:
            for request in batch:
                parts[candidate.chooses(request.key)].append(request)
        for chosen, part in parts.items():
            if part:
                self._answer(predictor, part, candidate, chosen)

    def _answer(self, predictor, batch, candidate, chosen):
        begun = time.monotonic()
        try:
            joined = batch[0].inputs if len(batch) == 1 else [np.concatenate(values)
                                                             for values in zip(*(r.inputs for r in batch))]
            outputs = predictor.run(joined) if candidate is None else predictor._run_with(
                candidate, chosen, joined, answers=len(batch))
            version = predictor.version
        except Exception as e:
            if len(batch) == 1:
                batch[0].future.set_exception(e)
                return
            for request in batch:        # one of them is at fault: each gets its own error
                self._answer(predictor, [request], candidate, chosen)
            return
        self._ran(len(batch), sum(r.rows for r in batch), time.monotonic() - begun)
        begin = 0
        for request in batch:
            end = begin + request.rows
            own = outputs if len(batch) == 1 else [value[begin:end] for value in outputs]
            request.future.set_result(Answer(own, version))
            begin = end
