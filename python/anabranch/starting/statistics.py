"""Statistics of the columns of CSV files, which the parser of data sets reads."""
from __future__ import annotations

import csv
import glob
import gzip
import os
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from ..fluid.errors import InvalidValue

#: The separators that form_of tries, by their names in options.
SEPARATORS = {"comma": ",", "tab": "\t", "semicolon": ";", "pipe": "|"}
#: Number of most frequent values to keep per column.
HEAVY = 256
_LIBSVM = re.compile(r"[-+.\de]+( qid:\d+)?( \d+:[-+.\de]+)+ *(#.*)?$")


class Form(NamedTuple):
    """How the lines of a file are written."""

    separator: str = ","
    header: bool = True


class Column:
    """Statistics of a column. The numbers of its ``values``, ``empty`` fields, ``distinct`` values and so on are
    attributes; ``heavy`` lists the most frequent values with their counts."""

    values: int
    empty: int
    nan: int
    numbers: int
    integers: int
    infinite: int
    pipes: int
    phrases: int
    words: int
    spelled: int
    distinct_words: float
    finite: int
    low: float
    high: float
    mean: float
    squares: float
    distinct: float
    distinct_is_exact: bool
    heavy: list[tuple[str, int]]
    heavy_lost: int

    def __init__(self, number: int, found: dict[str, Any], header: bool) -> None:
        self.number = number
        self.name: str = found["name"]
        #: Name of the column in a schema: its name in the header, or its number.
        self.key: str | int = self.name if header else number
        self.sample = np.asarray(found["sample"], "float64")
        self.__dict__.update({name: value for name, value in found.items() if name not in ("name", "sample")})

    @property
    def missing(self) -> int:
        """int: missing values: empty fields, and NaN in a column of numbers."""
        return self.empty + (self.nan if self.is_numeric else 0)

    @property
    def given(self) -> int:
        """int: fields that are not empty."""
        return self.values - self.empty

    @property
    def is_numeric(self) -> bool:
        """bool: at least 99 % of the fields that are not empty are numbers; the others count as malformed."""
        return self.finite > 0 and self.numbers >= 0.99 * self.given

    @property
    def is_prose(self) -> bool:
        """bool: most fields have several words, mostly of letters, many of which occur in other fields, too."""
        return (self.phrases > 0.5 * self.given and self.spelled > 0.5 * self.words
                and self.distinct_words < 0.5 * self.words)

    @property
    def not_numbers(self) -> int:
        """int: fields that are neither empty nor a number."""
        return self.given - self.numbers

    @property
    def deviation(self) -> float:
        """float: standard deviation of its numbers."""
        return float(np.sqrt(self.squares / self.finite)) if self.finite else 0.0


class Statistics(NamedTuple):
    """Statistics of some files."""

    files: list[str]
    form: Form
    columns: list[Column]
    rows: int
    bad: int
    shown_bad: list[str]

    def column(self, name: str) -> Column:
        """Column: the column with this name or number."""
        for column in self.columns:
            if str(column.key) == name:
                return column
        from .._near import near
        names = [str(column.key) for column in self.columns]
        hint = "" if self.form.header else ": the first line was read as data; --header yes reads it as names"
        raise InvalidValue("there is no column %s; there are %s%s%s"
                           % (name, ", ".join(names), near(name, names), hint))


def expanded(patterns: Sequence[str]) -> list[str]:
    """list of str: the files that paths and patterns (``part-*``) name.

    Raises:
        ValueError: a path or pattern matches no file.
    """
    found: list[str] = []
    for pattern in patterns:
        files = [pattern] if os.path.exists(pattern) else sorted(glob.glob(pattern))
        files = [name for name in files if os.path.isfile(name)]
        if not files:
            raise InvalidValue("there is no file %s" % pattern)
        found += files
    return found


def first_line(path: str) -> str:
    """str: the first line of a file or of a gzip file, without its line break. Empty for a zstd file."""
    with open(path, "rb") as file:
        magic = file.read(4)
    if magic == b"\x28\xb5\x2f\xfd":
        return ""
    opened: Any = gzip.open if magic[:2] == b"\x1f\x8b" else open
    with opened(path, "rb") as file:
        line: bytes = file.readline(1 << 20)
    return line.decode("utf-8-sig", "replace").rstrip("\r\n")


def column_texts(path: str, form: Form, number: int, known: set[str], most: int) -> set[str]:
    """The different texts of a column.

    Args:
        path (str): a file of text, which gzip may have compressed.
        form (Form): its separator and header.
        number (int): number of the column.
        known (set of str): texts of other files.
        most (int): the search ends when there are more than this number of texts, also counting ``known``.

    Returns:
        set of str: the texts.

    Raises:
        ValueError: the file is a zstd file.
    """
    with open(path, "rb") as file:
        magic = file.read(4)
    if magic == b"\x28\xb5\x2f\xfd":
        raise InvalidValue("%s: more than %d classes are not supported in zstd files: decompress it" % (path, HEAVY))
    opened: Any = gzip.open if magic[:2] == b"\x1f\x8b" else open
    found: set[str] = set()
    quoting: Any = csv.QUOTE_NONE if form.separator == "\t" else csv.QUOTE_MINIMAL
    with opened(path, "rt", encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        rows = csv.reader(file, delimiter=form.separator, quoting=quoting)
        if form.header:
            next(rows, None)
        for row in rows:
            if number < len(row):
                found.add(row[number])
                if len(found) > most and len(found | known) > most:
                    break
    return found


def form_of(path: str, separator: str | None = None, header: bool | None = None) -> Form:
    """Detects the separator and the header of a file.

    Args:
        path (str): a file.
        separator (str, optional): a character. Default: the separator that occurs most often in the first line.
        header (bool, optional): whether the first line contains names. Default: True if its fields are distinct, and
            none of them is empty or a number.

    Returns:
        Form: separator and header.

    Raises:
        ValueError: the file is empty, or has libsvm lines.
    """
    line = first_line(path)
    if not line and os.path.getsize(path) == 0:
        raise InvalidValue("%s is empty" % path)
    if separator is None:
        if _LIBSVM.match(line):
            raise InvalidValue("%s has libsvm lines (label index:value ...) instead of columns: anabranch train "
                               "--format libsvm trains on them; anabranch.Schema.libsvm() reads them" % path)
        separator = max(SEPARATORS.values(), key=line.count)
        if line.count(separator) == 0:
            separator = "\t" if ".tsv" in path else ","
    if header is None:
        fields = next(csv.reader([line], delimiter=separator), [])
        header = not line or (len(set(fields)) == len(fields) and not any(_is_number(field) for field in fields))
    return Form(separator, header)


def read(files: Sequence[str], form: Form) -> Statistics:
    """Reads files once.

    Args:
        files (list of str): paths. All files must have the same columns.
        form (Form): their separator and header.

    Returns:
        Statistics: the statistics of all files together.

    Raises:
        ValueError: the files have different columns, two columns have the same name, a name is not valid UTF-8, or no
            line is well-formed.
    """
    stats = _core.TableStats(form.separator, form.header, False)
    for path in files:
        stats.add(path)
    columns = [Column(number, found, form.header) for number, found in enumerate(stats.columns(HEAVY))]
    names = [column.name for column in columns]
    odd = next((name for name in names if "\0" in name or any("\ud800" <= c <= "\udfff" for c in name)), None)
    if odd is not None:
        raise InvalidValue("%s: the names of the columns must be UTF-8, got %s: convert the file, for example with "
                           "iconv" % (files[0], ascii(odd[:60])))
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InvalidValue("%s: the header has the column %s more than once: %s" % (files[0], twice, ", ".join(names)))
    if not stats.rows:
        raise InvalidValue("%s: there is no well-formed row%s" % (
            ", ".join(files), ", the first line is:\n" + stats.shown_bad()[0] if stats.bad else ""))
    return Statistics(list(files), form, columns, stats.rows, stats.bad, stats.shown_bad())


def _is_number(text):
    try:
        float(text or "0")
    except ValueError:
        return False
    return True
