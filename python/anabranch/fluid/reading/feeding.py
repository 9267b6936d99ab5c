"""Feeds of a run: conversion to the form that the engine takes."""
from __future__ import annotations

from typing import Any

import numpy as np

from ... import _core
from ..errors import InvalidType, NotAllowed, Violated, also
from ..framework import Variable
from ..framework.dtype import VarType, numpy_dtype
from ..user_warnings import warn

_LoDTensor = _core.LoDTensor
_ndarray = np.ndarray


def _as_array(name, value, dtype):
    """A fed value that is neither an array nor a LoDTensor, as an array."""
    if isinstance(value, (_ndarray, _LoDTensor)):
        return value
    if isinstance(value, (bool, int, float, np.generic)):
        return np.array([value], dtype=dtype)
    if isinstance(value, tuple):
        given = np.asarray(value)
        return given.astype(dtype) if np.can_cast(given.dtype, dtype, "same_kind") else given
    if isinstance(value, list):
        raise NotAllowed("feed of %s: a Python list has no dtype and no sequences; pass a numpy array, or a "
                         "LoDTensor made by fluid.create_lod_tensor" % name)
    if hasattr(value, "__array__") and not isinstance(value, Variable):
        return np.asarray(value)
    raise also(InvalidType, ValueError)("feed of %s: the value must be an array, LoDTensor or number, got %s"
                                        % (name, type(value).__name__))


class FeedTable:
    """The variables of a program and their dtypes, each looked up once. The engine checks what is fed."""

    def __init__(self, program_desc: Any) -> None:
        self._block = program_desc.block(0)
        self._dtypes: dict[str, Any] = {}
        self._unknown: set[str] = set()

    def accept(self, feed: Any) -> dict[str, Any]:
        """Returns a dict for the engine with arrays and LoDTensors. Unknown names are omitted with a warning."""
        out = {}
        for name, value in feed.items():
            dtype = self._dtypes.get(name)
            if dtype is None:
                dtype = self._look_up(name)
                if dtype is None:
                    continue
            out[name] = value if type(value) in (_ndarray, _LoDTensor) else _as_array(name, value, dtype)
        return out

    def knows(self, name: str) -> bool:
        """Whether the program has a variable of this name."""
        return name in self._dtypes

    def _look_up(self, name):
        if not isinstance(name, str):
            raise InvalidType("the keys of feed must be names (str), got %s" % type(name).__name__)
        desc = self._block._find_var(name)
        if desc is None:
            if name not in self._unknown:
                self._unknown.add(name)
                warn("feed of %r is ignored: the program has no such variable" % name)
            return None
        self._dtypes[name] = numpy_dtype(VarType(desc.dtype))
        return self._dtypes[name]


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
            raise Violated("a list of feeds is for programs compiled with data parallel, got %d: "
                           "CompiledProgram(...).with_data_parallel(...)" % len(feed))
    raise InvalidType("feed must be a dict from name to value, got %s" % type(feed).__name__)
