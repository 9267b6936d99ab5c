"""House prices in Boston: 13 features and a price for each of 506 districts. The first 80 % are for training.

File: ``housing.data``. Harrison and Rubinfeld, Journal of Environmental Economics and Management 5 (1978),
DOI 10.1016/0095-0696(78)90006-2.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy

from ..fluid.errors import InvalidValue
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


def _table() -> Any:
    path = archives.find("uci_housing", "housing.data")
    numbers = numpy.fromfile(path, sep=" ")
    if numbers.size == 0 or numbers.size % _COLUMNS:
        raise InvalidValue("%s: must have rows of %d numbers, got %d numbers" % (path, _COLUMNS, numbers.size))
    table = numbers.reshape(-1, _COLUMNS)
    features = table[:, :-1]
    span = features.max(axis=0) - features.min(axis=0)
    table[:, :-1] = (features - features.sum(axis=0) / len(features)) / numpy.where(span == 0, 1, span)
    return table


def _reader(of_test: bool) -> Callable[[], Iterator[Any]]:
    table = _table()
    border = int(len(table) * _TRAINS)
    rows = table[border:] if of_test else table[:border]

    def read():
        for row in rows:
            yield row[:-1], row[-1:]
    return read


def train() -> Callable[[], Iterator[Any]]:
    """A reader of the first 80 %: (13 features, [1] price). Each feature is centered and divided by its range."""
    return _reader(False)


def test() -> Callable[[], Iterator[Any]]:
    """A reader of the other 20 %, like :func:`train`."""
    return _reader(True)
