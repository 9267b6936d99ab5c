"""Reader decorators: a *reader* is a function that returns an iterable of samples."""
from __future__ import annotations

import atexit
import itertools
import math
import queue
import random
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from .. import arguments
from ..errors import InvalidType, InvalidValue
from ..user_warnings import advise

__all__ = ["ComposeNotAligned", "batch", "buffered", "cache", "chain", "compose", "firstn", "map_readers",
           "multiprocess_reader", "shuffle", "xmap_readers"]

_END = object()


class ComposeNotAligned(ValueError):
    """Readers given to :func:`compose` have different lengths."""


def batch(reader: Callable[..., Any], batch_size: int, drop_last: bool = False) -> Callable[..., Any]:
    """A reader of lists of ``batch_size`` samples.

    Args:
        reader (callable): the samples.
        batch_size (int): at least 1.
        drop_last (bool): whether to drop a last list that is shorter. Default False.

    Raises:
        ValueError: ``batch_size`` is below 1.

    Examples:
        >>> list(batch(lambda: range(5), 2)())
        [[0, 1], [2, 3], [4]]
    """
    size = int(batch_size)
    if size <= 0:
        raise InvalidValue("batch: batch_size must be at least 1, got %s" % (batch_size,))

    def read():
        samples, first = iter(reader()), True
        while True:
            group = list(itertools.islice(samples, size))
            if not group or (drop_last and len(group) < size):
                if group and first:
                    advise("batch: the %d samples are fewer than batch_size=%d, so that drop_last leaves no batch: "
                           "pass a smaller batch_size or drop_last=False" % (len(group), size))
                return
            yield group
            first = False

    return read


def shuffle(reader: Any, buf_size: Any) -> Callable[..., Any]:
    """A reader that repeatedly fills a buffer, shuffles it (module ``random``), and yields its samples. With a buffer
    of at most one sample, the order stays the same.

    >>> sorted(shuffle(lambda: range(5), 3)())
    [0, 1, 2, 3, 4]
    """
    size = max(1, math.ceil(buf_size))
    if size == 1:
        advise("shuffle: with buf_size=%r, the order stays the same: pass the number of samples to shuffle together, "
               "such as 1000" % (buf_size,))

    def read():
        samples = iter(reader())
        while True:
            group = list(itertools.islice(samples, size))
            if not group:
                return
            random.shuffle(group)
            yield from group

    return read


def chain(*readers: Any) -> Callable[..., Any]:
    """A reader of all readers' samples, one reader after another.

    >>> list(chain(lambda: [1, 2], lambda: [3])())
    [1, 2, 3]
    """
    return lambda: itertools.chain.from_iterable(r() for r in readers)


def compose(*readers: Any, **kwargs: Any) -> Callable[..., Any]:
    """A reader that joins the samples of several readers to tuples. Samples that are tuples are flattened.

    Args:
        *readers (callable): the readers.
        check_alignment (bool): whether to raise an error if one reader ends before another. If False, the rest is
            dropped. Default True.

    Raises:
        ComposeNotAligned: the readers have different lengths.
        TypeError: a keyword is unknown.

    Examples:
        >>> list(compose(lambda: [1, 2], lambda: [(3, 4), (5, 6)])())
        [(1, 3, 4), (2, 5, 6)]
    """
    check = kwargs.pop("check_alignment", True)
    if kwargs:
        raise InvalidType("compose: there is no argument %r\n  arguments: readers, check_alignment" % min(kwargs))

    def flat(sample):
        return sample if isinstance(sample, tuple) else (sample,)

    def read():
        sources = [r() for r in readers]
        if not check:
            for samples in zip(*sources):
                yield sum(map(flat, samples), ())
            return
        for samples in itertools.zip_longest(*sources, fillvalue=_END):
            if any(s is _END for s in samples):
                raise ComposeNotAligned("compose: the readers have different lengths")
            yield sum(map(flat, samples), ())

    return read


def map_readers(func: Any, *readers: Any) -> Callable[..., Any]:
    """A reader that applies ``func`` to the readers' samples.

    >>> list(map_readers(lambda a, b: a + b, lambda: [1, 2], lambda: [3, 4])())
    [4, 6]
    """
    return lambda: map(func, *[r() for r in readers])


def firstn(reader: Any, n: Any) -> Callable[..., Any]:
    """A reader of the first ``n`` samples.

    >>> list(firstn(lambda: range(100), 3)())
    [0, 1, 2]
    """
    return lambda: itertools.islice(reader(), n)


def cache(reader: Any) -> Callable[..., Any]:
    """A reader that keeps all samples of its first pass in memory.

    >>> source = iter([1, 2])
    >>> r = cache(lambda: source)
    >>> list(r()), list(r())
    ([1, 2], [1, 2])
    """
    kept: list[Any] = []
    complete: list[Any] = []

    def read():
        if not complete:
            kept[:] = list(reader())
            complete.append(True)
        return iter(kept)

    return read


def buffered(reader: Any, size: Any) -> Callable[..., Any]:
    """A reader with a thread that reads up to ``size`` samples ahead.

    >>> list(buffered(lambda: range(4), 2)())
    [0, 1, 2, 3]
    """
    return xmap_readers(lambda sample: sample, reader, 1, size, order=True)


def xmap_readers(mapper: Callable[..., Any], reader: Callable[..., Any], process_num: int, buffer_size: int,
                 order: bool = False) -> Callable[..., Any]:
    """A reader of ``mapper(sample)``, which threads compute ahead of time. Exceptions in these threads are raised
    again in the caller.

    Args:
        mapper (callable): function of one sample.
        reader (callable): the samples.
        process_num (int): number of threads, at least 1.
        buffer_size (int): number of samples in flight, at least 1.
        order (bool): whether to keep the order of the samples. Default False.

    Raises:
        ValueError: a number is below 1.

    Examples:
        >>> sorted(xmap_readers(lambda s: s * 2, lambda: range(4), 2, 4)())
        [0, 2, 4, 6]
    """
    if process_num < 1 or buffer_size < 1:
        raise InvalidValue("xmap_readers: process_num and buffer_size must be at least 1, got %s and %s"
                           % (process_num, buffer_size))

    def read():
        stop = threading.Event()
        todo, done = queue.Queue(buffer_size), queue.Queue(buffer_size)
        threads = [threading.Thread(target=_produce, args=(reader, todo, process_num, stop), daemon=True)]
        threads += [threading.Thread(target=_map, args=(mapper, todo, done, stop), daemon=True)
                    for _ in range(process_num)]
        for thread in threads:
            _running[thread] = stop
            thread.start()
        try:
            yield from _collect(done, process_num, order)
        finally:
            stop.set()

    return read


#: Threads of readers, with what stops them. They must have stopped before the interpreter exits: a thread that still
#: runs then keeps what its reader refers to, such as a program.
_running: weakref.WeakKeyDictionary[threading.Thread, threading.Event] = weakref.WeakKeyDictionary()
_EXIT_S = 1.0


@atexit.register
def _stop_all():
    threads = list(_running.items())
    for _, stop in threads:
        stop.set()
    end = time.monotonic() + _EXIT_S
    for thread, _ in threads:
        thread.join(max(0, end - time.monotonic()))


def _put(target, item, stop):
    while not stop.is_set():
        try:
            target.put(item, timeout=0.1)
            return
        except queue.Full:
            continue


def _get(source, stop):
    while not stop.is_set():
        try:
            return source.get(timeout=0.1)
        except queue.Empty:
            continue
    return _END


def _produce(reader, todo, workers, stop):
    try:
        for number, sample in enumerate(reader()):
            if stop.is_set():
                return
            _put(todo, (number, sample), stop)
    except BaseException as error:
        _put(todo, error, stop)
    for _ in range(workers):
        _put(todo, _END, stop)


def _map(mapper, todo, done, stop):
    while True:
        item = _get(todo, stop)
        if isinstance(item, tuple):
            try:
                item = (item[0], mapper(item[1]))
            except BaseException as error:
                item = error
        _put(done, item, stop)
        if item is _END:
            return


def _collect(done, workers, order):
    waiting, following, ended = {}, 0, 0
    while ended < workers:
        item = done.get()
        if item is _END:
            ended += 1
        elif isinstance(item, BaseException):
            raise item
        elif not order:
            yield item[1]
        else:
            waiting[item[0]] = item[1]
            while following in waiting:
                yield waiting.pop(following)
                following += 1


def multiprocess_reader(readers: Sequence[Callable[..., Any]], use_pipe: bool = True,
                        queue_size: int = 1000) -> Callable[..., Any]:
    """A reader that runs each reader in a separate process, and yields samples in the order of arrival.

    Args:
        readers (list of callable): one or more readers; each is run in a child process.
        use_pipe (bool): ignored; a queue is used. Default True.
        queue_size (int): number of samples in flight. Default 1000.

    Raises:
        ValueError: there are no readers.
        RuntimeError: a child process failed.
    """
    if not readers:
        raise InvalidValue("multiprocess_reader: readers must not be empty")

    def read():
        import multiprocessing
        context = multiprocessing.get_context("fork")
        results = context.Queue(queue_size)
        children = [context.Process(target=_read_all, args=(r, results), daemon=True) for r in readers]
        for child in children:
            child.start()
        try:
            yield from _received(results, children)
        finally:
            for child in children:
                child.terminate()
                child.join()

    return read


def _read_all(reader, results):
    try:
        for sample in reader():
            results.put(("sample", sample))
        results.put(("end", None))
    except BaseException as error:
        results.put(("error", "%s: %s" % (type(error).__name__, error)))


def _received(results, children):
    ended = 0
    while ended < len(children):
        try:
            kind, value = results.get(timeout=1.0)
        except queue.Empty:
            if not any(child.is_alive() for child in children) and results.empty():
                raise RuntimeError("multiprocess_reader: a child process ended without a result") from None
            continue
        if kind == "error":
            raise RuntimeError("multiprocess_reader: %s" % value)
        if kind == "end":
            ended += 1
        else:
            yield value


class Fake:
    """A reader that repeats the first sample of another one, for measuring speed.

    >>> list(Fake()(lambda: [7, 8, 9], 3)())
    [7, 7, 7]
    """

    def __init__(self) -> None:
        self.sample = _END

    def __call__(self, reader: Any, length: Any) -> Any:
        def read():
            if self.sample is _END:
                self.sample = next(iter(reader()))
            return itertools.repeat(self.sample, length)

        return read


arguments.explain(globals())
