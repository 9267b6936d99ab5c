"""Files of Parquet and Arrow, which pyarrow opens for the reader threads of a data set."""
from __future__ import annotations

import json
from typing import Any

from ..errors import InvalidValue, Unavailable

_ROWS_OF_BATCH = 8192


def columns_of(schema: str) -> list[str] | None:
    """list of str: names of the columns that a schema (as JSON) uses; None if it numbers them."""
    features = json.loads(schema)["features"]
    columns = [column for feature in features for part in feature.get("cross", [feature])
               for column in part["columns"]]
    return list(dict.fromkeys(columns)) if all(isinstance(column, str) for column in columns) else None


def opener(schema: str) -> Any:
    """callable: opens the file of a path. It returns an object with ``__arrow_c_stream__``, and the number of rows.

    Args:
        schema (str): the schema of the data set as JSON.
    """
    def open_table(path: str) -> tuple[Any, int]:
        try:
            import pyarrow as pa
            from pyarrow import dataset
        except ImportError:
            raise Unavailable("%s: the package pyarrow, which reads files of Parquet and Arrow, is not installed: "
                              "pip install pyarrow" % path) from None
        with open(path, "rb") as file:
            form = "parquet" if file.read(4) == b"PAR1" else "ipc"
        try:
            table = dataset.dataset(path, format=form)
            names, used = table.schema.names, columns_of(schema)
            some = None if used is None or not set(used) <= set(names) else used    # the reader names what is lacking
            return table.scanner(columns=some, batch_size=_ROWS_OF_BATCH).to_reader(), table.count_rows()
        except (pa.ArrowException, OSError) as error:
            raise InvalidValue("%s: %s" % (path, error)) from None
    return open_table
