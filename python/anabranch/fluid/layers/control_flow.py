"""The names of Fluid's ``fluid.layers.control_flow`` that are here. Written by tools/generate_modules.py."""
from ._generated_elementwise import equal, greater_equal, greater_than, less_equal, less_than, not_equal
from .branches import Switch, case, cond, switch_case
from .callables import Print
from .query import increment, is_empty

__all__ = [
    "Print", "Switch", "case", "cond", "equal", "greater_equal", "greater_than", "increment", "is_empty",
    "less_equal", "less_than", "not_equal", "switch_case",
]
