"""House prices in Boston: 13 features and a price for each of 506 districts. The first 80 % are for training.

File: ``housing.data``. Harrison and Rubinfeld, Journal of Environmental Economics and Management 5 (1978),
DOI 10.1016/0095-0696(78)90006-2.
"""
from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy

from ..fluid.errors import InvalidValue
from ..fluid.reading.test_data import held_out
from . import archives

__all__ = ["train", "test", "feature_names"]

#: Addresses of Fluid's files and their MD5 sums, for ``common.download``, which only looks for local files.
URL = "http://paddlemodels.bj.bcebos.com/uci_housing/housing.data"
MD5 = "d4accdce7a25600298819f8e28e8d593"
FLUID_URL_MODEL = "https://github.com/PaddlePaddle/book/raw/develop/01.fit_a_line/fluid/fit_a_line.fluid.tar"
FLUID_MD5_MODEL = "6e6dd637ccd5993961f68bfbde46090b"

feature_names = ["CRIM", "ZN", "INDUS", "CHAS", "NOX", "RM", "AGE", "DIS", "RAD", "TAX", "PTRATIO", "B", "LSTAT"]
_COLUMNS = len(feature_names) + 1
_TRAINS = 0.8

#: The two parts that :func:`load_data`, :func:`train` or :func:`test` read last: [districts, 14].
UCI_TRAIN_DATA: Any = None
UCI_TEST_DATA: Any = None


def load_data(filename: str, feature_num: int = _COLUMNS, ratio: float = _TRAINS) -> None:
    """Reads a file into :data:`UCI_TRAIN_DATA` and :data:`UCI_TEST_DATA`. Every column but the last is centered and
    divided by its range.

    Args:
        filename (str): file of numbers.
        feature_num (int): number of columns. Default 14.
        ratio (float): share of the rows for training. Default 0.8.

    Raises:
        ValueError: the file does not have whole rows.
        OSError: the file cannot be read.

    Examples:
        >>> load_data("housing.data")  # doctest: +SKIP
        >>> UCI_TRAIN_DATA.shape  # doctest: +SKIP
        (404, 14)
    """
    table = _table(filename, feature_num)
    border = int(len(table) * ratio)
    # ``paddle.dataset.uci_housing`` is another module, which keeps the values that it has given before.
    for name in (__name__, __name__.replace(".datasets.", ".dataset.")):
        if name in sys.modules:
            vars(sys.modules[name]).update(UCI_TRAIN_DATA=table[:border], UCI_TEST_DATA=table[border:])


def _table(path: str, columns: int) -> Any:
    numbers = numpy.fromfile(path, sep=" ")
    if columns < 1 or numbers.size == 0 or numbers.size % columns:
        raise InvalidValue("%s: must have rows of %d numbers, got %d numbers" % (path, columns, numbers.size))
    table = numbers.reshape(-1, columns)
    features = table[:, :-1]
    span = features.max(axis=0) - features.min(axis=0)
    table[:, :-1] = (features - features.sum(axis=0) / len(features)) / numpy.where(span == 0, 1, span)
    return table


def _reader(of_test: bool) -> Callable[[], Iterator[Any]]:
    load_data(archives.find("uci_housing", "housing.data"))
    rows = UCI_TEST_DATA if of_test else UCI_TRAIN_DATA

    def read():
        for row in rows:
            yield row[:-1], row[-1:]
    return read


def train() -> Callable[[], Iterator[Any]]:
    """A reader of the first 80 %: (13 features, [1] price). Each feature is centered and divided by its range."""
    return _reader(False)


@held_out
def test() -> Callable[[], Iterator[Any]]:
    """A reader of the other 20 %, like :func:`train`."""
    return _reader(True)
