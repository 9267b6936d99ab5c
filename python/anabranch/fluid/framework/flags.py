"""Process flags ``FLAGS_*``, which are read from the environment at import and changed by ``set_flags``."""
from __future__ import annotations

import warnings
from collections.abc import Iterator, MutableMapping, Sequence
from typing import Any

from ... import _core
from ..._near import near
from .. import arguments
from ..errors import InvalidType, InvalidValue, also

for _warning in _core.environment_flag_warnings():
    warnings.warn(_warning, RuntimeWarning, stacklevel=2)


def _known(name, flags):
    if not isinstance(name, str):
        raise InvalidType("a flag name must be a str, got %s" % type(name).__name__)
    if name not in flags:
        # Without the common prefix, which would make any two names similar.
        similar = near(name.removeprefix("FLAGS_"), [flag.removeprefix("FLAGS_") for flag in flags])
        raise InvalidValue("there is no flag %r%s" % (
            name, similar.replace("mean ", "mean FLAGS_").replace(", ", ", FLAGS_")))
    return flags[name][0]


def get_flags(flags: str | Sequence[Any]) -> dict[str, Any]:
    """Returns the values of flags.

    Args:
        flags (str|list|tuple): one name or several, with the prefix ``FLAGS_``.

    Returns:
        dict: name -> value.

    Raises:
        ValueError: a flag is unknown.
        TypeError: a name is not a str.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.get_flags("FLAGS_check_nan_inf")
        {'FLAGS_check_nan_inf': False}
    """
    if isinstance(flags, str):
        flags = [flags]
    if not isinstance(flags, (list, tuple)):
        raise InvalidType("get_flags: flags must be a str, list or tuple, got %s" % type(flags).__name__)
    known = _core.all_flags()
    return {name: _known(name, known) for name in flags}


def set_flags(flags: dict[str, Any]) -> None:
    """Changes flags of the process.

    Args:
        flags (dict): name -> value; a float flag also accepts an int, a bool flag also 0 and 1.

    Raises:
        ValueError: a flag is unknown.
        TypeError: ``flags`` is not a dict, or a value has the wrong type. A failed call changes no flag.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.set_flags({"FLAGS_eager_delete_tensor_gb": 1.0})
        >>> fluid.set_flags({"FLAGS_eager_delete_tensor_gb": 0.0})
    """
    if not isinstance(flags, dict):
        raise InvalidType("set_flags: flags must be a dict, got %s" % type(flags).__name__)
    known = _core.all_flags()
    checked = {}
    for name, value in flags.items():
        kind = type(_known(name, known))
        allowed = {float: (int, float), bool: (bool, int), int: (int,), str: (str,)}[kind]
        if not isinstance(value, allowed) or (kind in (int, float) and isinstance(value, bool)):
            raise InvalidType("%s must be a %s, got %r" % (name, kind.__name__, value))
        checked[name] = kind(value)
    for name, value in checked.items():
        _core.set_flag(name, value)


class GlobalFlags(MutableMapping[str, Any]):
    """The flags of the process, as ``fluid.core.globals()`` returns them. Assigning to an item sets the flag.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> flags = fluid.core.globals()
        >>> flags["FLAGS_eager_delete_tensor_gb"] = 1.0
        >>> fluid.get_flags("FLAGS_eager_delete_tensor_gb")
        {'FLAGS_eager_delete_tensor_gb': 1.0}
        >>> flags["FLAGS_eager_delete_tensor_gb"] = 0.0
    """

    def __getitem__(self, name: str) -> Any:
        flags = _core.all_flags()
        if name not in flags:
            raise also(InvalidValue, KeyError)("there is no flag %r%s" % (name, near(name, flags)))
        return flags[name][0]

    def __setitem__(self, name: str, value: Any) -> None:
        set_flags({name: value})

    def __delitem__(self, name: str) -> None:
        raise InvalidType("flags cannot be deleted, got %r" % name)

    def __iter__(self) -> Iterator[str]:
        return iter(_core.all_flags())

    def __len__(self) -> int:
        return len(_core.all_flags())

    def is_public(self, name: str) -> bool:
        """Whether ``fluid.set_flags`` and ``fluid.get_flags`` accept the flag."""
        return name in self

    def __repr__(self) -> str:
        return repr(dict(self))


arguments.explain(globals())
