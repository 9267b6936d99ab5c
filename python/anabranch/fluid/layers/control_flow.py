"""The names of Fluid's ``fluid.layers.control_flow`` that are here. Written by tools/generate_modules.py."""
from ._generated_elementwise import equal, greater_equal, greater_than, less_equal, less_than, not_equal
from .arrays import array_length, array_read, array_write, create_array
from .branches import Switch, case, cond, switch_case
from .loops import While, while_loop
from .query import increment, is_empty

__all__ = [
    "Switch", "While", "array_length", "array_read", "array_write", "case", "cond", "create_array", "equal",
    "greater_equal", "greater_than", "increment", "is_empty", "less_equal", "less_than", "not_equal", "switch_case",
    "while_loop",
]
