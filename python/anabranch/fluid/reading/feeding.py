"""Feeds of a run: checks, and conversion to the form that the engine takes."""
from __future__ import annotations

from typing import Any

import numpy as np

from ... import _core
from ..errors import InvalidType, InvalidValue, NotAllowed, Violated, also
from ..framework import Variable, get_flags
from ..framework.dtype import VarType, dtype_name, numpy_dtype
from ..user_warnings import warn

_LoDTensor = _core.LoDTensor
_ndarray = np.ndarray


class FeedVar:
    """A program's description of one variable that may be fed."""

    __slots__ = ("name", "dtype", "number", "shape", "check")

    def __init__(self, desc: Any) -> None:
        self.name = desc.name
        self.number = desc.dtype
        self.dtype = numpy_dtype(VarType(desc.dtype))
        self.shape = desc.shape
        self.check = desc.need_check_feed

    def accept(self, value: Any, devices: Any) -> Any:
        """Returns the value as an array or LoDTensor. Raises an error if it does not match the declaration of
        ``fluid.data``."""
        kind = type(value)
        if kind is not _ndarray and kind is not _LoDTensor:
            value = self._as_array(value)
        return self._compared(value, devices) if self.check else value

    def _as_array(self, value):
        if isinstance(value, (_ndarray, _LoDTensor)):
            return value
        if isinstance(value, (bool, int, float, np.generic)):
            return np.array([value], dtype=self.dtype)
        if isinstance(value, (list, tuple)):
            raise NotAllowed("feed of %s: a Python list has no dtype and no sequences; pass a numpy array, or a "
                             "LoDTensor made by fluid.create_lod_tensor" % self.name)
        if hasattr(value, "__array__") and not isinstance(value, Variable):
            return np.asarray(value)
        raise also(InvalidType, ValueError)("feed of %s: the value must be an array, LoDTensor or number, got %s"
                                            % (self.name, type(value).__name__))

    def _compared(self, value, devices):
        if type(value) is _LoDTensor:
            shape, dtype = tuple(value.shape()), value._dtype_number()
            given = dtype_name(VarType(dtype))
            same = dtype == self.number
        else:
            shape, given = value.shape, value.dtype.name
            same = value.dtype.newbyteorder("=") == self.dtype or (given == "uint16" and self.number == VarType.FP16)
        if not same:
            expected_dtype = dtype_name(VarType(self.number))
            raise InvalidValue("the data type of fed variable %r is %s, but %s is given; feed array.astype(%r)"
                               % (self.name, expected_dtype, given, expected_dtype))
        expected = self.shape
        if len(expected) == 1 and not shape:
            shape = (1,)
        fits = len(shape) <= len(expected)
        for axis, (extent, got) in enumerate(zip(expected, shape)):
            if extent >= 0 and got != (extent * devices if axis == 0 else extent):
                fits = False
        missing = expected[len(shape):]
        if fits and missing and shape:
            if get_flags("FLAGS_fluid_exact")["FLAGS_fluid_exact"] == "1.8.5":
                return value
            if all(extent in (1, -1) for extent in missing):
                return _reshaped(value, shape + (1,) * len(missing))
        if not fits or missing:
            raise InvalidValue("the shape of fed variable %r is %s%s (-1: any), but %s is given"
                               % (self.name, list(expected), "" if devices == 1 else " on each of %d devices" % devices,
                                  list(shape)))
        return value


def _reshaped(value, shape):
    """An array or LoDTensor with axes of extent 1 at its end."""
    if type(value) is not _LoDTensor:
        return value.reshape(shape)
    lod, tensor = value.lod(), _LoDTensor()
    tensor.set(np.array(value).reshape(shape), _core.CPUPlace())
    tensor.set_lod(lod)
    return tensor


class FeedTable:
    """The variables of a program by name, looked up once."""

    def __init__(self, program_desc: Any) -> None:
        self._block = program_desc.block(0)
        self._vars: dict[Any, Any] = {}
        self._unknown: set[Any] = set()

    def accept(self, feed: Any, devices: Any = 1) -> Any:
        """Returns a dict for the engine with checked values. Unknown names are omitted with a warning."""
        out = {}
        known = self._vars
        for name, value in feed.items():
            var = known.get(name)
            if var is None:
                var = self._look_up(name)
                if var is None:
                    continue
            out[name] = var.accept(value, devices)
        return out

    def knows(self, name: str) -> Any:
        """Whether the program has a variable of this name."""
        return name in self._vars

    def _look_up(self, name):
        if not isinstance(name, str):
            raise InvalidType("the keys of feed must be names (str), got %s" % type(name).__name__)
        desc = self._block._find_var(name)
        if desc is None:
            if name not in self._unknown:
                self._unknown.add(name)
                warn("feed of %r is ignored: the program has no such variable" % name)
            return None
        var = self._vars[name] = FeedVar(desc)
        return var


def one_feed(feed: Any) -> Any:
    """The feed dict of a plain program: None, a dict, or a list with one dict.

    Raises:
        AssertionError: a longer list.
        TypeError: something else.
    """
    if feed is None:
        return {}
    if isinstance(feed, dict):
        return feed
    if isinstance(feed, (list, tuple)):
        if len(feed) == 1 and isinstance(feed[0], dict):
            return feed[0]
        if len(feed) != 1:
            raise Violated("a list of %d feeds is for programs compiled with data parallel: "
                           "CompiledProgram(...).with_data_parallel(...)" % len(feed))
    raise InvalidType("feed must be a dict from name to value, got %s" % type(feed).__name__)
