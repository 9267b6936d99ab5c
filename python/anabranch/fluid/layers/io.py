"""Names of Fluid's ``fluid.layers.io`` that are available here. Written by tools/generate_modules.py."""
from typing import TYPE_CHECKING as _TYPE_CHECKING

from ... import _on_demand

if _TYPE_CHECKING:
    from .feeders import create_py_reader_by_data, double_buffer, py_reader, read_file
    from .inputs import data
    from .loads import load

__all__ = [
    "create_py_reader_by_data", "data", "double_buffer", "load", "py_reader", "read_file",
]

_on_demand.give(__name__, {
    ".feeders": "create_py_reader_by_data double_buffer py_reader read_file",
    ".inputs": "data",
    ".loads": "load",
})
