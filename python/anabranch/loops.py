"""``anabranch.Loop`` adds a progress line and callbacks to the training loop of a script."""
from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from . import _cluster
from .fluid import arguments
from .fluid.errors import InvalidType, InvalidValue, NotAllowed
from .fluid.reading import test_data
from .fluid.user_warnings import warn
from .progress import EPOCH, LOSS, SPEED, STEP, TIME, VALUE, WAIT, Meter, Smooth

if TYPE_CHECKING:
    from .callbacks import Callback

__all__ = ["Loop"]


class Loop:
    """Adds a progress line and callbacks to a training loop of a script. The script itself runs the steps.

    The line shows the epoch and the step, the mean loss of the latest steps, rows per second, the share of time in
    which the loop waited for batches, and the time left. In a terminal or notebook, the line is redrawn in place and
    never wraps: fields that do not fit are omitted. Elsewhere, a line is printed every five seconds. On a cluster, only
    the first worker prints.

    With a ``fleet``, the workers of a cluster run one loop: at the end of each epoch, before the callbacks are called,
    ``values`` become the means over all workers, and if :meth:`stop` was called in one worker, all stop after the same
    epoch. Callbacks therefore make the same decisions in all workers. All workers run the same number of epochs, and
    log the same names.

    Args:
        callbacks (list of Callback, optional): callbacks, in the order in which they are called.
        unit (str): plural name for the rows of a batch. Default "samples".
        show (bool, optional): prints the line. None: as described above. Default None.
        stream (file, optional): output of the line. Default ``sys.stderr``.
        now (callable): clock that returns seconds. Default ``time.perf_counter``.
        fleet (Fleet, optional): the initialized ``fleet`` object of this process, for parameter servers or for
            collective training.

    Attributes:
        epoch (int): number of the current epoch, from 0 (the line counts from 1).
        step (int): number of completed steps.
        values (dict): name -> newest logged float.
        smoothed (dict): name -> Smooth of a value per step.
        stopped (str): reason that was passed to :meth:`stop`, or None.
        fleet (Fleet): the argument ``fleet``.

    Raises:
        TypeError: a callback or ``fleet`` has the wrong type.

    Examples:
        >>> import anabranch
        >>> loop = anabranch.Loop(show=False)
        >>> for epoch in loop.epochs(2):
        ...     for batch in loop.steps([1.0, 0.5]):
        ...         loop.log(loss=batch)
        ...     loop.log_epoch(test_loss=0.25)
        >>> loop.step, loop.values
        (4, {'loss': 0.5, 'test_loss': 0.25})
    """

    def __init__(self, callbacks: Sequence[Callback] = (), unit: str = "samples", show: bool | None = None,
                 stream: TextIO | None = None, now: Any = time.perf_counter, fleet: Any = None) -> None:
        from .callbacks import Callback
        if isinstance(callbacks, Callback) or not isinstance(callbacks, Iterable):
            raise InvalidType("Loop: callbacks must be a list, got %s: write [callback]" % type(callbacks).__name__)
        for callback in callbacks:
            if not isinstance(callback, Callback):
                raise InvalidType("Loop: callbacks must be anabranch.callbacks.Callback, got %s"
                                  % type(callback).__name__)
        self._callbacks, self._unit, self._now = list(callbacks), unit, now
        self._stream = sys.stderr if stream is None else stream
        self._show = show
        self._nan: set[str] = set()     # values with a warning
        self.fleet = fleet
        self._role = None if fleet is None else _cluster.role_of(fleet, "Loop")
        self._is_shared = self._role is not None and self._role.worker_num() > 1
        self.epoch = self.step = 0
        self.values: dict[str, float] = {}
        self.smoothed: dict[str, Smooth] = {}
        self.stopped: str | None = None
        self._epochs: int | None = None      # total, where it is known
        self._epoch_steps: int | None = None    # of the last complete epoch
        self._in_epoch = self._follows = False

    # ---- the loops of a script

    def epochs(self, epochs: int | Iterable[int]) -> Iterator[int]:
        """Yields the numbers of the epochs, from 0, until all are done or :meth:`stop` is called.

        Args:
            epochs (int or iterable of int): number of epochs, or their numbers. ``Checkpoints.epochs(count)`` also
                saves and restores the state of the loop and its callbacks.

        Raises:
            ValueError: a number is below 0.
        """
        if isinstance(epochs, int):
            if epochs < 0:
                raise InvalidValue("Loop.epochs: a number must be at least 0, got %d" % epochs)
            self._epochs, epochs = epochs, range(epochs)
        if not isinstance(epochs, Iterable):
            raise InvalidType("Loop.epochs: epochs must be an int or an iterable of ints, got %s"
                              % type(epochs).__name__)
        follow = getattr(epochs, "follow", None)
        self._follows = follow is not None      # a resumed epoch may have no steps left
        if follow is not None:
            follow(self)
        self._call("begin")
        try:
            for self.epoch in epochs:
                self._in_epoch = True
                yield self.epoch
                self._in_epoch = False
                self._share_values()
                self._call("epoch_end")
                self._share_stop()
                if self.stopped is not None:
                    self._say("stopped after epoch %d: %s" % (self.epoch + 1, self.stopped))
                    break
        finally:
            self._in_epoch = False
            self._call("end")

    def steps(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yields the items of ``batches``, one per step. Call :meth:`log` in each step.

        Args:
            batches (iterable): batches, for example a DataLoader, a generator, a list or ``Checkpoints.steps(loader)``.
        """
        if not isinstance(batches, Iterable) and not hasattr(batches, "__getitem__"):
            raise InvalidType("Loop.steps: batches must be an iterable, such as a DataLoader or a list of feeds, got %s"
                              % type(batches).__name__)
        line = _Line(self, _length(batches) or self._epoch_steps)
        source, done, complete = iter(batches), 0, False
        try:
            while self.stopped is None or self._is_shared:   # other workers may wait for the steps of this one
                asked = self._now()
                try:
                    batch = next(source)
                except StopIteration:
                    if not done and source is batches and not self._follows:
                        warn("Loop.steps: there are no batches: a generator gives its items once, so that it must be "
                             "made again in each epoch: write loop.steps(batches()) instead of loop.steps(generator)")
                    self._epoch_steps, complete = done or None, True
                    break
                line.waited += self._now() - asked
                yield batch
                done += 1
                self.step += 1
                line.stepped(_rows(batch))
                self._call("step_end")
        finally:
            line.close(complete)

    # ---- values that the script reports

    def log(self, **values: Any) -> None:
        """Records values of the step. Of an array, the mean is recorded. The progress line shows the values."""
        for name, value in values.items():
            self.values[name] = number = _number(name, value)
            self.smoothed.setdefault(name, Smooth()).add(number)
            if number != number and name not in self._nan:
                self._nan.add(name)
                warn("Loop.log: %s is NaN. With FLAGS_check_nan_inf=1, a run stops at the first operator whose output "
                     "has NaN" % name)

    def log_epoch(self, **values: Any) -> None:
        """Records values of the epoch, for example of a test program.

        Raises:
            RuntimeError: it is called outside of the loop over :meth:`epochs`.
        """
        if not self._in_epoch:
            raise NotAllowed("Loop.log_epoch must be called in the loop over epochs(), after its steps")
        for name, value in values.items():
            self.values[name] = _number(name, value)
        self._say("epoch %d  %s" % (self.epoch + 1, "  ".join("%s %.4g" % (name, self.values[name])
                                                             for name in values)))

    def stop(self, why: str) -> None:
        """Ends :meth:`steps` after this step and :meth:`epochs` after this epoch, and prints the reason ``why``. If
        there are several workers, all of them complete their steps of this epoch."""
        self.stopped = why

    # ---- the workers of a cluster

    def _share_values(self):
        if not self._is_shared:
            return
        everyone = _cluster.all_gather(self._role, self.values)
        for worker, other in enumerate(everyone):
            if set(other) != set(self.values):
                raise InvalidValue("Loop: all workers must log the same values, got %s, and %s from worker %d" % (
                    ", ".join(sorted(self.values)) or "none", ", ".join(sorted(other)) or "none", worker))
        for name, mine in self.values.items():
            values = [other[name] for other in everyone]
            if not all(value == mine for value in values):      # the mean of equal numbers may differ from them
                self.values[name] = float(np.mean(values))

    def _share_stop(self):
        if self._is_shared:
            self.stopped = next((why for why in _cluster.all_gather(self._role, self.stopped) if why is not None), None)

    # ---- the state in a checkpoint

    def state(self) -> dict[str, Any]:
        """dict: number of steps, logged values, and the states of the callbacks, in types that JSON can represent.

        Raises:
            TypeError: JSON cannot represent the state of a callback.
        """
        states = []
        for callback in self._callbacks:
            what = type(callback).__name__
            state = callback.state()
            try:
                states.append([what, json.loads(json.dumps(state))])
            except (TypeError, ValueError) as e:
                raise InvalidType("%s.state: the state must consist of dicts, lists, strings and numbers: %s"
                                  % (what, e)) from None
        return {"step": self.step, "epoch_steps": self._epoch_steps, "values": self.values, "callbacks": states,
                "smoothed": {name: smooth.state() for name, smooth in self.smoothed.items()}}

    def set_state(self, state: Mapping[str, Any]) -> list[str]:
        """Restores the result of :meth:`state`. The states of callbacks are found by the names of their classes.

        Returns:
            list of str: classes of callbacks that keep a state but are not in ``state``. These callbacks start over.
        """
        self.step, self._epoch_steps, self.values = state["step"], state["epoch_steps"], dict(state["values"])
        self.smoothed = {}
        for name, smooth in state["smoothed"].items():
            self.smoothed[name] = Smooth()
            self.smoothed[name].set_state(smooth)
        saved, without = list(state["callbacks"]), []
        for callback in self._callbacks:
            what = type(callback).__name__
            found = next((entry for entry in saved if entry[0] == what), None)
            if found is not None:
                saved.remove(found)
                callback.set_state(found[1])
            elif callback.state():
                without.append(what)
        return without

    def _call(self, name):
        for callback in self._callbacks:
            if name == "epoch_end":
                with test_data.testing("epoch_end of %s" % type(callback).__name__):
                    callback.epoch_end(self)
            else:
                getattr(callback, name)(self)

    def _say(self, text):
        if not Meter(self._show, self._stream).is_silent:
            self._stream.write(text + "\n")
            self._stream.flush()


class _Line:
    """The progress line of one epoch."""

    def __init__(self, loop, steps):
        self._loop, self._steps = loop, steps
        self._meter = Meter(loop._show, loop._stream, now=loop._now)
        self._start = loop._now()
        self._done = self._rows = 0
        self.waited = 0.0

    def stepped(self, rows):
        self._done += 1
        self._rows += rows
        if self._meter.is_due():
            self._meter.line(self._fields(Meter.time_left))

    def close(self, complete):
        """Closes the line. ``complete`` is True if the batches have ended, and False if the script has left the
        loop."""
        if complete:
            self._steps = self._done
        if self._done:
            self._meter.close(self._fields(Meter.time_left if complete else Meter.stopped))

    def _fields(self, time_field):
        loop, seconds = self._loop, max(self._loop._now() - self._start, 1e-9)
        fields = [(EPOCH, "epoch %d%s" % (loop.epoch + 1, "/%d" % loop._epochs if loop._epochs else "")),
                  (STEP, "step %d%s" % (self._done, "/%d" % self._steps if self._steps else ""))]
        fields += [(LOSS if name == "loss" else VALUE, "%s %.4f" % (name, smooth.value))
                   for name, smooth in loop.smoothed.items()]
        fields += [(SPEED, "%s %s/s" % (format(int(self._rows / seconds), ","), loop._unit)),
                   (WAIT, "reader wait %.0f %%" % (100 * self.waited / seconds))]
        if self._steps or time_field is Meter.stopped:
            fields.append((TIME, time_field(seconds, min(self._done / (self._steps or self._done), 1.0))))
        return fields


def _number(name, value):
    try:
        return float(np.mean(np.asarray(value)))
    except (TypeError, ValueError):
        raise InvalidType("Loop.log: %s must be a number or an array, got %s" % (name, type(value).__name__)) from None


def _length(batches):
    try:
        return len(batches)
    except TypeError:
        return None


def _rows(batch):
    """Returns the number of rows of a batch: that of the first value of a dict or list, otherwise 1."""
    if isinstance(batch, (list, tuple)) and batch and all(isinstance(part, Mapping) for part in batch):
        return sum(_rows(part) for part in batch)
    if isinstance(batch, Mapping):
        batch = list(batch.values())
    first = batch[0] if isinstance(batch, (list, tuple)) and batch else batch
    shape = getattr(first, "shape", ())
    shape = shape() if callable(shape) else shape
    return int(shape[0]) if len(shape) else 1


arguments.explain(globals())
