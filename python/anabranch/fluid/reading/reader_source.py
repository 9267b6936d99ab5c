"""Sources of a program's readers, from which ``Executor.run`` takes batches."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..errors import EOFException, InvalidValue, NotAllowed
from ..user_warnings import advise
from .batch_queue import BatchQueue
from .queue_view import QueueView

if TYPE_CHECKING:
    from ..framework import Program


def warn_of_no_batches(label: str, names: Sequence[str], had_batches: bool) -> None:
    """Warns about a pass without batches.

    Args:
        label (str), names (list of str): of the reader.
        had_batches (bool): whether an earlier pass had some.
    """
    advise("%s of %s: the pass has no batches%s" % (
        label, ", ".join(names),
        ", but an earlier one had: the function must return a new iterator in each call, not one that is exhausted"
        if had_batches else ": the source has no samples, or fewer than a batch (drop_last)"))


class ReaderSource:
    """Batches of one reader, between ``start`` and ``reset``.

    Args:
        names (list of str): the variables that a batch fills, in order.
        capacity (int): number of batches read ahead.
        drop_last (bool): whether to drop batches at the end that are fewer than replicas.
        label (str): name for messages.
    """

    def __init__(self, names: Sequence[str], capacity: int, drop_last: bool, label: str) -> None:
        self.names = names
        self._capacity, self._drop_last, self._label = capacity, drop_last, label
        self._batches = None
        self.queue = None
        self._had_batches = False   # in a pass
        self._taken = False         # in this pass

    def set_batches(self, batches: Any) -> None:
        """Sets ``batches``, a function that returns an iterable of lists of LoDTensors."""
        self._batches = batches

    def has_batches(self) -> bool:
        """bool: whether a source has been set."""
        return self._batches is not None

    def view(self) -> QueueView:
        """QueueView: the queue of each pass."""
        return QueueView(lambda: self.queue, self._capacity, self)

    def start(self) -> None:
        """Starts a pass and the thread that reads ahead."""
        if self._batches is None:
            raise NotAllowed("%s: set a data source before start()" % self._label)
        if self.queue is not None and self.queue.is_running():
            raise NotAllowed("%s: start() was called during a pass: call reset() first" % self._label)
        self.reset()
        self._taken = False
        self.queue = BatchQueue(self._batches, self._capacity, "%s of %s" % (self._label, ", ".join(self.names)))

    def reset(self) -> None:
        """Ends the pass."""
        queue, self.queue = self.queue, None
        if queue is not None:
            queue.close()

    def take(self, replicas: Any) -> Any:
        """Batches for one run: one per replica, or fewer at the end if the reader allows that.

        Raises:
            EOFException: the pass is at its end.
            RuntimeError: no pass is running. Exceptions of the generator.
        """
        if self.queue is None:
            raise NotAllowed("%s of %s: the program reads from it: call start() before Executor.run"
                             % (self._label, ", ".join(self.names)))
        taken = []
        while len(taken) < replicas:
            batch = self.queue.get()
            if batch is BatchQueue.END:
                break
            taken.append(batch)
        if taken:
            self._had_batches = self._taken = True
        elif not self._taken:
            warn_of_no_batches(self._label, self.names, self._had_batches)
        if not taken or (len(taken) < replicas and self._drop_last):
            raise EOFException("There is no next data: %s of %s is at its end; call reset() before the next pass"
                               % (self._label, ", ".join(self.names)))
        return taken


class ProgramReaders:
    """The readers of one program, looked up once.

    Args:
        program (Program): the program in its current state.
    """

    def __init__(self, program: Program) -> None:
        self._readers = []
        for op in program.desc.block(0).ops():
            if op._type != "read":
                continue
            names = op.input("Reader")
            if len(names) != 1:
                raise InvalidValue("read: slot Reader must name one reader, got %d" % len(names))
            name, = names
            if name not in program._readers:
                raise InvalidValue("the program reads from %s, but has no data source: only the program in which "
                                   "DataLoader or py_reader was created, and its clones, have one" % name)
            self._readers.append((program._readers[name], op.output("Out")))

    def __bool__(self) -> Any:
        return bool(self._readers)

    def feeds(self, feed: Any, table: Any, replicas: Any = 1) -> Any:
        """The feeds of a run: a list with one dict per replica of read batches and the caller's ``feed``.

        Raises:
            EOFException, RuntimeError: as :meth:`ReaderSource.take`.
        """
        if feed and replicas > 1:
            raise InvalidValue("feed must be empty for a program that reads its batches on several replicas, got %s"
                               % ", ".join(sorted(feed)))
        rows = [dict(feed) for _ in range(replicas)]
        given = replicas
        for source, names in self._readers:
            batches = source.take(replicas)
            given = min(given, len(batches))
            for row, batch in zip(rows, batches):
                row.update(zip(names, batch))
        return [table.accept(row) for row in rows[:given]]
