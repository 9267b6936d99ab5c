"""The names of Fluid's ``batch`` that are here. Written by tools/generate_modules.py."""
from .fluid.reading.decorators import batch

__all__ = [
    "batch",
]
