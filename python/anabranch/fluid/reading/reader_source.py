"""The source behind a reader of a program: where ``Executor.run`` takes batches from."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..core import EOFException
from ..errors import InvalidArgument, InvalidValue, NotAllowed
from .batch_queue import BatchQueue

if TYPE_CHECKING:
    from ..framework import Program


class ReaderSource:
    """Batches of one reader, between ``start`` and ``reset``.

    Args:
        names (list of str): the variables that a batch fills, in order.
        capacity (int): batches made ahead.
        drop_last (bool): at the end, leaves out batches that are fewer than replicas.
        label (str): for messages.
    """

    def __init__(self, names: Sequence[str], capacity: int, drop_last: bool, label: str) -> None:
        self.names = names
        self._capacity, self._drop_last, self._label = capacity, drop_last, label
        self._batches = None
        self.queue = None

    def set_batches(self, batches: Any) -> None:
        """``batches()`` returns an iterable of lists of LoDTensors."""
        self._batches = batches

    def start(self) -> None:
        """Begins a pass; the thread makes batches ahead from now on."""
        if self._batches is None:
            raise NotAllowed("%s: start() without a data source" % self._label)
        if self.queue is not None and self.queue.is_running():
            raise NotAllowed("%s: start() during a pass; call reset() first" % self._label)
        self.reset()
        self.queue = BatchQueue(self._batches, self._capacity, "%s of %s" % (self._label, ", ".join(self.names)))

    def reset(self) -> None:
        """Ends the pass."""
        queue, self.queue = self.queue, None
        if queue is not None:
            queue.close()

    def take(self, replicas: Any) -> Any:
        """Batches for one run: as many as replicas, fewer at the end if the reader allows that.

        Raises:
            EOFException: at the end. RuntimeError: no pass is under way. What the generator raised, as it was raised.
        """
        if self.queue is None:
            raise NotAllowed("%s of %s: the program reads from it; call start() before Executor.run"
                             % (self._label, ", ".join(self.names)))
        taken = []
        while len(taken) < replicas:
            batch = self.queue.get()
            if batch is BatchQueue.END:
                break
            taken.append(batch)
        if not taken or (len(taken) < replicas and self._drop_last):
            raise EOFException("There is no next data: %s of %s is at its end; call reset() before the next pass"
                               % (self._label, ", ".join(self.names)))
        return taken


class ProgramReaders:
    """The readers of one program, looked up once.

    Args:
        program (Program): as it is now.
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
                raise InvalidValue("the program reads from %s, whose source is not known: it belongs to the program "
                                   "that DataLoader or py_reader was called for, and to its clones" % name)
            self._readers.append((program._readers[name], op.output("Out")))

    def __bool__(self) -> Any:
        return bool(self._readers)

    def feeds(self, feed: Any, table: Any, replicas: Any = 1) -> Any:
        """What a run is fed: a list with one dict per replica, read batches and the caller's ``feed`` together.

        Raises:
            EOFException, RuntimeError: as :meth:`ReaderSource.take`.
            EnforceNotMet: a batch that does not fit its variables.
        """
        if feed and replicas > 1:
            raise InvalidValue("a program that reads its batches by itself is fed nothing else on several replicas; "
                               "got a feed of %s" % ", ".join(sorted(feed)))
        rows = [dict(feed) for _ in range(replicas)]
        given = replicas
        for source, names in self._readers:
            batches = source.take(replicas)
            given = min(given, len(batches))
            for row, batch in zip(rows, batches):
                row.update(zip(names, batch))
        try:
            return [table.accept(row) for row in rows[:given]]
        except InvalidValue as e:
            raise InvalidArgument("read: %s" % e) from None
