"""Names of Fluid's ``fluid.layers.tensor`` that are available here. Written by tools/generate_modules.py."""
from typing import TYPE_CHECKING as _TYPE_CHECKING

from ... import _on_demand

if _TYPE_CHECKING:
    from ..framework import Variable as Variable
    from ._generated_products import kron
    from ._generated_reductions import has_inf, has_nan, isfinite
    from .arrays import tensor_array_to_tensor
    from .composed import full, full_like
    from .copies import assign, cast, sums
    from .create import create_global_var, create_parameter, create_tensor
    from .diagonals import trace, tril, triu
    from .fill import (
        diag,
        eye,
        fill_constant,
        fill_constant_batch_size_like,
        linspace,
        ones,
        ones_like,
        range,
        zeros,
        zeros_like,
    )
    from .index import reverse
    from .joins import concat
    from .search import argmax, argmin, argsort
    from .short_names import arange

__all__ = [
    "arange", "argmax", "argmin", "argsort", "assign", "cast", "concat", "create_global_var", "create_parameter",
    "create_tensor", "diag", "eye", "fill_constant", "fill_constant_batch_size_like", "full", "full_like", "has_inf",
    "has_nan", "isfinite", "kron", "linspace", "ones", "ones_like", "range", "reverse", "sums",
    "tensor_array_to_tensor", "trace", "tril", "triu", "zeros", "zeros_like",
]

_on_demand.give(__name__, {
    "..framework": "Variable",
    "._generated_products": "kron",
    "._generated_reductions": "has_inf has_nan isfinite",
    ".arrays": "tensor_array_to_tensor",
    ".composed": "full full_like",
    ".copies": "assign cast sums",
    ".create": "create_global_var create_parameter create_tensor",
    ".diagonals": "trace tril triu",
    ".fill": "diag eye fill_constant fill_constant_batch_size_like linspace ones ones_like range zeros zeros_like",
    ".index": "reverse",
    ".joins": "concat",
    ".search": "argmax argmin argsort",
    ".short_names": "arange",
})
