"""NumPy's numbers as Python's own. Scripts compute extents, axes and rates with NumPy (``np.prod(shape)``, a shape's
elements, a row of a table); wherever a layer takes a number or a list of numbers, NumPy's numbers have the same
effect as Python's."""
from __future__ import annotations

from typing import Any

import numpy as np


def is_numpy_number(value: Any) -> bool:
    """Returns whether ``value`` is a NumPy scalar or a zero-dimensional array."""
    return isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0)


def plain(value: Any) -> Any:
    """``value`` with numbers of NumPy replaced: itself, its elements if it is a list or tuple, the bounds of a slice.
    Anything else is returned as it is."""
    if is_numpy_number(value):
        return value.item()
    if type(value) in (list, tuple) and any(map(is_numpy_number, value)):
        return type(value)(map(plain, value))
    if isinstance(value, slice):
        return slice(plain(value.start), plain(value.stop), plain(value.step))
    return value
