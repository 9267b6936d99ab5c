"""Files of Parquet and Arrow, which pyarrow opens for the reader threads of a data set."""
from __future__ import annotations

import itertools
import json
from typing import Any

from ..errors import InvalidValue, Unavailable

_ROWS_OF_BATCH = 65536      # fewer cost more time: each batch has its own copy of a dictionary
_BUFFER_BYTES = 1 << 18     # of each column
# Writers end a dictionary at a megabyte; then a value takes the bits of the number of its entry.
_DICTIONARY_BYTES, _BYTES_OF_ENTRY = 1 << 20, 3


def columns_of(schema: str) -> list[str] | None:
    """list of str: names of the columns that a schema (as JSON) uses; None if it numbers them."""
    features = json.loads(schema)["features"]
    columns = [column for feature in features for part in feature.get("cross", [feature])
               for column in part["columns"]]
    return list(dict.fromkeys(columns)) if all(isinstance(column, str) for column in columns) else None


def _columns_to_read(schema: str, names: list[str], column: str | None) -> list[str] | None:
    """list of str: None for all; so it is if the file lacks one, which the reader names."""
    used = columns_of(schema)
    if used is not None and column is not None:
        used = list(dict.fromkeys([*used, column]))
    return None if used is None or not set(used) <= set(names) else used


def _dictionaries(metadata: Any, used: list[str] | None) -> list[str]:
    """list of str: columns whose values are entries of a dictionary in the file. pyarrow decodes such columns faster
    into a dictionary, and columns with many different texts faster into plain ones. The file does not say directly
    which of them have a dictionary on every page, but their size does."""
    found = []
    for number in range(metadata.num_columns):
        column = metadata.schema.column(number)
        parts = [metadata.row_group(group).column(number) for group in range(metadata.num_row_groups)]
        if (column.physical_type == "BYTE_ARRAY" and column.path == column.name
                and (used is None or column.name in used)
                and all(part.has_dictionary_page and part.total_uncompressed_size
                        <= _DICTIONARY_BYTES + _BYTES_OF_ENTRY * part.num_values for part in parts)):
            found.append(column.name)
    return found


def _parquet(path: str, schema: str, column: str | None) -> tuple[Any, Any, int]:
    """(schema of the file, iterator of its batches, number of rows); at no time more than some pages of each column are
    in memory."""
    from pyarrow import parquet
    metadata = parquet.read_metadata(path)
    some = _columns_to_read(schema, metadata.schema.to_arrow_schema().names, column)
    file = parquet.ParquetFile(path, metadata=metadata, buffer_size=_BUFFER_BYTES,
                               read_dictionary=_dictionaries(metadata, some))
    return file.schema_arrow, file.iter_batches(_ROWS_OF_BATCH, columns=some), metadata.num_rows


def _arrow(path: str, schema: str, column: str | None) -> tuple[Any, Any, int]:
    from pyarrow import OSFile, dataset, ipc
    names = ipc.open_file(OSFile(path)).schema.names
    some = _columns_to_read(schema, names, column)
    fields = None if some is None else [number for number, name in enumerate(names) if name in some]
    file = ipc.open_file(OSFile(path), options=ipc.IpcReadOptions(included_fields=fields))
    return (file.schema, (file.get_batch(number) for number in range(file.num_record_batches)),
            dataset.dataset(path, format="ipc").count_rows())


def opener(schema: str, column: str | None = None) -> Any:
    """callable: opens the file of a path. It returns an object with ``__arrow_c_stream__``, and the number of rows.

    Args:
        schema (str): the schema of the data set as JSON.
        column (str, optional): column of the data set's share.
    """
    def open_table(path: str) -> tuple[Any, int]:
        try:
            import pyarrow as pa
        except ImportError:
            raise Unavailable("%s: the package pyarrow, which reads files of Parquet and Arrow, is not installed: "
                              "pip install pyarrow" % path) from None
        with open(path, "rb") as file:
            read = _parquet if file.read(4) == b"PAR1" else _arrow
        try:
            whole, batches, rows = read(path, schema, column)
            first = next(batches, None)
            if first is None:
                return whole.empty_table(), rows
            return pa.RecordBatchReader.from_batches(first.schema, itertools.chain([first], batches)), rows
        except (pa.ArrowException, OSError) as error:
            raise InvalidValue("%s: %s" % (path, error)) from None
    return open_table
