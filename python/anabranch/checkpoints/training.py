"""``anabranch.Checkpoints``, which saves a training run regularly and resumes it."""
from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TextIO

from .. import _core, fluid
from .._terminal import counted
from ..fluid import arguments
from ..fluid.errors import InvalidArgument, InvalidValue, NotAllowed, NotFound, ShapeMismatch, Unsupported
from ..fluid.reading.generator_loader import GeneratorLoader
from ..fluid.reading.map_loader import MapLoader
from . import constants, folders, links, randomness
from .data_settings import DataSettings
from .deltas import Deltas
from .epochs import Epochs
from .in_use import in_use
from .signals import Terminated
from .state import Trained

__all__ = ["Checkpoints"]

#: State of a loop in a checkpoint that was written without one.
_NO_LOOP: dict[str, Any] = {"epoch_steps": None, "values": {}, "smoothed": {}, "callbacks": []}
_THREADED = (GeneratorLoader, MapLoader)   # they draw random numbers in their own threads


class Checkpoints:
    """Saves a training run regularly and resumes it: a run that was killed and resumed gives the same bits as an
    uninterrupted one.

    A checkpoint holds all persistable variables (parameters, optimizer state, counters of schedules, statistics,
    growable tables), the state of the random numbers of operators, of Python and of NumPy, and the number of completed
    batches of the current epoch. It is written under a temporary name and renamed when it is complete. SIGTERM saves a
    checkpoint and ends the process with code 0.

    With ``delta``, most checkpoints hold only the rows of growable tables that have changed since the previous
    checkpoint, and a thread writes them while training continues. All other variables are saved in every checkpoint.

    A resumed epoch reads the completed batches again but skips them: a generator gives the same batches from the same
    random numbers, and a Dataset is brought into the same order. The time that this takes is printed.

    Args:
        folder (str): folder for the checkpoints of this run only. It is created if it does not exist.
        program (Program|CompiledProgram|list): program or programs that are trained.
        executor (Executor): executor of the run.
        every (int): number of steps between two checkpoints, at least 1. Default 1000.
        every_s (float, optional): seconds between two checkpoints, in addition to ``every``.
        every_bytes (int, optional): bytes of changed rows of growable tables after which a checkpoint is saved, in
            addition to ``every``. It requires ``delta``.
        keep (int): number of latest checkpoints to keep, at least 1. The checkpoints that these need are kept, too.
            Default 3.
        delta (int): maximum number of checkpoints with only changed rows between two checkpoints with all rows. All
            rows are written earlier if the changes have become larger than the last checkpoint with all rows. 0: every
            checkpoint has all rows. Default 0.
        resume (str|bool): "auto": resumes from the latest complete checkpoint, if there is one. True: requires a
            checkpoint. False: requires that there is none. Default "auto".
        also (list, optional): random.Random, numpy.random.RandomState and Generator objects that the loop draws from.
        scope (Scope, optional): scope of the variables. Default ``global_scope()``.
        stream (file, optional): output of messages. Default ``sys.stderr``.
        learning_rate (str): source of the learning rate, and of the other variables that no operator writes, if the
            script now sets a different value than when the run was started. "script": the value of the script;
            "checkpoint": the value of the checkpoint. A message shows both values. Default "script".

    Raises:
        ValueError: a number is too small, or ``resume`` is invalid.
        TypeError: an argument has the wrong type.
        NotImplementedError: variables of a program are on parameter servers, or a program sums gradients with other
            processes.

    Examples:
        >>> import tempfile, numpy, anabranch, anabranch.fluid as fluid
        >>> x, y = fluid.data("x", [None, 2]), fluid.data("y", [None, 1])
        >>> loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y))
        >>> _ = fluid.optimizer.Adam(0.1).minimize(loss)
        >>> exe, main = fluid.Executor(), fluid.default_main_program()
        >>> _ = exe.run(fluid.default_startup_program())
        >>> def batches():
        ...     for _ in range(4):
        ...         rows = numpy.random.uniform(size=(8, 2)).astype("float32")
        ...         yield {"x": rows, "y": rows.sum(1, keepdims=True)}
        >>> run = anabranch.Checkpoints(tempfile.mkdtemp(), main, exe, every=3)
        >>> for epoch in run.epochs(2):
        ...     for batch in run.steps(batches()):
        ...         _ = exe.run(main, feed=batch, fetch_list=[loss])
        >>> run.step
        8
    """

    def __init__(self, folder: str, program: Any, executor: Any, every: int = 1000, every_s: float | None = None,
                 keep: int = 3, resume: str | bool = "auto", also: Sequence[Any] = (), scope: Any = None,
                 stream: TextIO | None = None, learning_rate: str = "script", delta: int = 0,
                 every_bytes: int | None = None) -> None:
        for name, number, least in (("every", every, 1), ("keep", keep, 1), ("delta", delta, 0),
                                    ("every_bytes", 1 if every_bytes is None else every_bytes, 1)):
            if not isinstance(number, int) or isinstance(number, bool) or number < least:
                raise InvalidValue("Checkpoints: %s must be a number from %d, got %r" % (name, least, number))
        if every_bytes is not None and not delta:
            raise InvalidValue("Checkpoints: every_bytes requires delta, because changes are recorded only then")
        if every_s is not None and not every_s > 0:
            raise InvalidValue("Checkpoints: every_s must be above 0, got %r" % (every_s,))
        if resume not in ("auto", True, False):
            raise InvalidValue("Checkpoints: resume must be 'auto', True or False, got %r" % (resume,))
        if learning_rate not in constants.SOURCES:
            raise InvalidValue("Checkpoints: learning_rate must be 'script' or 'checkpoint', got %r"
                               % (learning_rate,))
        for source in also:
            randomness.check(source)
        self.folder = os.fspath(folder)
        self._trained = Trained(program, executor, fluid.global_scope() if scope is None else scope)
        self._every, self._every_s, self._keep, self._resume, self._also = every, every_s, keep, resume, list(also)
        self._every_bytes = every_bytes
        self._stream = sys.stderr if stream is None else stream
        self._deltas = Deltas(self.folder, self._trained, delta, keep, self._say) if delta else None
        self._rate_source = learning_rate
        self._constants: dict[str, Any] = {}    # name -> record of the value that the script gave
        self.step = self.epoch = 0
        self._in_epoch = 0              # steps done of this epoch
        self._left_out = 0              # of those, which this process has still to pass by
        self._saved_step = 0
        self._finished = False
        self._saved_at = time.monotonic()
        self._resumed: dict[str, Any] | None = None   # what the checkpoint said, until its epoch has caught up
        self._epoch_random: Any = None
        self._shuffles: Any = None      # of the Dataset that is trained on
        self._data = DataSettings()
        self._term = Terminated(self._end_part)
        self._part: Any = None
        self._loop: Any = None          # the Loop that iterates over the epochs
        self._entered = False

    # ---- the loops of a script

    def epochs(self, count: int) -> Iterator[int]:
        """Returns an iterator over the numbers of the remaining epochs. Call it after the startup program has run,
        because it loads the latest checkpoint. After the last epoch, the final state is saved.

        If a :class:`anabranch.Loop` iterates over it, a checkpoint also holds the number of steps and the logged values
        of the loop, and the states of its callbacks.

        Args:
            count (int): total number of epochs, at least 0.

        Raises:
            ValueError: ``resume`` is False and the folder contains checkpoints, or it is True and there are none, or
                no checkpoint is complete.
            EnforceNotMet: the checkpoint does not match the program.
        """
        return Epochs(self._remaining(count), self._follow)

    def _follow(self, loop):
        self._loop = loop

    def _remaining(self, count):
        with in_use(self.folder):
            self._load(count)
            with self._trained.saved_by_a_run():
                yield from self._numbered(count)

    def _numbered(self, count):
        with self._term:
            self._entered = True
            try:
                while self.epoch < count:
                    self._begin_epoch()
                    yield self.epoch
                    if self._left_out:
                        raise NotAllowed("Checkpoints: epoch %d resumes after %s, but its data ended %s earlier"
                                         % (self.epoch, counted(self._in_epoch, "step"),
                                            counted(self._left_out, "step")))
                    self._finished = self.epoch + 1 == count
                    if self._finished:
                        self.save()
                    self.epoch, self._in_epoch, self._shuffles = self.epoch + 1, 0, None
            finally:
                self._entered = False
                if self._deltas is not None:
                    self._deltas.wait()

    def steps(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yields the items of ``batches``, one per step, without the batches that are already completed. After a step,
        saves a checkpoint if one is due.

        Args:
            batches (iterable): batches, for example a DataLoader, a generator or a list.

        Raises:
            RuntimeError: it is called outside of :meth:`epochs`.
        """
        self._check_entered("steps")
        begun, passed = time.monotonic(), 0
        source = iter(batches)
        while self._left_out:
            try:
                next(source)
            except StopIteration:
                return
            self._left_out -= 1
            passed += 1
        if passed:
            self._caught_up(passed, begun, not isinstance(batches, _THREADED))
        for item in source:
            yield item
            self._stepped(1)

    # ---- saving

    def save(self) -> str:
        """Saves a checkpoint now, and deletes the oldest ones. It is on disk when this returns.

        Returns:
            str: folder of the checkpoint.
        """
        status = self._status()
        if self._deltas is not None:
            self._start(status)
            return self._deltas.wait()

        def fill(folder: str) -> None:
            status["programs"], files = self._trained.write(folder)
            with files:
                pass
        written = folders.write(self.folder, status, fill)
        folders.keep(self.folder, self._keep)
        self._saved_step, self._saved_at = self.step, time.monotonic()
        return written

    def _status(self):
        status: dict[str, Any] = {
            "step": self.step, "epoch": self.epoch, "in_epoch": self._in_epoch, "finished": self._finished,
            "shuffles": self._shuffles, "epoch_random": self._epoch_random,
            "random": randomness.everywhere(self._also), "constants": self._constants, "time": time.time(),
            "variables": self._trained.names(), "programs": None, **self._data.status()}
        if self._loop is not None:
            status["loop"] = self._loop.state()
        return status

    def _start(self, status):
        self._deltas.start(status)
        self._saved_step, self._saved_at = self.step, time.monotonic()

    def _stepped(self, count):
        self.step += count
        self._in_epoch += count
        if self._term.asked:
            self.save()
            self._say("SIGTERM: saved at step %d" % self.step)
            raise SystemExit(0)
        if self._deltas is not None:
            self._deltas.check()
        if self.step - self._saved_step < self._every and not self._overdue():
            return
        if self._deltas is not None:
            self._start(self._status())
        else:
            self.save()

    def _overdue(self):
        if self._every_s is not None and time.monotonic() - self._saved_at >= self._every_s:
            return True
        return self._every_bytes is not None and self._deltas.changed_bytes() >= self._every_bytes

    # ---- taking up

    def _load(self, count):
        found = folders.numbers(self.folder)
        if self._resume is False and found:
            raise InvalidValue("Checkpoints: resume is False, but %s exists" % folders.path(self.folder, found[-1]))
        if self._loop is not None:
            self._loop.state()      # one that cannot be saved is an error now, not after hours
        self._trained.warn_of_no_training()
        given, errors = self._trained.constants(), []
        self._constants = {name: constants.record(value) for name, value in given.items()}
        for number in reversed(found):
            folder = folders.path(self.folder, number)
            try:
                status = folders.read(folder)
                chains = links.chains(folder, status) if "chain" in status else {}
            except (InvalidValue, InvalidArgument, ShapeMismatch, NotFound) as e:
                errors.append(str(e))
                self._say("incomplete or damaged checkpoint, trying the previous one: %s" % e)
                continue
            self._trained.check(folder, status)
            self._trained.read(folder, status["programs"], chains)
            if self._deltas is not None:
                self._deltas.resume(number, status)
            self._take_up(status, count, given)
            return
        if errors or self._resume is True:
            raise InvalidValue("Checkpoints: %s has no complete checkpoint%s"
                               % (self.folder, "".join("; " + e for e in errors)))

    def _take_up(self, status, count, given):
        chosen = constants.Chosen(self._rate_source, given, self._trained.constants(), status.get("constants", {}))
        self._trained.set_constants(chosen.keep)
        self._constants = chosen.records
        for line in chosen.lines:
            self._say(line)
        self.step, self.epoch = status["step"], status["epoch"]
        self._data.resume(status)
        self._saved_step = self.step
        if self._loop is not None:
            self._set_loop(status.get("loop"))
        if status["finished"] and self.epoch + 1 >= count:
            self.epoch += 1
            randomness.set_everywhere(self._also, status["random"])
            self._say("all %d epochs are done" % count if count != 1 else "the epoch is done")
            return
        self._in_epoch = self._left_out = status["in_epoch"]
        self._epoch_random, self._resumed = status["epoch_random"], status
        randomness.set_everywhere(self._also, status["epoch_random"])
        self._say("resumed after step %d, in epoch %d" % (self.step, self.epoch + 1))

    def _set_loop(self, state):
        without = self._loop.set_state(dict(_NO_LOOP, step=self.step) if state is None else state)
        if without:
            self._say("no state in the checkpoint, so these callbacks start over: " + ", ".join(without))

    def _begin_epoch(self):
        if self._resumed is None:
            self._epoch_random = randomness.everywhere(self._also)

    def _caught_up(self, passed, begun, alone):
        if self._left_out == 0 and self._resumed is not None:
            if alone:
                randomness.set_everywhere(self._also, self._resumed["random"])
            self._resumed = None
        self._say("skipped %s in %.1f s" % (counted(passed, "completed batch", "completed batches"),
                                             time.monotonic() - begun))

    # ---- passes over a Dataset (train_from_dataset)

    def _prepare(self, dataset: Any) -> None:
        """Restores the order of the records before a pass."""
        self._check_entered("train_from_dataset")
        if getattr(dataset, "_exchanged", False):
            raise Unsupported("Checkpoints: the records came from other trainers (global_shuffle), and a resumed "
                              "run cannot request the same records again")
        self._data.compare(dataset, self._left_out > 0, self._say)
        core = getattr(dataset, "_core", None)
        if core is None or not hasattr(dataset, "load_into_memory"):
            return
        if self._left_out and self._resumed is not None and self._resumed["shuffles"] is not None:
            core.shuffle_as(*self._resumed["shuffles"])
        self._shuffles = list(core.shuffles())

    def _train(self, stream: Any, run_part: Callable[[Any, bool], Any]) -> Any:
        """Trains on a stream in parts, which end where a checkpoint is due. Returns the progress of the last part."""
        begun = time.monotonic()
        if self._left_out:
            passed = stream.skip(self._left_out)
            self._left_out -= passed
            self._caught_up(passed, begun, True)
        done, before = None, 0
        while not self._left_out:
            due = self._every - (self.step - self._saved_step)
            self._part = part = _core.PartStream(stream, max(due, 1))
            if self._term.asked:
                part.close()
            done = run_part(part, done is not None)
            self._part = None
            self._stepped(done["batches"] - before)
            before = done["batches"]
            if part.ended:
                return done
        return run_part(_core.PartStream(stream, 0), False)

    def _tick(self) -> None:
        """Called about ten times a second during a part."""
        if self._overdue():
            self._end_part()

    def _end_part(self) -> None:
        if self._part is not None:
            self._part.close()

    # ---- small things

    def _check_entered(self, what):
        if not self._entered:
            raise NotAllowed("Checkpoints: %s is called outside of the loop over epochs()" % what)

    def _say(self, text):
        self._stream.write("%s: %s\n" % (self.folder, text))
        self._stream.flush()


arguments.explain(globals())
