"""Names of Fluid's ``fluid.trainer_factory`` that are available here. Written by tools/generate_modules.py."""
from .reading.dataset_loop import FetchHandler

__all__ = [
    "FetchHandler",
]
