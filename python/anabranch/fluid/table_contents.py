"""Rows of growable tables from and for other programs: checked arrays, and files of Parquet."""
from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

import numpy

from .errors import InvalidType, InvalidValue, Unavailable

_ID, _ROW = "id", "row"     # columns


def check_size(what: str, size: Any) -> None:
    """Raises ValueError unless a page can have this size."""
    if isinstance(size, bool) or not isinstance(size, (int, numpy.integer)) or size < 1:
        raise InvalidValue("GrowableTable.%s: size must be an int of at least 1, got %r" % (what, size))


def ids(table: str | None, keys: Any) -> Any:
    """numpy.ndarray: ids as [n], int64. TypeError: they are not integers; ValueError: they have other axes."""
    found = numpy.asarray(keys)
    if found.size == 0:
        found = found.astype("int64")
    if found.dtype.kind not in "iu":
        raise InvalidType("table %s: ids must be integers, got %s" % (table, found.dtype))
    if found.ndim != 1:
        raise InvalidValue("table %s: ids must have the shape [n], got %s" % (table, list(found.shape)))
    if found.dtype.kind == "u":     # a hash may be unsigned: its bits count, as in a feed
        found = found.astype("uint64").view("int64")
    return numpy.ascontiguousarray(found, dtype="int64")


def checked(table: str | None, keys: Any, rows: Any, width: int) -> tuple[Any, Any]:
    """tuple: ids, and rows as [n, width], float32; ValueError unless they fit and all numbers are finite."""
    found = ids(table, keys)
    values = numpy.asarray(rows)
    if values.dtype.kind not in "fiu":
        raise InvalidType("table %s: rows must be numbers, got %s" % (table, values.dtype))
    if values.shape != (len(found), width):
        raise InvalidValue("table %s: rows must have the shape %s, got %s"
                           % (table, [len(found), width], list(values.shape)))
    with numpy.errstate(over="ignore"):
        values = numpy.ascontiguousarray(values, dtype="float32")
    bad = ~numpy.isfinite(values).all(axis=1)
    if bad.any():
        raise InvalidValue("table %s: the row of id %d must have finite float32 numbers, got %s"
                           % (table, found[bad][0], values[bad][0].tolist()))
    return found, values


def _pyarrow(path):
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise Unavailable("%s: the package pyarrow, which reads and writes files of Parquet, is not installed: "
                          "pip install pyarrow" % path) from None
    return pyarrow


def write(path: str, width: int, pages: Iterable[tuple[Any, Any]]) -> int:
    """int: the number of rows, which have been written to a file of Parquet."""
    pa = _pyarrow(path)
    numbers = pa.list_(pa.field("item", pa.float32(), nullable=False), width)
    schema = pa.schema([pa.field(_ID, pa.int64(), nullable=False), pa.field(_ROW, numbers, nullable=False)])
    count, unfinished = 0, "%s.%d.tmp" % (path, os.getpid())
    try:
        with pa.parquet.ParquetWriter(unfinished, schema) as file:
            for keys, rows in pages:
                lists = pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), type=numbers)
                file.write_table(pa.Table.from_arrays([pa.array(keys), lists], schema=schema))
                count += len(keys)
        os.replace(unfinished, path)
    except BaseException:
        if os.path.exists(unfinished):
            os.remove(unfinished)
        raise
    return count


def read(path: str, table: str | None, width: int) -> Iterator[tuple[Any, Any]]:
    """Yields the checked ids and rows of a file of Parquet, a part of a row group at a time."""
    pa = _pyarrow(path)
    if not os.path.exists(path):
        raise FileNotFoundError("table %s: file %s does not exist" % (table, path))
    with pa.parquet.ParquetFile(path) as file:
        names = file.schema_arrow.names
        for name in (_ID, _ROW):
            if name not in names:
                raise InvalidValue("table %s: %s must have the columns id and row, got %s"
                                   % (table, path, ", ".join(names) or "none"))
        for batch in file.iter_batches(columns=[_ID, _ROW]):
            keys, lists = batch.column(_ID), batch.column(_ROW)
            if keys.null_count or lists.null_count:
                raise InvalidValue("table %s: %s must have an id and a row in each line, got null" % (table, path))
            yield checked(table, keys.to_numpy(), _matrix(lists, path, table, width), width)


def _matrix(lists, path, table, width):
    """[n, width] from a column of lists."""
    if not hasattr(lists, "flatten") or not hasattr(lists.type, "value_type"):
        raise InvalidValue("table %s: the column row of %s must hold lists, got %s" % (table, path, lists.type))
    numbers = lists.flatten()
    sizes = lists.value_lengths().to_numpy(zero_copy_only=False)
    if numbers.null_count or (sizes != width).any():
        wrong = "null in a row" if numbers.null_count else "a row of %d" % sizes[sizes != width][0]
        raise InvalidValue("table %s: the rows of %s must have %d numbers, got %s" % (table, path, width, wrong))
    return numbers.to_numpy(zero_copy_only=False).reshape(len(lists), width)
