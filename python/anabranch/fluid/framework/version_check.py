"""require_version, and the unsupported load_op_library."""
from __future__ import annotations

import re
from typing import Any

from .. import arguments
from ..errors import EnforceNotMet, InvalidType, InvalidValue, Unsupported

#: The version of the API that this package follows.
FLUID_VERSION = "1.8.5"
#: The version that program files of this API hold.
FILE_VERSION = 1008005


def _numbers(what, text):
    if not isinstance(text, str):
        raise InvalidType("require_version: %s must be a str, got %s" % (what, type(text).__name__))
    if not re.fullmatch(r"\d+(\.\d+){0,3}", text):
        raise InvalidValue("require_version: %s must look like '1.8.5', got %r" % (what, text))
    numbers = [int(n) for n in text.split(".")]
    return tuple(numbers + [0] * (4 - len(numbers)))


def require_version(min_version: str, max_version: str | None = None) -> None:
    """Raises an error if the API version (1.8.5) is outside of the given limits.

    Args:
        min_version (str): lowest accepted version, up to four numbers with dots.
        max_version (str, optional): highest accepted version.

    Raises:
        TypeError, ValueError: an argument has the wrong form. Exception: the version lies outside.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.require_version("1.6.0")
    """
    low = _numbers("min_version", min_version)
    high = None if max_version is None else _numbers("max_version", max_version)
    own = _numbers("version", FLUID_VERSION)
    if own < low or (high is not None and own > high):
        raise EnforceNotMet("this package follows Fluid %s; the program requires %s%s"
                            % (FLUID_VERSION, min_version, "" if max_version is None else " to " + max_version))


def load_op_library(lib_filename: Any) -> Any:
    """Raises NotImplementedError: operators from Fluid's shared libraries are not supported.

    Raises:
        NotImplementedError: always; such libraries require the binary interface of Fluid 1.8.5.
    """
    raise Unsupported("load_op_library is not supported: %s is built for another engine. Add operators in C++, see "
                      "ARCHITECTURE.md" % (lib_filename,))


arguments.explain(globals())
