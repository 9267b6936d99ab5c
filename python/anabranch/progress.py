"""A line that tells how far a training run is: step, loss, speed, time left."""
import os
import sys
import time

__all__ = ["Meter", "Progress", "Smooth", "is_first_process", "redraws"]


def is_first_process():
    """bool: whether this is the first worker of its cluster, or alone: the others print no progress."""
    return os.environ.get("PADDLE_TRAINER_ID", "0") in ("", "0")


def redraws(stream):
    """bool: whether a line of the stream can be drawn again in its place: in a terminal, and in a notebook."""
    return stream.isatty() or type(stream).__module__.startswith("ipykernel.")


class Smooth:
    """A mean of the newest values, the older ones counting less and less.

    Args:
        steps (int): over about so many steps. Default 20.

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
        """float: the mean, ``value`` included, which stands for the last ``steps`` steps."""
        keep = self._keep ** steps
        self._sum = keep * self._sum + (1.0 - keep) * value
        self._weight = keep * self._weight + (1.0 - keep)
        return self.value

    @property
    def value(self):
        """float: the mean; NaN before the first value."""
        return self._sum / self._weight if self._weight else float("nan")


def _clock_text(seconds):
    """"0:07", "12:34", "1:02:03"."""
    seconds = int(seconds + 0.5)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return "%d:%02d:%02d" % (hours, minutes, seconds) if hours else "%d:%02d" % (minutes, seconds)


class Progress:
    """Prints one line per step at most: redrawn in a terminal or notebook, else a plain line every few seconds.
    The loss is a mean of the newest steps (:class:`Smooth`). Workers of a cluster after the first print nothing.

    Args:
        steps (int): how many steps there will be, at least 1.
        unit (str): what a row of a batch is, in the plural. Default "samples".
        stream (file, optional): where to print. Default ``sys.stderr``.
        terminal (bool, optional): redraw in place. Default: whether ``stream`` is a terminal.
        every_s (float, optional): seconds between two lines. Default 0.1 in a terminal, else 5.
        now (callable): the clock, in seconds. Default ``time.monotonic``.
        show (bool, optional): print at all. Default: in the first worker of a cluster, and where there is none.

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
        step 2/2  loss 0.3718  32 images/s  0:02 in all
    """

    def __init__(self, steps, unit="samples", stream=None, terminal=None, every_s=None, now=time.monotonic,
                 show=None):
        if steps < 1:
            raise ValueError("Progress: steps must be at least 1, got %d" % steps)
        self._steps, self._unit, self._now = steps, unit, now
        self._stream = sys.stderr if stream is None else stream
        self._terminal = redraws(self._stream) if terminal is None else terminal
        self._every_s = (0.1 if self._terminal else 5.0) if every_s is None else every_s
        self._done = self._rows = 0
        self._loss = Smooth()
        self._quiet = not (is_first_process() if show is None else show)
        self._begin = now()
        self._printed_at = None
        self._width = 0

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def step(self, loss, rows):
        """Counts a step. ``loss``: a number or an array, whose mean counts; ``rows``: rows of the batch."""
        self._done += 1
        self._rows += rows
        self._loss.add(float(loss.mean()) if hasattr(loss, "mean") else float(loss))
        now = self._now()
        if self._quiet:
            return
        if self._printed_at is None or now - self._printed_at >= self._every_s or self._done == self._steps:
            self._printed_at = now
            self._print(now - self._begin)

    def close(self):
        """Leaves the line as it is and goes to the next one."""
        if self._terminal and self._width:
            self._stream.write("\n")
            self._stream.flush()
        self._width = 0

    def _print(self, elapsed):
        speed = self._rows / elapsed if elapsed > 0 else 0.0
        if self._done < self._steps:
            time_text = "ETA " + _clock_text(elapsed / self._done * (self._steps - self._done))
        else:
            time_text = _clock_text(elapsed) + " in all"
        text = "step %*d/%d  loss %.4f  %s %s/s  %s" % (
            len(str(self._steps)), self._done, self._steps, self._loss.value, format(int(speed), ","), self._unit,
            time_text)
        if self._terminal:
            self._stream.write("\r" + text.ljust(self._width))
            self._width = len(text)
        else:
            self._stream.write(text + "\n")
        self._stream.flush()


class Meter:
    """A line of text about work whose number of steps is not known: redrawn in a terminal, else printed now and then.

    Args:
        show (bool, optional): print at all. Default: in a terminal or notebook at once, elsewhere from the first
            ``every_s`` on; not at all in workers of a cluster after the first.
        stream (file, optional): where to print. Default ``sys.stderr``.
        terminal (bool, optional): redraw in place. Default: whether ``stream`` is a terminal.
        every_s (float, optional): seconds between two lines. Default 0.2 in a terminal, else 5.
        now (callable): the clock, in seconds. Default ``time.monotonic``.

    Examples:
        >>> import sys
        >>> meter = Meter(True, stream=sys.stdout, terminal=False, now=iter([0, 1, 6, 6]).__next__)
        >>> meter.is_due(), meter.is_due()
        (False, True)
        >>> meter.line("half way  " + meter.time_left(6, 0.5))
        half way  ETA 0:06
    """

    def __init__(self, show=None, stream=None, terminal=None, every_s=None, now=time.monotonic):
        self._stream = sys.stderr if stream is None else stream
        self._terminal = redraws(self._stream) if terminal is None else terminal
        self._every_s = (0.2 if self._terminal else 5.0) if every_s is None else every_s
        self._show, self._now = False if show is None and not is_first_process() else show, now
        self._printed_at = self._changed_at = now()
        self._width = 0
        self._count = None
        self.has_printed = False

    @property
    def is_silent(self):
        """bool: nothing is ever printed."""
        return self._show is False

    def is_due(self):
        """bool: it is time for a line."""
        return self._show is not False and self._now() - self._printed_at >= self._every_s

    def wants_values(self):
        """bool: a line is due soon, so it is time to ask for what it is to tell."""
        return self._show is not False and self._now() - self._printed_at >= self._every_s - 0.5

    def line(self, text):
        """Prints a line."""
        self._printed_at = self._now()
        self.has_printed = True
        if self._terminal:
            self._stream.write("\r" + text.ljust(self._width))
            self._width = len(text)
        else:
            self._stream.write(text + "\n")
        self._stream.flush()

    def close(self, text):
        """Prints the last line, unless none was printed before it and none was asked for."""
        if self._show is not False and (self.has_printed or self._show or self._terminal):
            self.line(text)
            if self._terminal:
                self._stream.write("\n")
                self._stream.flush()

    @staticmethod
    def time_left(seconds, share):
        """str: "ETA 1:02", or how long it took when nothing is left; ``share``: 0 to 1, of the work that is done."""
        if share >= 1:
            return _clock_text(seconds) + " in all"
        return "ETA " + (_clock_text(seconds * (1 - share) / share) if share > 0 else "unknown")

    def check_stall(self, what, count, limit_s):
        """Reports when ``count`` has not changed for ``limit_s`` seconds (None: never), again and again."""
        now = self._now()
        if count != self._count or limit_s is None:
            self._count, self._changed_at = count, now
        elif now - self._changed_at >= limit_s:
            self._changed_at = now
            self._stream.write("anabranch: %s: no batch was finished for %.0f s, after %d of them\n"
                               % (what, limit_s, count))
            self._stream.flush()
