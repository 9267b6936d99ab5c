"""The output of a pass over a Dataset while it runs."""
from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ...progress import LOSS, SPEED, STEP, TIME, VALUE, WAIT, Meter, Smooth
from ..fetching import fetch_names
from .batch_queue import stall_report_s
from .handler_thread import HandlerThread

_DEBUG_PERIOD = 100  # batches


def text_of(value: Any) -> str:
    """Readable text of an array: a bare number if it has one element."""
    value = np.asarray(value)
    return "%.6g" % value.item() if value.size == 1 and value.dtype.kind == "f" else np.array2string(
        value, precision=6, threshold=20) if value.size != 1 else str(value.item())


class PassOutput:
    """Output during a pass. Called in the thread that called ``train_from_dataset``."""

    def __init__(self, call: Any, loop: Any) -> None:
        self._call, self._loop = call, loop
        self._names = call.fetches()
        self._loss, self._auc = call.watched()
        self._values: dict[str, Any] = {}
        self._smooth, self._smoothed_to = Smooth(), 0
        self._meter = Meter(call.progress)
        self._handler = None if call.handler is None else HandlerThread(call.handler)
        self._debug_batches = 0
        self._newest: Any = None     # progress at the last tick
        self._stall_s = stall_report_s()

    def tick(self, p: Any) -> None:
        """Called about ten times a second."""
        call, self._newest = self._call, p
        self._meter.check_stall(call.what, p["batches"], self._stall_s)
        if self._meter.needs_values() or (self._handler is not None and self._handler.is_due()):
            self._loop.ask_for_values()
        if self._meter.is_due():
            self._meter.line(self._fields(p))
        if call.debug and p["batches"] >= self._debug_batches + _DEBUG_PERIOD:
            self._debug_batches = p["batches"]
            self._print_debug(p)

    def show(self, batch: int, values: Any, p: Any) -> None:
        """Prints values of one batch of the first trainer thread."""
        self._values = dict(zip(self._names, values))
        if self._loss in self._values and batch > self._smoothed_to:
            self._smooth.add(float(self._array(self._loss).mean()), batch - self._smoothed_to)
            self._smoothed_to = batch
        if self._handler is not None:
            self._handler.give({key: self._array(fetch_names(var)[0][0])
                                for key, var in self._call.handler.var_dict.items()})
        if batch % self._call.print_period == 0 and self._call.shown:
            texts = ["%s: %s" % (info, text_of(self._array(name)))
                     for info, name in zip(self._call.info, self._call.shown)]
            sys.stdout.write("batch %d  %s\n" % (batch, "  ".join(texts)))
            sys.stdout.flush()

    def _array(self, name):
        value = self._values.get(name)
        return None if value is None else np.array(value)

    def _fields(self, p, time_field=Meter.time_left):
        """The fields of the progress row: batches, loss, AUC, samples/s, share of time waiting for the reader, time
        left."""
        fields = [(STEP, "%d batch%s" % (p["batches"], "" if p["batches"] == 1 else "es"))]
        if self._loss in self._values:
            fields.append((LOSS, "loss %.4f" % self._smooth.value))
        if self._auc in self._values:
            of = "" if self._call.trainers == 1 or self._call.deterministic else " (trainer 1)"
            fields.append((VALUE, "AUC %.4f%s" % (float(self._array(self._auc).mean()), of)))
        busy = p["waited_s"] + p["running_s"]
        fields += [(SPEED, "%s samples/s" % format(int(p["rows"] / max(p["seconds"], 1e-9)), ",")),
                   (WAIT, "reader wait %.0f %%" % (100 * p["waited_s"] / busy if busy else 0)),
                   (TIME, time_field(p["seconds"], p["share_done"]))]
        return fields

    def _print_debug(self, p):
        busy = max(p["waited_s"] + p["running_s"], 1e-9)
        batches = max(p["batches"], 1)
        sys.stdout.write("batch %d  program %.3f ms a batch  reader %.3f ms a batch  reader share %.1f %%  "
                         "%.0f samples/s\n" % (p["batches"], 1e3 * p["running_s"] / batches,
                                               1e3 * p["waited_s"] / batches, 100 * p["waited_s"] / busy,
                                               p["rows"] / max(p["seconds"], 1e-9)))
        sys.stdout.flush()

    def end(self) -> None:
        """Stops the handler's thread, after success or failure."""
        if self._handler is not None:
            self._handler.end()

    def interrupted(self) -> None:
        """An error or Ctrl-C has ended the pass: the row says so, and what follows starts on a row below it."""
        if self._meter.is_open and self._newest is not None:
            self._meter.close(self._fields(self._newest, Meter.stopped))

    def close(self, p: Any) -> None:
        """Prints the last line of a successful pass."""
        if self._call.debug and p["batches"] > self._debug_batches:
            self._print_debug(p)
        bad = self._call.dataset.statistics()["bad_rows"]
        dataset = self._call.dataset
        self._meter.close(self._fields(p) + [(TIME, "%d bad rows" % bad if bad else "")])
        if bad and not self._meter.has_printed and not dataset._format:
            sys.stderr.write("%s: %d bad rows were skipped\n" % (self._call.what, bad))
        dataset._end_pass(self._call.what, uneven=dataset._stream.uneven())
