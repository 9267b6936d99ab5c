"""Names of Fluid's ``batch`` that are available here. Written by tools/generate_modules.py."""
from typing import TYPE_CHECKING as _TYPE_CHECKING

from . import _on_demand

if _TYPE_CHECKING:
    from .fluid.reading.decorators import batch

__all__ = [
    "batch",
]

_on_demand.give(__name__, {
    ".fluid.reading.decorators": "batch",
})
