"""Text, bytes and numbers that behave alike in Python 2 and 3: the names of ``paddle.compat``."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .fluid.errors import InvalidType, Violated

__all__ = ["long_type", "to_text", "to_bytes", "round", "floor_division", "get_exception_message"]

int_type = int
long_type = int


def _each(obj: Any, one: Callable[[Any], Any], inplace: bool) -> Any:
    """``one`` of an object, or of each item of a list or set, replaced in place if ``inplace`` is set."""
    if not isinstance(obj, (list, set)):
        return one(obj)
    made = [one(item) for item in obj]
    if not inplace:
        return type(obj)(made)
    obj.clear()
    if isinstance(obj, list):
        obj.extend(made)
    else:
        obj.update(made)
    return obj


def to_text(obj: Any, encoding: str = "utf-8", inplace: bool = False) -> Any:
    """Converts bytes, or the bytes in a list, set or dict, to str.

    Args:
        obj: bytes, or a list, set or dict that contains bytes. Anything else is returned unchanged.
        encoding (str): encoding of the bytes. Default utf-8.
        inplace (bool): changes the list or set itself. Default False.

    Returns:
        ``obj``, with str instead of bytes.

    Raises:
        UnicodeDecodeError: bytes that are not of this encoding.

    >>> to_text([b"a", "b", 3])
    ['a', 'b', 3]
    """
    def one(item):
        return item.decode(encoding) if isinstance(item, bytes) else item
    if isinstance(obj, dict):
        made = {one(key): one(value) for key, value in obj.items()}
        if not inplace:
            return made
        obj.clear()
        obj.update(made)
        return obj
    return _each(obj, one, inplace)


def to_bytes(obj: Any, encoding: str = "utf-8", inplace: bool = False) -> Any:
    """Converts a str, or the strings in a list or set, to bytes.

    Args:
        obj: str or bytes, or a list or set of them; None is returned unchanged.
        encoding (str): encoding of the bytes. Default utf-8.
        inplace (bool): changes the list or set itself. Default False.

    Returns:
        ``obj``, with bytes instead of str.

    Raises:
        TypeError: the value has the wrong type.

    >>> to_bytes({"x"})
    {b'x'}
    """
    def one(item):
        if item is None or isinstance(item, bytes):
            return item
        if not isinstance(item, str):
            raise InvalidType("to_bytes: obj must be text, got %s" % type(item).__name__)
        return item.encode(encoding)
    return _each(obj, one, inplace)


def round(x: float, d: int = 0) -> float:
    """The nearest number with ``d`` decimals; halves are rounded away from zero, as in Python 2.

    Args:
        x (float): a finite number, or NaN, which gives 0.
        d (int): decimals. Default 0.

    Returns:
        float: rounded.

    >>> round(2.5), round(-0.5)
    (3.0, -1.0)
    """
    if math.isnan(x):
        return 0.0
    scale = 10 ** d
    return math.copysign(math.floor(abs(x) * scale + 0.5) / scale, x)


def floor_division(x: float, y: float) -> float:
    """``x // y``.

    >>> floor_division(-7, 2)
    -4
    """
    return x // y


def get_exception_message(exc: BaseException) -> str:
    """The text of an exception. Raises AssertionError when there is none.

    >>> get_exception_message(ValueError("x"))
    'x'
    """
    if exc is None:
        raise Violated("get_exception_message: exc must be an exception, got None")
    return str(exc)
