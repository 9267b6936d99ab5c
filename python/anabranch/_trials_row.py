"""The row that ``doctor``, ``strategies`` and ``tune`` show while they work."""
import sys
import threading
import time

from ._terminal import Row, clock_text

__all__ = ["Trials"]


class Trials:
    """Shows which of several trials runs and how long the others will take: "async, round 1 of 2, ETA 0:40".
    The row is erased at the end. It appears in a terminal only.

    Args:
        count (int): number of trials.
        stream (file, optional): output of the row. Default ``sys.stderr``.
        tick_s (float, optional): seconds between two updates by a thread of this object. Default: no thread; the row
            changes when a trial starts.
        now (callable): the clock, in seconds. Default ``time.monotonic``.
    """

    def __init__(self, count, stream=None, tick_s=None, now=time.monotonic):
        self._count, self._now = count, now
        self._row = Row(sys.stderr if stream is None else stream)
        self._started, self._text = 0, ""
        self._start = self._trial_start = now()
        self._mutex, self._ended = threading.Lock(), threading.Event()
        self._thread = None
        if tick_s is not None and self._row.in_place:
            self._thread = threading.Thread(target=self._tick, args=(tick_s,), name="anabranch trials", daemon=True)
            self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        self._row.clear()

    def start(self, text):
        """The next trial starts, so the one before it is done."""
        with self._mutex:
            self._started, self._text, self._trial_start = self._started + 1, text, self._now()
            self._draw()

    def clear(self):
        """Erases the row, so that other output can take its place until the next trial starts."""
        with self._mutex:
            self._row.clear()

    def skip(self, count):
        """``count`` of the trials that were announced do not take place."""
        self._count -= count

    def _tick(self, seconds):
        while not self._ended.wait(seconds):
            with self._mutex:
                self._draw()

    def _draw(self):
        if not self._row.in_place or not self._started:
            return
        done, now = self._started - 1, self._now()
        time_field = clock_text(now - self._start) + " so far"
        if done:
            each = (self._trial_start - self._start) / done
            left = each * (self._count - done) - (now - self._trial_start)
            time_field = "ETA " + clock_text(max(left, 0))
        self._row.draw([(0, "%s, %s" % (self._text, time_field))])
