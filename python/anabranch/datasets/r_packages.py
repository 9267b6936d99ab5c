"""Reads the data of R packages without R: tables and texts of installed Debian packages (r-cran-...).

The format is R's serialization, version 2 and 3 (R Internals, section 1.8), inside a lazy-load data base: an index
(.rdx) with the position of each object in a file of compressed chunks (.rdb).
"""
from __future__ import annotations

import bz2
import gzip
import lzma
import os
import struct
import zlib
from typing import Any

import numpy

from ..fluid.errors import InvalidValue, NotFound

__all__ = ["find", "load"]

#: Environment variable that names the folder of R's packages.
FOLDER_VARIABLE = "ANABRANCH_R_LIBRARY"
_FOLDER = "/usr/lib/R/site-library"
_HAS_ATTRIBUTES, _HAS_TAG = 0x200, 0x400
_NULL_LIKE = (241, 242, 251, 252, 253, 254)      # base, empty and global environments, missing, unbound, NULL


def find(package: str) -> str:
    """The folder of an installed package.

    Args:
        package (str): name of the package in R: "dslabs" is Debian's r-cran-dslabs.

    Returns:
        str: the folder.

    Raises:
        LookupError: the package does not exist or contains no data.
    """
    folder = os.path.join(os.environ.get(FOLDER_VARIABLE) or _FOLDER, package)
    if not os.path.isfile(os.path.join(folder, "data", "Rdata.rdx")):
        raise NotFound("no data in %s; set %s, or run: apt-get install r-cran-%s" % (folder, FOLDER_VARIABLE,
                                                                                     package.lower()))
    return folder


def load(package: str, name: str) -> Any:
    """One object of a package.

    Args:
        package (str): as for :func:`find`.
        name (str): name of the object.

    Returns:
        numpy.ndarray | list | dict: numbers, texts, or a table (name of the column -> its values; factors as texts).

    Raises:
        LookupError: no such package or object.
        ValueError: a damaged file, or an object of an unsupported kind.
    """
    base = os.path.join(find(package), "data", "Rdata")
    try:
        with open(base + ".rdx", "rb") as f:
            index = _Reader(_unpacked(f.read())).whole()
        places = index["variables"]
        if name not in places:
            raise NotFound("%s has no %s, but %s" % (package, name, ", ".join(sorted(places))))
        offset, size = (int(v) for v in places[name])
        with open(base + ".rdb", "rb") as f:
            f.seek(offset)
            return _Reader(_chunk(f.read(size))).whole()
    except (struct.error, IndexError, zlib.error, lzma.LZMAError, EOFError, TypeError) as e:
        raise InvalidValue("%s.rdb: damaged: %s" % (base, e)) from None


def _unpacked(data):
    for begin, unpack in ((b"\x1f\x8b", gzip.decompress), (b"BZh", bz2.decompress), (b"\xfd7z", lzma.decompress)):
        if data.startswith(begin):
            return unpack(data)
    return zlib.decompress(data)


def _chunk(data):
    """Unpacks a chunk of a data base: its size, an optional letter for the compression, the compressed bytes."""
    kind, body = data[4:5], data[5:]
    if kind == b"2":
        return bz2.decompress(body)
    if kind == b"Z":
        return lzma.decompress(body, lzma.FORMAT_RAW, filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 26}])
    return body if kind == b"0" else zlib.decompress(data[4:])


class _Reader:
    """Reads one object from bytes."""

    def __init__(self, data):
        self._data, self._at, self._seen = data, 2, []

    def whole(self):
        if self._data[:2] != b"X\n":
            raise InvalidValue("must be an R object, but starts with %r" % self._data[:2])
        version = self._int()
        self._at += 8
        if version == 3:
            size = self._int()                                              # of the name of an encoding
            self._at += size
        return self._item()

    def _int(self):
        value, = struct.unpack_from(">i", self._data, self._at)
        self._at += 4
        return value

    def _item(self):
        flags = self._int()
        kind = flags & 255
        if kind in _NULL_LIKE:
            return None
        if kind == 255:
            return self._seen[(flags >> 8 or self._int()) - 1]
        if kind == 1:                                                       # a symbol
            self._seen.append(self._item())
            return self._seen[-1]
        if kind == 2:                                                       # a cell of a list of pairs
            return self._pairs(flags)
        if kind == 9:                                                       # a text
            size = self._int()
            self._at += max(size, 0)
            return self._data[self._at - size:self._at].decode("utf-8", "replace") if size >= 0 else None
        values = self._values(kind)
        attributes = self._item() if flags & _HAS_ATTRIBUTES else None
        return _shaped(values, attributes or {})

    def _pairs(self, flags):
        found = {}
        while flags & 255 == 2:
            if flags & _HAS_ATTRIBUTES:
                self._item()
            tag = self._item() if flags & _HAS_TAG else len(found)
            found[tag] = self._item()
            flags = self._int()
        return found

    def _values(self, kind):
        count = self._int()
        if kind in (10, 13, 14):                                            # logical, integer, real
            values = numpy.frombuffer(self._data, ">f8" if kind == 14 else ">i4", count, self._at)
            self._at += values.nbytes
            return values.astype(values.dtype.newbyteorder("="))
        if kind in (16, 19, 20):                                            # texts, lists
            return [self._item() for _ in range(count)]
        raise InvalidValue("R objects of kind %d are not supported" % kind)


def _shaped(values, attributes):
    if "levels" in attributes:
        levels = attributes["levels"]
        return [levels[v - 1] if v > 0 else None for v in values]
    if "names" in attributes and isinstance(values, list):
        return dict(zip(attributes["names"], values))
    return values
