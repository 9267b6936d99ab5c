"""Nested structures of values, and arguments that are one number or a list of numbers. The names of
``fluid.layers.utils``."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import InvalidType, InvalidValue
from . import structures


def is_sequence(seq: Any) -> bool:
    """bool: whether a value is a list, a tuple or a dict.

    >>> is_sequence([1]), is_sequence("ab")
    (True, False)
    """
    return isinstance(seq, (list, tuple, dict))


def flatten(nest: Any) -> list[Any]:
    """list: the leaves; those of a dict in the order of its keys.

    >>> flatten({"b": [1, 2], "a": (3, {"z": 4})})
    [3, 4, 1, 2]
    """
    return structures.flat(nest)


def pack_sequence_as(structure: Any, flat_sequence: Any) -> Any:
    """Returns the structure with other leaves. Raises ValueError if their number differs.

    >>> pack_sequence_as({"b": 0, "a": (0, [0])}, [1, 2, 3])
    {'b': 3, 'a': (1, [2])}
    """
    leaves = len(flatten(structure))
    if len(flat_sequence) != leaves:
        raise InvalidValue("pack_sequence_as: flat_sequence must have %d elements, as the structure, got %d"
                           % (leaves, len(flat_sequence)))
    return structures.rebuilt(structure, iter(flat_sequence))


def _same(first, second, check_types):
    if is_sequence(first) != is_sequence(second):
        raise InvalidValue("The two structures don't have the same nested structure: %s and %s" % (first, second))
    if not is_sequence(first):
        return
    if check_types and type(first) is not type(second):
        raise InvalidType("The two structures don't have the same sequence type: %s and %s"
                          % (type(first).__name__, type(second).__name__))
    keys = [sorted(nest) if isinstance(nest, dict) else list(range(len(nest))) for nest in (first, second)]
    if keys[0] != keys[1]:
        raise InvalidValue("The two structures don't have the same parts: %s and %s" % (first, second))
    for key in keys[0]:
        _same(first[key], second[key], check_types)


def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True) -> None:
    """Checks that two structures are equal. Raises ValueError if their elements differ in number, and, with
    ``check_types``, TypeError if the types of sequences differ.

    >>> assert_same_structure([1, (2, 3)], [4, (5, 6)])
    >>> assert_same_structure([1, 2], (1, 2), check_types=False)
    """
    if len(flatten(nest1)) != len(flatten(nest2)):
        raise InvalidValue("The two structures don't have the same number of elements: %s and %s" % (nest1, nest2))
    _same(nest1, nest2, check_types)


def map_structure(func: Callable[..., Any], *structure: Any) -> Any:
    """Applies ``func`` to the leaves at the same position of several equal structures, and returns the results in this
    structure.

    >>> map_structure(lambda a, b: a + b, [1, (2, 3)], [4, (5, 6)])
    [5, (7, 9)]
    """
    for other in structure[1:]:
        assert_same_structure(structure[0], other)
    return structures.mapped(func, *structure)


def convert_to_list(value: Any, n: int, name: str, dtype: type = int) -> list[Any]:
    """Returns a number repeated ``n`` times, or a list of ``n`` numbers. Raises ValueError, which mentions ``name``,
    for anything else.

    >>> convert_to_list(3, 2, "stride"), convert_to_list((1, 2), 2, "stride")
    ([3, 3], [1, 2])
    """
    if isinstance(value, dtype):
        return [value] * n
    try:
        values = list(value)
    except TypeError:
        values = None
    if values is None or len(values) != n or not all(isinstance(v, dtype) for v in values):
        raise InvalidValue("The %s must be one %s or a list of %d, got %s" % (name, dtype.__name__, n, value))
    return values
