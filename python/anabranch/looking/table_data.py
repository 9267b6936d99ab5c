"""The contents of growable tables, read from files or from servers that are running."""
from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np

from .. import _cluster, server_stats
from ..fluid.errors import InvalidValue, NotAllowed

_INTS = ("width", "moments", "rows", "clock", "seed", "max_bytes", "expire_after", "admit_count", "rules")
_FLOATS = ("low", "high", "moment_start", "admit_probability")
_HEADER = np.dtype([("magic", "S8"), *((name, "<i8") for name in _INTS), *((name, "<f4") for name in _FLOATS)])
_POLICIES = ("lru", "lfu", "score")
_ROW_RULES = ("sgd", "adagrad", "adam", "momentum", "ftrl", "row_adagrad")  # in the order of their numbers in files
_PART_BYTES = 1 << 20  # of rows, in one answer of a server


def _rule_of(header: dict[str, Any]) -> str:
    """str: the update rule whose moments the rows have. Older files have its number in place of their count."""
    return _ROW_RULES[(header["rules"] >> 16 & 255 or header["moments"] + 1) - 1]


class TableData(NamedTuple):
    """Rows of a growable table, by ascending id."""

    name: str
    header: dict[str, Any]
    keys: np.ndarray     # [rows], int64
    ages: np.ndarray     # [rows], int64: updates of the table, or seconds, since the row was updated
    rows: np.ndarray     # [rows, width], float32
    moments: np.ndarray  # [rows, numbers of the moments], float32
    counts: np.ndarray   # [rows], float32: how often each id was seen; [0] if the table does not count it
    found: dict[str, int]  # counters of a server; empty for a file

    @property
    def policy(self) -> str:
        """str: "lru", "lfu" or "score"."""
        return _POLICIES[self.header["rules"] >> 1 & 3]

    @property
    def rule(self) -> str:
        """str: the update rule whose moments the rows have, such as "adam"; "sgd" without moments."""
        return _rule_of(self.header)

    @property
    def timed(self) -> bool:
        """bool: whether ages are seconds."""
        return bool(self.header["rules"] >> 9 & 1)


def parse(name: str, data: bytes, found: dict[str, int] | None = None) -> TableData:
    """TableData: the contents of a file.

    Raises:
        ValueError: the bytes are not those of a table.
    """
    if len(data) < _HEADER.itemsize or data[:8] != b"ABTABLE1":
        raise InvalidValue("%s is not a file of a growable table" % name)
    first = np.frombuffer(data, _HEADER, 1)[0]
    header = {field: first[field].item() for field in _INTS + _FLOATS}
    width, rule = header["width"], header["rules"] >> 16 & 255
    counted = int(header["rules"] >> 1 & 3 == 1)
    if width <= 0 or not 0 <= header["moments"] <= 2 or rule > len(_ROW_RULES):
        raise InvalidValue("%s is damaged: its header is invalid" % name)
    state = width * header["moments"] + (_rule_of(header) == "row_adagrad")
    row = np.dtype([("key", "<i8"), ("seen", "<u4"), ("numbers", "<f4", (width + state + counted,))])
    if (len(data) - _HEADER.itemsize) % row.itemsize:
        raise InvalidValue("%s is damaged: it ends within a row" % name)
    all_rows = np.frombuffer(data, row, offset=_HEADER.itemsize)
    all_rows = all_rows[np.argsort(all_rows["key"], kind="stable")]
    numbers = all_rows["numbers"]
    ages = (header["clock"] - all_rows["seen"].astype("int64")) & (2 ** 31 - 1)
    return TableData(name, header, all_rows["key"].copy(), ages, numbers[:, :width].copy(),
                     numbers[:, width:width + state].copy(),
                     numbers[:, -1].copy() if counted else np.zeros(0, "float32"), found or {})


def read(where: str, name: str | None = None, deadline_s: float = 30.0) -> list[TableData]:
    """list of TableData: the tables of a file, of the files in a folder, or of a server ``host:port``.

    Args:
        where (str): file, folder or address.
        name (str, optional): selects the tables of this name; that of a server may end in ``.block`` and its number.
        deadline_s (float): seconds to wait for each answer of a server. Default 30.

    Raises:
        ValueError: a file does not hold a table.
        RuntimeError: there is no table, or no server answers.
    """
    host, _, port = where.rpartition(":")
    if os.path.isdir(where):
        found = [_of_file(os.path.join(where, file)) for file in sorted(os.listdir(where))
                 if _holds_table(os.path.join(where, file))]
    elif os.path.exists(where) or not (host and port.isdigit()):
        found = [_of_file(where)]
    else:
        found = [_of_server(where, table, counters, deadline_s)
                 for table, counters in sorted(server_stats.read(where, deadline_s)["tables"].items())
                 if name in (None, table, table.partition(".block")[0]) and counters["created"] + counters["rows"]]
    found = [one for one in found if name is None or name in (one.name, one.name.partition(".block")[0])]
    if not found:
        raise NotAllowed("%s holds no growable table%s" % (where, "" if name is None else " " + name))
    return found


def _holds_table(path: str) -> bool:
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(8) == b"ABTABLE1"


def _of_file(path: str) -> TableData:
    with open(path, "rb") as file:
        return parse(os.path.basename(path), file.read())


def _of_server(endpoint: str, name: str, counters: dict[str, int], deadline_s: float) -> TableData:
    def part(number: int, bits: int) -> bytes:
        return _cluster.table_part(endpoint, counters["number"], number, bits, int(1000 * deadline_s))

    header, bits = part(0, 0), 4
    while bits < 30 and counters["bytes"] >> bits > _PART_BYTES:
        bits += 1
    rows = b"".join(part(number, bits)[_HEADER.itemsize:] for number in range(1 << bits))
    return parse(name, header + rows, counters)
