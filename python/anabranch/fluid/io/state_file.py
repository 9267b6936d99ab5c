"""The pickles of ``fluid.save``: a dict from name to array, byte for byte as Fluid 1.8.5 writes it."""
from __future__ import annotations

import pickle
import struct
from typing import Any

import numpy as np

from .state_reader import load_state

__all__ = ["dump_state", "load_state"]


class _Writer:
    """Pickle protocol 2 of a dict of arrays. The standard pickler writes the module names of the installed numpy, but
    files must hold names that every numpy understands."""

    def __init__(self):
        self.out = []
        self.memo = {}
        self.count = 0

    def put(self, key=None):
        self.out.append(b"q" + bytes([self.count]) if self.count < 256 else b"r" + struct.pack("<I", self.count))
        if key is not None:
            self.memo[key] = self.count
        self.count += 1

    def known(self, key):
        number = self.memo.get(key)
        if number is None:
            return False
        self.out.append(b"h" + bytes([number]) if number < 256 else b"j" + struct.pack("<I", number))
        return True

    def name(self, module, attr):
        if not self.known((module, attr)):
            self.out.append(("c%s\n%s\n" % (module, attr)).encode())
            self.put((module, attr))

    def text(self, value, shared=False):
        """Writes a str. Interned strings (constants, single characters) are one object to the standard pickler."""
        key = ("text", value) if shared or len(value) == 1 else None
        if key and self.known(key):
            return
        data = value.encode("utf-8", "surrogatepass")
        self.out.append(b"X" + struct.pack("<I", len(data)) + data)
        self.put(key)

    def number(self, value):
        if 0 <= value < 256:
            self.out.append(b"K" + bytes([value]))
        elif 0 <= value < 65536:
            self.out.append(b"M" + struct.pack("<H", value))
        elif -2 ** 31 <= value < 2 ** 31:
            self.out.append(b"J" + struct.pack("<i", value))
        else:
            data = pickle.encode_long(value)
            self.out.append(b"\x8a" + bytes([len(data)]) + data)

    def shape(self, extents):
        if not extents:
            self.out.append(b")")
            return
        if len(extents) > 3:
            self.out.append(b"(")
        for extent in extents:
            self.number(extent)
        self.out.append({1: b"\x85", 2: b"\x86", 3: b"\x87"}.get(len(extents), b"t"))
        self.put()

    def data(self, raw):
        """Writes bytes, which protocol 2 stores as encoded text."""
        key = ("bytes", raw) if len(raw) == 1 else None
        if key and self.known(key):
            return
        if raw:
            self.name("_codecs", "encode")
            self.text(raw.decode("latin1"))
            self.text("latin1", shared=True)
            self.out.append(b"\x86")
            self.put()
        else:
            self.name("__builtin__", "bytes")
            self.out.append(b")")
        self.out.append(b"R")
        self.put(key)

    def dtype(self, dtype):
        code = dtype.str[1:]
        if self.known(("dtype", code)):
            return
        self.name("numpy", "dtype")
        self.text(code)
        self.out.append(b"\x89\x88\x87")
        self.put()
        self.out.append(b"R")
        self.put(("dtype", code))
        self.out.append(b"(K\x03")
        self.text("|" if dtype.itemsize == 1 else "<")
        self.out.append(b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00t")
        self.put()
        self.out.append(b"b")

    def array(self, array):
        self.name("numpy.core.multiarray", "_reconstruct")
        self.name("numpy", "ndarray")
        self.shape((0,))
        self.data(b"b")
        self.out.append(b"\x87")
        self.put()
        self.out.append(b"R")
        self.put()
        self.out.append(b"(K\x01")
        self.shape(array.shape)
        self.dtype(array.dtype)
        self.out.append(b"\x89")
        self.data(array.tobytes())
        self.out.append(b"t")
        self.put()
        self.out.append(b"b")


def dump_state(state: Any) -> Any:
    """bytes: a pickle (protocol 2) of a dict from name to ndarray.

    >>> data = dump_state({"w": np.zeros(2, "float32")})
    >>> data[:3], load_state(data, "example")
    (b'\\x80\\x02}', {'w': array([0., 0.], dtype=float32)})
    """
    w = _Writer()
    w.out.append(b"\x80\x02}")
    w.put()
    items = [(name, np.asarray(array, order="C")) for name, array in state.items()]
    for begin in range(0, len(items), 1000):
        batch = items[begin:begin + 1000]
        if len(batch) > 1:
            w.out.append(b"(")
        for name, array in batch:
            w.text(name)
            w.array(array.astype(array.dtype.newbyteorder("<"), copy=False))
        w.out.append(b"u" if len(batch) > 1 else b"s")
    w.out.append(b".")
    return b"".join(w.out)
