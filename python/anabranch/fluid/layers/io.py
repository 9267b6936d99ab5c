"""Names of Fluid's ``fluid.layers.io`` that are available here. Written by tools/generate_modules.py."""
from .feeders import create_py_reader_by_data, double_buffer, py_reader, read_file
from .inputs import data
from .loads import load

__all__ = [
    "create_py_reader_by_data", "data", "double_buffer", "load", "py_reader", "read_file",
]
