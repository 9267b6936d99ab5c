"""Batches from Python generators: as an iterator of feeds, or read by the program itself."""
from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import _core
from .. import unique_name
from ..described import Described
from ..errors import InvalidType, InvalidValue, require
from ..framework import Variable, default_main_program
from ..framework.places import check_places
from .ahead import ahead_on_devices
from .batch_queue import BatchQueue
from .data_feeder import DataFeeder
from .decorators import batch as batched
from .read_ops import append_reader, read_into
from .reader_source import ReaderSource

_LoDTensor = _core.LoDTensor
_reader_names = unique_name.UniqueNameGenerator()  # of the process: a loader does not change the names of layers


def ready_tensors(batch: Sequence[Any], number: int, names: Sequence[str], label: str) -> Any:
    """The values of a batch as LoDTensors.

    Args:
        batch (list|tuple): one array or LoDTensor a name.
        number (int): of the batch, for messages.
        names (list of str): the variables.
        label (str): of the reader, for messages.

    Raises:
        TypeError: no list or tuple, or a value that is no regular array. ValueError: another number of values.
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
        raise InvalidType("%s: what batch %d has for %s is no regular array: its samples differ in shape. Give a "
                          "LoDTensor (fluid.create_lod_tensor)" % (label, number, name))
    tensor = _LoDTensor()
    tensor.set(array, _core.CPUPlace())
    return tensor


class GeneratorLoader(Described):
    """What ``DataLoader.from_generator`` returns; see there."""

    def __init__(self, feed_list: Any, capacity: Any, use_double_buffer: Any = True, iterable: Any = True,
                 return_list: Any = False, drop_last: Any = True, label: Any = "DataLoader") -> None:
        if not isinstance(feed_list, (list, tuple)) or not all(isinstance(v, Variable) for v in feed_list):
            raise InvalidType("%s: feed_list is a list of Variables" % label)
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

    # ---- where batches come from

    def set_sample_generator(self, reader: Callable[..., Any], batch_size: int, drop_last: bool = True,
                             places: Any = None) -> GeneratorLoader:
        """Batches are made of samples.

        Args:
            reader (callable): returns an iterable of samples: a tuple with one array, list or number a variable.
            batch_size (int): samples of a batch, at least 1.
            drop_last (bool): leaves out a last batch that is smaller. Default True.
            places (list of CPUPlace|list of CUDAPlace|CPUPlace|CUDAPlace): needed by an
                iterable loader: one batch a place at a time, at a device with ``use_double_buffer``.

        Returns:
            GeneratorLoader: this one.

        Raises:
            AssertionError: ``batch_size`` below 1; an iterable loader without places.

        Examples:
            >>> import numpy, anabranch.fluid as fluid
            >>> x = fluid.data("x", [None, 2])
            >>> loader = fluid.io.DataLoader.from_generator([x], capacity=2)
            >>> _ = loader.set_sample_generator(lambda: ((numpy.ones(2, "float32"),) for _ in range(5)), 2,
            ...                                 places=fluid.CPUPlace())
            >>> [feeds[0]["x"].shape() for feeds in loader()]
            [[2, 2], [2, 2]]
        """
        require(batch_size > 0, "%s: batch_size is at least 1, got %s" % (self._label, batch_size))
        return self.set_sample_list_generator(batched(reader, batch_size, drop_last), places)

    def set_sample_list_generator(self, reader: Any, places: Any = None) -> GeneratorLoader:
        """Batches are lists of samples. Arguments and result: as ``set_sample_generator``."""
        feeder = DataFeeder(self._feed_list, _core.CPUPlace(), self._program())

        def batches():
            for samples in reader():
                feed = feeder.feed(samples)
                yield [feed[name] for name in self._names]

        return self._set(batches, places)

    def set_batch_generator(self, reader: Callable[..., Any], places: Any = None) -> GeneratorLoader:
        """Batches come ready: a list or tuple with one array or LoDTensor a variable, as ``feed_list`` orders them.

        Args:
            reader (callable): returns an iterable of batches.
            places (list of CPUPlace|list of CUDAPlace|CPUPlace|CUDAPlace): needed by an
                iterable loader: one batch a place at a time, at a device with ``use_double_buffer``.

        Returns:
            GeneratorLoader: this one.

        Raises:
            AssertionError: an iterable loader without places.
        """
        def batches():
            for number, batch in enumerate(reader()):
                yield ready_tensors(batch, number, self._names, self._label)

        return self._set(batches, places)

    def _program(self):
        return self._feed_list[0].block.program if self._feed_list else None

    def _set(self, batches, places):
        if self._iterable:
            require(places is not None, "%s: places are needed when the loader is iterable" % self._label)
            self._places = check_places(places, self._label)
        else:
            self._source.set_batches(batches)
        self._batches = batches
        return self

    # ---- the iterable form

    @property
    def iterable(self) -> bool:
        """bool: whether it is an iterator of feeds; else the program reads by itself."""
        return self._iterable

    @property
    def queue(self) -> Any:
        """BatchQueue: the batches made ahead in the present pass, or None; see its ``size``."""
        if self._source is not None:
            return self._source.queue
        last = self._last_pass and self._last_pass()
        return last and last.queue

    def __call__(self) -> Any:
        return self.__iter__()

    def __iter__(self) -> Any:
        require(self._iterable, "%s: it is not iterable: the program reads by itself between start() and reset()"
                % self._label)
        require(self._batches is not None, "%s: no data source is set" % self._label)
        last = self._last_pass and self._last_pass()
        if last is not None:
            last.close()
        new = _Pass(self)
        self._last_pass = weakref.ref(new)
        return new

    def __next__(self) -> Any:
        """The next item of a pass that the loader itself keeps."""
        if self._own_pass is None:
            self._own_pass = iter(self)
        try:
            return next(self._own_pass)
        except StopIteration:
            self._own_pass = None
            raise

    next = __next__

    # ---- the form that is read by the program

    def start(self) -> None:
        """Begins a pass: ``Executor.run`` takes a batch each time, until it raises EOFException.

        Raises:
            AssertionError: an iterable loader. RuntimeError: no source is set; a pass is under way.
        """
        require(not self._iterable, "%s: start() is not for an iterable loader" % self._label)
        self._source.start()

    def reset(self) -> None:
        """Ends a pass, also in its middle: the thread is stopped, batches that it made ahead are dropped.

        Raises:
            AssertionError: an iterable loader.
        """
        require(not self._iterable, "%s: reset() is not for an iterable loader" % self._label)
        self._source.reset()


class _Pass:
    """One pass of an iterable loader: a list with one feed a place each time. It ends with its last reference."""

    def __init__(self, loader):
        self._names = None if loader._return_list else loader._names
        self._places, self._drop_last = len(loader._places), loader._drop_last
        name = "%s of %s" % (loader._label, ", ".join(loader._names))
        queue = BatchQueue(loader._batches, loader._capacity, name)
        self.queue: Any = ahead_on_devices(queue, loader._places) if loader._double_buffer else queue

    def __iter__(self):
        return self

    def __next__(self):
        group = []
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
            raise StopIteration
        return group

    next = __next__

    def close(self):
        """Ends the pass: the next ``next`` raises StopIteration."""
        queue, self.queue = self.queue, None
        if queue is not None:
            queue.close()


