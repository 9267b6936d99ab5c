"""The names of Fluid's ``fluid.transpiler`` that are here. Written by tools/generate_modules.py."""
from .legacy import memory_optimize, release_memory

__all__ = [
    "memory_optimize", "release_memory",
]
