"""DataLoader and PyReader, which read batches from Python code and from Datasets."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from .. import arguments
from ..errors import InvalidType, InvalidValue, MissingFeeds, require
from .dataset_base import DatasetBase
from .generator_loader import GeneratorLoader
from .map_loader import MapLoader, default_collate_fn

if TYPE_CHECKING:
    from ..framework import Variable

__all__ = ["PyReader", "DataLoader", "default_collate_fn"]


class DataLoader(MapLoader):
    """Loads batches of a map-style data set; ``from_generator`` and ``from_dataset`` load from other sources.

    Args:
        dataset: object with ``__getitem__(index)``, which returns a sample (a tuple or list of arrays or numbers), and
            ``__len__``.
        feed_list (list of Variable): variables that the fields of a sample fill.
        places (list of CPUPlace|list of CUDAPlace|CPUPlace|CUDAPlace): places, each of which gets a batch at a time.
        return_list (bool): whether to yield lists instead of dicts. Default False.
        batch_sampler (iterable, optional): yields lists of indices; excludes the next three arguments.
        batch_size (int): number of samples per batch. Default 1.
        shuffle (bool): whether to draw a new random order in each pass. Default False.
        drop_last (bool): whether to drop a last batch that is smaller. Default False.
        collate_fn (callable, optional): converts a list of samples to a list of arrays.
        num_workers (int): number of threads that read ahead. Default 0, which means one.
        use_buffer_reader (bool): like ``use_double_buffer`` of :meth:`from_generator`. Default True.
        use_shared_memory (bool): ignored; threads share memory.
        timeout (int): ignored; a wait is reported after ``FLAGS_stall_report_s``. Default 0.
        worker_init_fn (callable, optional): called with 0 when a pass starts.

    Raises:
        AssertionError: arguments exclude each other, or are missing.

    Examples:
        >>> import numpy, anabranch.fluid as fluid
        >>> class Squares:
        ...     def __len__(self):
        ...         return 5
        ...     def __getitem__(self, i):
        ...         return numpy.array([i], "float32"), numpy.array([i * i], "float32")
        >>> x, y = fluid.data("x", [None, 1]), fluid.data("y", [None, 1])
        >>> loader = fluid.io.DataLoader(Squares(), [x, y], fluid.CPUPlace(), batch_size=2)
        >>> len(loader), [numpy.array(feeds[0]["y"]).ravel().tolist() for feeds in loader]
        (3, [[0.0, 1.0], [4.0, 9.0], [16.0]])
    """

    @staticmethod
    def from_generator(feed_list: Sequence[Variable] | None = None, capacity: int | None = None,
                       use_double_buffer: bool = True, iterable: bool = True, return_list: bool = False,
                       use_multiprocess: bool = False, drop_last: bool = True) -> GeneratorLoader:
        """Creates a loader of batches from Python generators, which a thread reads ahead.

        Args:
            feed_list (list of Variable): variables that a batch fills, in order.
            capacity (int): number of batches read ahead, at least 1.
            use_double_buffer (bool): whether a thread copies batches for a CUDAPlace to the device while it computes. A
                loader that is not iterable keeps them in host memory. Default True.
            iterable (bool): whether the loader is an iterator of feeds. If not, the program reads: ``start()``,
                ``exe.run`` without feed until EOFException, ``reset()``. Default True.
            return_list (bool): whether an iterable loader yields lists of lists rather than of dicts. Default False.
            use_multiprocess (bool): ignored; it applies to the imperative mode. Default False.
            drop_last (bool): whether to drop batches at the end that are fewer than places. Default True.

        Returns:
            GeneratorLoader: set its source with ``set_sample_generator``, ``set_sample_list_generator`` or
            ``set_batch_generator``. It reraises exceptions of the generator with their traceback.

        Raises:
            ValueError: ``capacity`` is below 1. Exception: ``feed_list`` is missing.

        Examples:
            >>> import numpy, anabranch.fluid as fluid
            >>> x = fluid.data("x", [None, 2])
            >>> loader = fluid.io.DataLoader.from_generator([x], capacity=2)
            >>> _ = loader.set_batch_generator(lambda: ([numpy.zeros((4, 2), "float32")] for _ in range(3)),
            ...                                places=fluid.CPUPlace())
            >>> [feeds[0]["x"].shape() for feeds in loader()]
            [[4, 2], [4, 2], [4, 2]]
        """
        if capacity is None or capacity <= 0:
            raise InvalidValue("DataLoader.from_generator: capacity, the number of batches read ahead, must be at "
                               "least 1, got %s" % capacity)
        if feed_list is None:
            raise MissingFeeds("DataLoader.from_generator: feed_list, the variables to fill, must be given")
        return GeneratorLoader(feed_list, capacity, use_double_buffer, iterable, return_list, drop_last)

    @staticmethod
    def from_dataset(dataset: DatasetBase, places: Any, drop_last: bool = True) -> Any:
        """Creates a loader of the batches of a Dataset, whose threads read and parse ahead.

        Args:
            dataset (DatasetBase): data set from ``DatasetFactory``; load an InMemoryDataset first.
            places (list of CPUPlace|list of CUDAPlace|CPUPlace|CUDAPlace): places, each of which gets a batch at a
                time.
            drop_last (bool): whether to drop a last batch that is smaller, and batches at the end that are fewer than
                places. Default True.

        Returns:
            DatasetLoader: an iterable of lists with one feed (name -> LoDTensor) per place.

        Raises:
            TypeError: ``dataset`` is not a Dataset.
            AssertionError: there are no places.
        """
        return DatasetLoader(dataset, places, drop_last)


class DatasetLoader:
    """The loader that ``DataLoader.from_dataset`` returns; see there."""

    def __init__(self, dataset: Any, places: Any, drop_last: Any = True) -> None:
        if not isinstance(dataset, DatasetBase):
            raise InvalidType("DataLoader.from_dataset: dataset must be made by DatasetFactory, got %s"
                              % type(dataset).__name__)
        require(places, "DataLoader.from_dataset: places must be given")
        self._places = len(places) if isinstance(places, (list, tuple)) else 1
        self._dataset, self._drop_last = dataset, drop_last
        if drop_last:
            dataset.set_drop_last(True)

    def __call__(self) -> Any:
        return iter(self)

    def __iter__(self) -> Iterator[Any]:
        group = []
        for feed in self._dataset._batches():
            group.append(feed)
            if len(group) == self._places:
                yield group
                group = []
        if group and not self._drop_last:
            yield group


class PyReader:
    """The older form of ``DataLoader.from_generator``.

    Args:
        feed_list, capacity, use_double_buffer, iterable, return_list: as for ``DataLoader.from_generator``.

    Raises:
        ValueError: ``capacity`` is below 1. Exception: ``feed_list`` is missing.

    Examples:
        >>> import numpy, anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 2])
        >>> reader = fluid.io.PyReader([x], capacity=2)
        >>> reader.decorate_batch_generator(lambda: [[numpy.zeros((4, 2), "float32")]], places=fluid.CPUPlace())
        >>> [feeds[0]["x"].shape() for feeds in reader()]
        [[4, 2]]
    """

    def __init__(self, feed_list: Any = None, capacity: Any = None, use_double_buffer: Any = True, iterable: Any = True,
                 return_list: Any = False) -> None:
        if capacity is None or capacity <= 0:
            raise InvalidValue("PyReader: capacity, the number of batches read ahead, must be at least 1, got %s"
                               % capacity)
        if feed_list is None:
            raise MissingFeeds("PyReader: feed_list, the variables to fill, must be given")
        self._loader = GeneratorLoader(feed_list, capacity, use_double_buffer, iterable, return_list, label="PyReader")

    @property
    def queue(self) -> Any:
        """QueueView: the queue of the loader."""
        return self._loader.queue

    @property
    def iterable(self) -> bool:
        """bool: whether it is an iterator of feeds."""
        return self._loader.iterable

    def __call__(self) -> Any:
        return iter(self._loader)

    def __iter__(self) -> Any:
        return iter(self._loader)

    def __next__(self) -> Any:
        return next(self._loader)

    next = __next__

    def start(self) -> None:
        """Starts a pass, like ``GeneratorLoader.start``."""
        self._loader.start()

    def reset(self) -> None:
        """Ends a pass, like ``GeneratorLoader.reset``."""
        self._loader.reset()

    def decorate_sample_generator(self, sample_generator: Any, batch_size: Any, drop_last: Any = True,
                                  places: Any = None) -> None:
        """Calls ``GeneratorLoader.set_sample_generator``."""
        self._loader.set_sample_generator(sample_generator, batch_size, drop_last, places)

    def decorate_sample_list_generator(self, reader: Any, places: Any = None) -> None:
        """Calls ``GeneratorLoader.set_sample_list_generator``."""
        self._loader.set_sample_list_generator(reader, places)

    def decorate_batch_generator(self, reader: Any, places: Any = None) -> None:
        """Calls ``GeneratorLoader.set_batch_generator``."""
        self._loader.set_batch_generator(reader, places)


arguments.explain(globals())
