"""Names of Fluid's ``fluid.layers.metric_op`` that are available here. Written by tools/generate_modules.py."""
from typing import TYPE_CHECKING as _TYPE_CHECKING

from ... import _on_demand

if _TYPE_CHECKING:
    from .metric import accuracy, auc

__all__ = [
    "accuracy", "auc",
]

_on_demand.give(__name__, {
    ".metric": "accuracy auc",
})
