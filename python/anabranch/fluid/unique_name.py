"""Unique names such as ``fc_0``, ``fc_1`` and ``fc_0.w_0``. A replaceable generator keeps one counter per key."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from . import arguments
from .described import Described
from .errors import InvalidType

__all__ = ["generate", "switch", "guard"]


class UniqueNameGenerator(Described):
    """Counts the uses of each key. ``prefix`` is prepended to every name.

    >>> g = UniqueNameGenerator("A")
    >>> g("fc"), g("fc"), g("tmp")
    ('Afc_0', 'Afc_1', 'Atmp_0')
    """

    def __init__(self, prefix: Any = None) -> None:
        self.prefix = prefix or ""
        self.ids: dict[Any, Any] = {}

    def __call__(self, key: Any) -> Any:
        number = self.ids.get(key, 0)
        self.ids[key] = number + 1
        return "%s%s_%d" % (self.prefix, key, number)


class _ParameterNames:
    """Names of the parameters that were created with one generator, the second part of the result of :func:`switch`."""

    def __init__(self):
        self.names = set()

    def __call__(self, name):
        self.names.add(name)


generator = UniqueNameGenerator()
_parameter_names = _ParameterNames()


def generate(key: str) -> str:
    """Returns ``key_N``, where N counts from 0 for each key.

    Args:
        key (str): prefix of the name.

    Returns:
        str: a name that the current generator has not returned before.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> with fluid.unique_name.guard():
        ...     fluid.unique_name.generate("fc"), fluid.unique_name.generate("fc")
        ('fc_0', 'fc_1')
    """
    if not isinstance(key, str):
        raise InvalidType("unique_name.generate: key must be a str, got %r" % (key,))
    return generator(key)


def generate_with_ignorable_key(key: Any) -> Any:
    """Like :func:`generate`, for the names of temporaries, whose key has no meaning."""
    return generator(key)


def switch(new_generator: UniqueNameGenerator | None = None, new_para_name_checker: Any = None) -> tuple[Any, ...]:
    """Replaces the generator of the process.

    Args:
        new_generator (UniqueNameGenerator, optional): the new generator. Default: an empty generator.
        new_para_name_checker (optional): second element of an earlier result.

    Returns:
        tuple: the previous generator and names, to be restored with ``switch(*old)``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> old = fluid.unique_name.switch()
        >>> fluid.unique_name.generate("fc")
        'fc_0'
        >>> _ = fluid.unique_name.switch(*old)
    """
    global generator, _parameter_names
    old = generator, _parameter_names
    generator = UniqueNameGenerator() if new_generator is None else new_generator
    _parameter_names = _ParameterNames() if new_para_name_checker is None else new_para_name_checker
    return old


@contextlib.contextmanager
def guard(new_generator: str | bytes | UniqueNameGenerator | None = None) -> Iterator[Any]:
    """Context manager in which another generator counts the names. The previous one is restored afterwards.

    Args:
        new_generator (str|bytes|UniqueNameGenerator, optional): new generator. A text is the prefix of an empty
            generator.

    Raises:
        TypeError: ``new_generator`` has the wrong type.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> with fluid.unique_name.guard("A"):
        ...     fluid.unique_name.generate("fc")
        'Afc_0'
    """
    if isinstance(new_generator, bytes):
        new_generator = new_generator.decode()
    if isinstance(new_generator, str):
        new_generator = UniqueNameGenerator(new_generator)
    elif new_generator is not None and not callable(new_generator):
        raise InvalidType("unique_name.guard: new_generator must be a str, bytes or generator, got %r"
                          % (new_generator,))
    old = switch(new_generator)
    try:
        yield
    finally:
        switch(*old)


arguments.explain(globals())
