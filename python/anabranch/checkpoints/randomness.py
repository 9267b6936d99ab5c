"""Converts the state of Python's and NumPy's random numbers to plain data and back."""
from __future__ import annotations

import random
from typing import Any

import numpy as np

from ..fluid.errors import InvalidType

Source = Any  # random.Random, numpy.random.RandomState or numpy.random.Generator


def check(source: Source) -> None:
    """Raises TypeError unless ``source`` is a source of random numbers."""
    if not isinstance(source, (random.Random, np.random.RandomState, np.random.Generator)):
        raise InvalidType("Checkpoints: also must hold random.Random, numpy.random.RandomState or "
                          "numpy.random.Generator objects, got %s" % type(source).__name__)


def _plain(value):
    """Converts arrays to lists of numbers, for JSON."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    return _plain(value.tolist()) if isinstance(value, (np.ndarray, np.generic)) else value


def state_of(source: Source) -> Any:
    """Returns the state as plain data."""
    if isinstance(source, random.Random):
        return _plain(source.getstate())
    if isinstance(source, np.random.RandomState):
        return _plain(source.get_state(legacy=False))
    return _plain(source.bit_generator.state)


def set_state(source: Source, state: Any) -> None:
    """Sets ``source`` to a state of :func:`state_of`."""
    if isinstance(source, random.Random):
        source.setstate((state[0], tuple(state[1]), state[2]))
    elif isinstance(source, np.random.RandomState):
        source.set_state(_arrays(state))
    else:
        source.bit_generator.state = _arrays(state)


def _arrays(state):
    """Converts lists of numbers to the arrays that NumPy requires."""
    if isinstance(state, dict):
        return {key: _arrays(item) for key, item in state.items()}
    return np.array(state, np.uint64 if max(state) >= 2**32 else np.uint32) if isinstance(state, list) else state


def everywhere(also: Any) -> list[Any]:
    """Returns the states of Python's and NumPy's global generators and of the sources ``also``."""
    return [state_of(source) for source in _sources(also)]


def set_everywhere(also: Any, states: Any) -> None:
    """Sets these generators to the states of :func:`everywhere`."""
    for source, state in zip(_sources(also), states):
        set_state(source, state)


def _sources(also):
    return [random._inst, np.random.mtrand._rand, *also]
