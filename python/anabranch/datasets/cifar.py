"""CIFAR-10 and CIFAR-100: 32 x 32 color images, 50,000 for training and 10,000 for tests.

Files: ``cifar-10-python.tar.gz``, ``cifar-100-python.tar.gz``. Krizhevsky, Learning Multiple Layers of Features from
Tiny Images, 2009. The files are pickles, which may run code when they are loaded, so the reader accepts only arrays
of numbers.
"""
from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any

from ..fluid.reading.test_data import held_out
from . import archives, pickles

__all__ = ["train10", "test10", "train100", "test100"]

#: Addresses of Fluid's files and their MD5 sums, for ``common.download``, which only looks for local files.
URL_PREFIX = "https://dataset.bj.bcebos.com/cifar/"
CIFAR10_URL = "https://dataset.bj.bcebos.com/cifar/cifar-10-python.tar.gz"
CIFAR10_MD5 = "c58f30108f718f92721af3b95e74349a"
CIFAR100_URL = "https://dataset.bj.bcebos.com/cifar/cifar-100-python.tar.gz"
CIFAR100_MD5 = "eb9058c3a382ffc7106e4002c42a8d85"


def _batches(path: str, part: str) -> Iterator[Any]:
    with archives.opened(path) as archive:
        for name in sorted(info.name for info in archive if info.isfile() and part in info.name.rpartition("/")[2]):
            data = archives.member(archive, name).read()
            yield pickles.load(io.BytesIO(data), encoding="bytes")


def reader_creator(filename: str, sub_name: str, cycle: bool = False) -> Callable[[], Iterator[Any]]:
    """Returns a reader like :func:`train10` of an archive.

    Args:
        filename (str): path of the archive.
        sub_name (str): part of the names of its files to read, such as ``data_batch``.
        cycle (bool): restarts at the end. Default False.

    Returns:
        callable: reader.

    Examples:
        >>> reader = reader_creator("cifar-10-python.tar.gz", "test_batch")  # doctest: +SKIP
    """
    def read():
        while True:
            for batch in _batches(filename, sub_name):
                labels = batch.get(b"labels", batch.get(b"fine_labels"))
                for picture, label in zip(batch[b"data"], labels):
                    yield (picture / 255.0).astype("float32"), int(label)
            if not cycle:
                return
    return read


def _reader(file: str, part: str, cycle: bool = False) -> Callable[[], Iterator[Any]]:
    def read():
        yield from reader_creator(archives.find("cifar", file), part, cycle)()
    return read


def train10(cycle: bool = False) -> Callable[[], Iterator[Any]]:
    """A reader of CIFAR-10: (float32 [3072] in [0, 1]: red, green, blue rows; label 0 to 9).

    Args:
        cycle (bool): restarts at the end. Default False.

    Returns:
        callable: reader.
    """
    return _reader("cifar-10-python.tar.gz", "data_batch", cycle)


@held_out
def test10(cycle: bool = False) -> Callable[[], Iterator[Any]]:
    """A reader of the tests of CIFAR-10, like :func:`train10`."""
    return _reader("cifar-10-python.tar.gz", "test_batch", cycle)


def train100() -> Callable[[], Iterator[Any]]:
    """A reader of CIFAR-100, as :func:`train10` with labels 0 to 99."""
    return _reader("cifar-100-python.tar.gz", "train")


@held_out
def test100() -> Callable[[], Iterator[Any]]:
    """A reader of the tests of CIFAR-100, like :func:`train100`."""
    return _reader("cifar-100-python.tar.gz", "test")
