"""Data sets of text files for ``Executor.train_from_dataset``."""
from __future__ import annotations

from typing import Any

from ..._near import near
from .. import arguments
from ..errors import InvalidValue, NotOffered, Unsupported
from .dataset_base import DatasetBase
from .dataset_memory import InMemoryDataset

__all__ = ["DatasetFactory", "InMemoryDataset", "QueueDataset"]


class QueueDataset(DatasetBase):
    """A data set that streams from its files: memory use does not grow with their size. Created by
    ``DatasetFactory().create_dataset("QueueDataset")``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> with open("part-0", "w") as part:
        ...     _ = part.write("2 0.5 1.5 1 1\\n2 0 1 1 0\\n")
        >>> x = fluid.data("x", [None, 2])
        >>> label = fluid.data("label", [None, 1], "int64")
        >>> dataset = fluid.DatasetFactory().create_dataset("QueueDataset")
        >>> dataset.set_use_var([x, label])
        >>> dataset.set_filelist(["part-0"])
        >>> dataset.set_batch_size(2)
    """

    def local_shuffle(self) -> Any:
        """Raises NotImplementedError: only an InMemoryDataset supports it."""
        raise NotOffered("QueueDataset does not support local shuffle, please use InMemoryDataset for local_shuffle")

    def global_shuffle(self, fleet: Any = None) -> Any:
        """Raises NotImplementedError: only an InMemoryDataset supports it."""
        raise NotOffered("QueueDataset does not support global shuffle, please use InMemoryDataset for global_shuffle")


class FileInstantDataset(DatasetBase):
    """Like :class:`QueueDataset`; Fluid's name for reading without a pipe command."""

    _feed_name = "MultiSlotFileInstantDataFeed"

    def local_shuffle(self) -> Any:
        """Raises NotImplementedError: only an InMemoryDataset supports it."""
        raise NotOffered("FileInstantDataset does not support local shuffle, please use InMemoryDataset")

    def global_shuffle(self, fleet: Any = None) -> Any:
        """Raises NotImplementedError: only an InMemoryDataset supports it."""
        raise NotOffered("FileInstantDataset does not support global shuffle, please use InMemoryDataset")


_CLASSES = {"QueueDataset": QueueDataset, "InMemoryDataset": InMemoryDataset, "FileInstantDataset": FileInstantDataset}


class DatasetFactory:
    """Creates data sets.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> type(fluid.DatasetFactory().create_dataset("InMemoryDataset")).__name__
        'InMemoryDataset'
    """

    def __init__(self) -> None:
        pass

    def create_dataset(self, datafeed_class: str = "QueueDataset") -> DatasetBase:
        """Creates a data set.

        Args:
            datafeed_class (str): 'QueueDataset' (streams), 'InMemoryDataset' or 'FileInstantDataset'. Default
                'QueueDataset'.

        Returns:
            DatasetBase: a data set of this class.

        Raises:
            ValueError: the name is unknown.
            NotImplementedError: the name is 'BoxPSDataset'.
        """
        if datafeed_class == "BoxPSDataset":
            raise Unsupported("create_dataset: BoxPSDataset is not supported")
        if datafeed_class not in _CLASSES:
            raise InvalidValue("create_dataset: datafeed_class must be one of %s, got %r%s" % (
                ", ".join(_CLASSES), datafeed_class, near(datafeed_class, _CLASSES)))
        return _CLASSES[datafeed_class]()


arguments.explain(globals())
