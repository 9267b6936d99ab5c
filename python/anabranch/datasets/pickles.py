"""Reads pickles of numbers, strings, arrays and their containers. Others may run code when they are loaded."""
from __future__ import annotations

import pickle
from typing import Any

from ..fluid.errors import InvalidValue

_ARRAYS = {(module, name) for module in ("numpy.core.multiarray", "numpy._core.multiarray")
           for name in ("_reconstruct", "scalar")}
_TAKEN = _ARRAYS | {("numpy", "ndarray"), ("numpy", "dtype"), ("_codecs", "encode")}


class _Numbers(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _TAKEN:
            raise InvalidValue("a pickle must have only numbers, strings, arrays and their containers, got %s.%s"
                               % (module, name))
        return super().find_class(module, name)


def load(file: Any, encoding: str = "ASCII") -> Any:
    """Reads one object.

    Args:
        file (file): binary file, open for reading.
        encoding (str): encoding of the strings of Python 2, or "bytes". Default "ASCII".

    Returns:
        object: of numbers, strings, arrays and their containers.

    Raises:
        ValueError: the pickle names a different class or function.
    """
    return _Numbers(file, encoding=encoding).load()
