"""Batches from Python generators. The loader is an iterator of feeds, or the program itself reads from it."""
from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import _core
from .. import arguments, unique_name
from ..described import Described
from ..errors import InvalidType, InvalidValue, require
from ..framework import Variable, default_main_program
from ..framework.places import check_places
from .ahead import ahead_on_devices
from .batch_queue import BatchQueue
from .data_feeder import DataFeeder
from .decorators import batch as batched
from .queue_view import QueueView
from .read_ops import append_reader, read_into
from .reader_source import ReaderSource, warn_of_no_batches

_LoDTensor = _core.LoDTensor
_reader_names = unique_name.UniqueNameGenerator()  # one per process, so a loader does not change the names of layers


def ready_tensors(batch: Sequence[Any], number: int, names: Sequence[str], label: str) -> Any:
    """Converts the values of a batch to LoDTensors.

    Args:
        batch (list|tuple): one array or LoDTensor per name.
        number (int): number of the batch, for messages.
        names (list of str): the variables.
        label (str): name of the reader, for messages.

    Raises:
        TypeError: the batch is not a list or tuple, or a value is not a regular array.
        ValueError: the number of values differs.
    """
    if not isinstance(batch, (list, tuple)):
        raise InvalidType("%s: batch %d of the generator must be a list or tuple with a value for each of %s, got %s"
                          % (label, number, ", ".join(names), type(batch).__name__))
    if len(batch) != len(names):
        raise InvalidValue("%s: batch %d of the generator must have %d values (%s), got %d"
                           % (label, number, len(names), ", ".join(names), len(batch)))
    return [_tensor(value, name, number, label) for value, name in zip(batch, names)]


def _tensor(value, name, number, label):
    if isinstance(value, _LoDTensor):
        return value
    try:
        array = np.asarray(value)
    except ValueError:
        array = np.empty(0, dtype=object)
    if array.dtype == object:
        raise InvalidType("%s: the value of batch %d for %s must be a regular array, got samples of different shapes. "
                          "Pass a LoDTensor (fluid.create_lod_tensor)" % (label, number, name))
    tensor = _LoDTensor()
    tensor.set(array, _core.CPUPlace())
    return tensor


class GeneratorLoader(Described):
    """The loader that ``DataLoader.from_generator`` returns; see there."""

    def __init__(self, feed_list: Any, capacity: Any, use_double_buffer: Any = True, iterable: Any = True,
                 return_list: Any = False, drop_last: Any = True, label: Any = "DataLoader") -> None:
        if not isinstance(feed_list, (list, tuple)) or not all(isinstance(v, Variable) for v in feed_list):
            raise InvalidType("%s: feed_list must be a list of Variables" % label)
        self._feed_list = list(feed_list)
        self._names = [v.name for v in feed_list]
        self._capacity = capacity
        self._iterable = iterable
        self._return_list = return_list
        self._drop_last = drop_last
        self._double_buffer = use_double_buffer
        self._label = label
        self._batches = None
        self._places = None
        self._last_pass: Any = None
        self._own_pass: Any = None
        self._source: Any = None
        self._queue_view: QueueView | None = None
        self._had_batches = False   # in a pass
        if not iterable:
            self._put_into_program()

    def _put_into_program(self):
        program = self._feed_list[0].block.program if self._feed_list else default_main_program()
        block = program.global_block()
        self._source = ReaderSource(self._names, self._capacity, self._drop_last, self._label)
        queue, name, buffer = (_reader_names(key) for key in
                               ("lod_tensor_blocking_queue", "create_py_reader", "double_buffer"))
        reader = append_reader(block, self._feed_list, queue, name, buffer if self._double_buffer else None)
        program._readers = dict(program._readers, **{reader.name: self._source})
        read_into(block, reader, self._feed_list, self._drop_last)

    # ---- sources of batches

    def set_sample_generator(self, reader: Callable[..., Any], batch_size: int, drop_last: bool = True,
                             places: Any = None) -> GeneratorLoader:
        """Sets a source of samples, which the loader groups into batches.

        Args:
            reader (callable): returns an iterable of samples: tuples with one array, list or number per variable.
            batch_size (int): number of samples per batch, at least 1.
            drop_last (bool): whether to drop a last batch that is smaller. Default True.
            places (list of CPUPlace|list of CUDAPlace|CPUPlace|CUDAPlace): required for an iterable loader, which
                yields one batch per place, on the device with ``use_double_buffer``.

        Returns:
            GeneratorLoader: this one.

        Raises:
            AssertionError: ``batch_size`` is below 1, or an iterable loader has no places.

        Examples:
            >>> import numpy, anabranch.fluid as fluid
            >>> x = fluid.data("x", [None, 2])
            >>> loader = fluid.io.DataLoader.from_generator([x], capacity=2)
            >>> _ = loader.set_sample_generator(lambda: ((numpy.ones(2, "float32"),) for _ in range(5)), 2,
            ...                                 places=fluid.CPUPlace())
            >>> [feeds[0]["x"].shape() for feeds in loader()]
            [[2, 2], [2, 2]]
        """
        require(batch_size > 0, "%s: batch_size must be at least 1, got %s" % (self._label, batch_size))
        return self.set_sample_list_generator(
            batched(lambda: self._call(reader), batch_size, drop_last), places)

    def set_sample_list_generator(self, reader: Any, places: Any = None) -> GeneratorLoader:
        """Sets a source of batches that are lists of samples. Arguments and result as for ``set_sample_generator``."""
        feeder = DataFeeder(self._feed_list, _core.CPUPlace(), self._program())

        def batches():
            for samples in self._call(reader):
                feed = feeder.feed(samples)
                yield [feed[name] for name in self._names]

        return self._set(batches, places)

    def set_batch_generator(self, reader: Callable[..., Any], places: Any = None) -> GeneratorLoader:
        """Sets a source of batches: lists or tuples with one array or LoDTensor per variable, in ``feed_list``'s order.

        Args:
            reader (callable): returns an iterable of batches.
            places (list of CPUPlace|list of CUDAPlace|CPUPlace|CUDAPlace): required for an iterable loader, which
                yields one batch per place, on the device with ``use_double_buffer``.

        Returns:
            GeneratorLoader: this one.

        Raises:
            AssertionError: an iterable loader has no places.
        """
        def batches():
            for number, batch in enumerate(self._call(reader)):
                yield ready_tensors(batch, number, self._names, self._label)

        return self._set(batches, places)

    def _call(self, reader):
        """A new iterable of the source."""
        if not callable(reader):
            raise InvalidType("%s: the source must be a function that returns an iterable for each pass, got %s: pass "
                              "the function without calling it" % (self._label, type(reader).__name__))
        return reader()

    def _program(self):
        return self._feed_list[0].block.program if self._feed_list else None

    def _set(self, batches, places):
        if self._iterable:
            require(places is not None, "%s: places must be given for an iterable loader" % self._label)
            self._places = check_places(places, self._label)
        else:
            self._source.set_batches(batches)
        self._batches = batches
        return self

    # ---- the iterable form

    @property
    def iterable(self) -> bool:
        """bool: whether it is an iterator of feeds; if not, the program itself reads."""
        return self._iterable

    @property
    def queue(self) -> Any:
        """QueueView: the batches read ahead in the current pass; see its ``size``."""
        if self._queue_view is None:
            self._queue_view = QueueView(self._current_queue, self._capacity) if self._source is None \
                else self._source.view()
        return self._queue_view

    def _current_queue(self) -> Any:
        last = self._last_pass and self._last_pass()
        return last and last.queue

    def __call__(self) -> Any:
        return self.__iter__()

    def __iter__(self) -> Any:
        require(self._iterable, "%s is not iterable: the program itself reads between start() and reset()"
                % self._label)
        require(self._batches is not None, "%s: a data source must be set first" % self._label)
        last = self._last_pass and self._last_pass()
        if last is not None:
            last.close()
        new = _Pass(self)
        self._last_pass = weakref.ref(new)
        return new

    def __next__(self) -> Any:
        """The next item of the loader's own pass."""
        if self._own_pass is None:
            self._own_pass = iter(self)
        try:
            return next(self._own_pass)
        except StopIteration:
            self._own_pass = None
            raise

    next = __next__

    # ---- loaders that the program reads

    def start(self) -> None:
        """Starts a pass. Each ``Executor.run`` reads one batch; after the last batch, it raises EOFException.

        Raises:
            AssertionError: the loader is iterable.
            RuntimeError: no source is set, or a pass is running.
        """
        require(not self._iterable, "%s: start() requires a loader that is not iterable" % self._label)
        self._source.start()

    def reset(self) -> None:
        """Ends a pass at any point: stops the thread and drops batches that were read ahead.

        Raises:
            AssertionError: the loader is iterable.
        """
        require(not self._iterable, "%s: reset() requires a loader that is not iterable" % self._label)
        self._source.reset()


class _Pass:
    """One pass of an iterable loader, which yields lists with one feed per place. It ends with its last reference."""

    def __init__(self, loader):
        self._names = None if loader._return_list else loader._names
        self._loader: Any = loader      # until it has given a batch
        self._places, self._drop_last = len(loader._places), loader._drop_last
        name = "%s of %s" % (loader._label, ", ".join(loader._names))
        queue = BatchQueue(loader._batches, loader._capacity, name)
        self.queue: Any = ahead_on_devices(queue, loader._places) if loader._double_buffer else queue

    def __iter__(self):
        return self

    def __next__(self):
        group, ended = [], self.queue is None
        while self.queue is not None and len(group) < self._places:
            try:
                tensors = self.queue.get()
            except BaseException:
                self.close()
                raise
            if tensors is BatchQueue.END:
                self.close()
            else:
                group.append(tensors if self._names is None else dict(zip(self._names, tensors)))
        if not group or (len(group) < self._places and self._drop_last):
            if self._loader is not None and not ended:
                warn_of_no_batches(self._loader._label, self._loader._names, self._loader._had_batches)
            raise StopIteration
        if self._loader is not None:
            self._loader._had_batches, self._loader = True, None
        return group

    next = __next__

    def close(self):
        """Ends the pass: ``next`` raises StopIteration afterwards."""
        queue, self.queue = self.queue, None
        if queue is not None:
            queue.close()


arguments.explain(globals())
