"""One row that shows how far a training run is: step, loss, speed, time left."""
import os
import sys
import time

from ._terminal import Row, clock_text, redraws

__all__ = ["Meter", "Progress", "Smooth", "is_first_process", "redraws"]

#: Importance of a field: the highest number is dropped first when a row is too narrow.
STEP, TIME, LOSS, EPOCH, VALUE, SPEED, WAIT = range(7)


def is_first_process():
    """bool: whether this process prints progress: it is the first worker of its cluster, or not part of a cluster."""
    return os.environ.get("PADDLE_TRAINER_ID", "0") in ("", "0")


class Smooth:
    """A moving average of the latest values, in which older values have less weight.

    Args:
        steps (int): number of steps over which the mean is taken, approximately. Default 20.

    Examples:
        >>> from anabranch.progress import Smooth
        >>> loss = Smooth(steps=2)
        >>> [loss.add(value) for value in (4.0, 1.0, 1.0)]
        [4.0, 2.0, 1.4285714285714286]
    """

    def __init__(self, steps=20):
        self._keep = 1.0 - 1.0 / steps
        self._sum = self._weight = 0.0

    def add(self, value, steps=1):
        """float: the mean including ``value``, which stands for the last ``steps`` steps."""
        keep = self._keep ** steps
        self._sum = keep * self._sum + (1.0 - keep) * value
        self._weight = keep * self._weight + (1.0 - keep)
        return self.value

    @property
    def value(self):
        """float: the mean; NaN before the first value."""
        return self._sum / self._weight if self._weight else float("nan")

    def state(self):
        """list: the state, which :meth:`set_state` restores."""
        return [self._sum, self._weight]

    def set_state(self, state):
        """Restores the result of :meth:`state`."""
        self._sum, self._weight = state


class Progress:
    """Prints a row that is redrawn in place in a terminal or notebook, at most once per step. Elsewhere, it prints a
    line every few seconds. The row never wraps: fields that do not fit are omitted, the least important ones first. The
    loss is a mean of the latest steps (:class:`Smooth`). Only the first worker of a cluster prints.

    Args:
        steps (int): number of steps of the whole run, at least 1.
        unit (str): name of a row of a batch, in the plural. Default "samples".
        stream (file, optional): output. Default ``sys.stderr``.
        terminal (bool, optional): whether to redraw in place. Default: whether ``stream`` is a terminal.
        every_s (float, optional): seconds between two lines. Default 0.1 in a terminal, else 5.
        now (callable): the clock, in seconds. Default ``time.monotonic``.
        show (bool, optional): whether to print. Default: in the first worker of a cluster, and outside of clusters.

    Raises:
        ValueError: ``steps`` is below 1.

    Examples:
        >>> import sys
        >>> from anabranch.progress import Progress
        >>> clock = iter(range(9)).__next__
        >>> with Progress(2, unit="images", stream=sys.stdout, terminal=False, now=clock, show=True) as line:
        ...     line.step(loss=0.5, rows=32)
        ...     line.step(loss=0.25, rows=32)
        step 1/2  loss 0.5000  32 images/s  ETA 0:01
        step 2/2  loss 0.3718  32 images/s  took 0:02
    """

    def __init__(self, steps, unit="samples", stream=None, terminal=None, every_s=None, now=time.monotonic,
                 show=None):
        if steps < 1:
            raise ValueError("Progress: steps must be at least 1, got %d" % steps)
        self._steps, self._unit, self._now = steps, unit, now
        self._row = Row(sys.stderr if stream is None else stream, terminal)
        self._every_s = (0.1 if self._row.in_place else 5.0) if every_s is None else every_s
        self._done = self._rows = 0
        self._loss = Smooth()
        self._quiet = not (is_first_process() if show is None else show)
        self._start = now()
        self._printed_at = None

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def step(self, loss, rows):
        """Counts a step. ``loss``: a number, or an array whose mean counts; ``rows``: number of rows of the batch."""
        self._done += 1
        self._rows += rows
        self._loss.add(float(loss.mean()) if hasattr(loss, "mean") else float(loss))
        now = self._now()
        if self._quiet:
            return
        if self._printed_at is None or now - self._printed_at >= self._every_s or self._done == self._steps:
            self._printed_at = now
            self._print(now - self._start, Meter.time_left)

    def close(self):
        """Ends the row. It says "stopped after" when there are steps left."""
        if self._row.is_open and self._done < self._steps:
            self._print(self._now() - self._start, Meter.stopped)
        self._row.end()

    def _print(self, elapsed, time_field):
        speed = self._rows / elapsed if elapsed > 0 else 0.0
        self._row.draw([
            (STEP, "step %*d/%d" % (len(str(self._steps)), self._done, self._steps)),
            (LOSS, "loss %.4f" % self._loss.value),
            (SPEED, "%s %s/s" % (format(int(speed), ","), self._unit)),
            (TIME, time_field(elapsed, self._done / self._steps))])


class Meter:
    """A row about work with an unknown number of steps. It is redrawn in a terminal, and printed every few seconds
    elsewhere.

    Args:
        show (bool, optional): whether to print. Default: in a terminal or notebook at once, elsewhere after the first
            ``every_s`` seconds; never in workers of a cluster after the first.
        stream (file, optional): output. Default ``sys.stderr``.
        terminal (bool, optional): whether to redraw in place. Default: whether ``stream`` is a terminal.
        every_s (float, optional): seconds between two lines. Default 0.2 in a terminal, else 5.
        now (callable): the clock, in seconds. Default ``time.monotonic``.

    Examples:
        >>> import sys
        >>> meter = Meter(True, stream=sys.stdout, terminal=False, now=iter([0, 1, 6, 6]).__next__)
        >>> meter.is_due(), meter.is_due()
        (False, True)
        >>> meter.line([(0, "half way"), (1, meter.time_left(6, 0.5))])
        half way  ETA 0:06
    """

    def __init__(self, show=None, stream=None, terminal=None, every_s=None, now=time.monotonic):
        self._stream = sys.stderr if stream is None else stream
        self._row = Row(self._stream, terminal)
        self._every_s = (0.2 if self._row.in_place else 5.0) if every_s is None else every_s
        self._show, self._now = False if show is None and not is_first_process() else show, now
        self._printed_at = self._changed_at = now()
        self._count = None
        self.has_printed = False

    @property
    def is_silent(self):
        """bool: nothing is ever printed."""
        return self._show is False

    @property
    def is_open(self):
        """bool: the row has been drawn in a terminal and not been ended."""
        return self._row.is_open

    def is_due(self):
        """bool: it is time for a line."""
        return self._show is not False and self._now() - self._printed_at >= self._every_s

    def needs_values(self):
        """bool: a line is due within half a second, so it is time to fetch the values that it shows."""
        return self._show is not False and self._now() - self._printed_at >= self._every_s - 0.5

    def line(self, fields):
        """Prints a line. ``fields``: pairs of importance (0 for the most important) and text."""
        self._printed_at = self._now()
        self.has_printed = True
        self._row.draw(fields)

    def close(self, fields):
        """Prints the last line, unless no line was printed before it and none is due."""
        if self._show is not False and (self.has_printed or self._show or self._row.in_place):
            self.line(fields)
            self._row.end()

    @staticmethod
    def time_left(seconds, share):
        """str: "ETA 1:02", or "took 1:02" when nothing is left; ``share``: of the work that is done, 0 to 1."""
        if share >= 1:
            return "took " + clock_text(seconds)
        return "ETA " + (clock_text(seconds * (1 - share) / share) if share > 0 else "unknown")

    @staticmethod
    def stopped(seconds, share=0.0):
        """str: "stopped after 1:02"."""
        return "stopped after " + clock_text(seconds)

    def check_stall(self, what, count, limit_s):
        """Reports each time that ``count`` has not changed for ``limit_s`` seconds (None: never)."""
        now = self._now()
        if count != self._count or limit_s is None:
            self._count, self._changed_at = count, now
        elif now - self._changed_at >= limit_s:
            self._changed_at = now
            self._row.end()
            self._stream.write("anabranch: %s: no batch was finished for %.0f s, after %d of them\n"
                               % (what, limit_s, count))
            self._stream.flush()
