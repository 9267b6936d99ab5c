"""``anabranch.hash_ids``, which computes the ids to which data sets map text."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _core
from .fluid import arguments
from .fluid.errors import InvalidType, InvalidValue

__all__ = ["hash_ids"]


def hash_ids(values: Sequence[str | bytes | int] | Any, salt: str | int, buckets: int) -> Any:
    """Computes the ids that a data set gives to the text of a column with the option ``hash``.

    Use it wherever raw values enter a model that was trained on such a column, for example before a request to a
    predictor. The ids do not depend on the machine, and stay the same in later versions.

    Args:
        values (list or numpy.ndarray): texts as they are in the file, without quotes. An int is hashed as its digits.
        salt (str|int): the salt of the column in the format of the data set. Without an option ``salt``, it is the name
            of the column, or its number if the format refers to the column by number.
        buckets (int): number of ids, at least 1: the number after the option ``hash``.

    Returns:
        numpy.ndarray: int64, of the shape of ``values``.

    Raises:
        TypeError: a value is neither text nor an integer, or ``salt`` is neither a str nor an int.
        ValueError: ``buckets`` is below 1, or ``salt`` is a number below 0.

    Examples:
        >>> import anabranch
        >>> anabranch.hash_ids(["red", "blue", "red"], salt="kind", buckets=100).tolist()
        [94, 18, 94]
    """
    if isinstance(salt, bool) or not isinstance(salt, (str, int)):
        raise InvalidType("hash_ids: salt must be a str or the number of a column, got %s" % type(salt).__name__)
    if isinstance(salt, int) and salt < 0:
        raise InvalidValue("hash_ids: salt must be a name or a number of at least 0, got %d" % salt)
    if isinstance(buckets, bool) or not isinstance(buckets, (int, np.integer)):
        raise InvalidType("hash_ids: buckets must be an int, got %s" % type(buckets).__name__)
    if not 1 <= buckets < 2 ** 63:
        raise InvalidValue("hash_ids: buckets must be from 1 to 2^63 - 1, got %d" % buckets)
    if isinstance(values, (str, bytes)):
        raise InvalidType("hash_ids: values must be a list or an array, got %s: write [%r]"
                          % (type(values).__name__, values))
    array = np.asarray(values, dtype=object)
    ids = _core.hash_ids([_bytes(value) for value in array.reshape(-1)], salt, int(buckets))
    return np.array(ids, "int64").reshape(array.shape)


def _bytes(value):
    if isinstance(value, (bytes, str)):
        return value
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return b"%d" % int(value)
    raise InvalidType("hash_ids: a value must be a str, bytes or an int, got %s %r, which different programs may write "
                      "as different texts" % (type(value).__name__, value))


arguments.explain(globals())
