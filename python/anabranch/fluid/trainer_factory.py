"""Names of Fluid's ``fluid.trainer_factory`` that are available here. Written by tools/generate_modules.py."""
from typing import TYPE_CHECKING as _TYPE_CHECKING

from .. import _on_demand

if _TYPE_CHECKING:
    from .reading.dataset_loop import FetchHandler

__all__ = [
    "FetchHandler",
]

_on_demand.give(__name__, {
    ".reading.dataset_loop": "FetchHandler",
})
