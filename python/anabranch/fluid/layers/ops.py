"""Names of Fluid's ``fluid.layers.ops`` that are available here. Written by tools/generate_modules.py."""
from typing import TYPE_CHECKING as _TYPE_CHECKING

from ... import _on_demand

if _TYPE_CHECKING:
    from ._generated_activations import (
        gelu,
        hard_shrink,
        logsigmoid,
        sigmoid,
        softplus,
        softshrink,
        softsign,
        tanh,
        tanh_shrink,
        thresholded_relu,
    )
    from ._generated_functions import (
        abs,
        acos,
        asin,
        atan,
        ceil,
        cos,
        erf,
        exp,
        floor,
        reciprocal,
        round,
        rsqrt,
        sin,
        sqrt,
        square,
    )
    from ._generated_reductions import cumsum

__all__ = [
    "abs", "acos", "asin", "atan", "ceil", "cos", "cumsum", "erf", "exp", "floor", "gelu", "hard_shrink",
    "logsigmoid", "reciprocal", "round", "rsqrt", "sigmoid", "sin", "softplus", "softshrink", "softsign", "sqrt",
    "square", "tanh", "tanh_shrink", "thresholded_relu",
]

_on_demand.give(__name__, {
    "._generated_activations":
        "gelu hard_shrink logsigmoid sigmoid softplus softshrink softsign tanh tanh_shrink thresholded_relu",
    "._generated_functions": "abs acos asin atan ceil cos erf exp floor reciprocal round rsqrt sin sqrt square",
    "._generated_reductions": "cumsum",
})
