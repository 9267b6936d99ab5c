"""Names of Fluid's ``batch`` that are available here. Written by tools/generate_modules.py."""
from .fluid.reading.decorators import batch

__all__ = [
    "batch",
]
