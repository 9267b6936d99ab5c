"""Splitting one program across processes: parameter servers and workers, or workers that sum their gradients."""
from ..legacy import memory_optimize, release_memory
from .distribute_transpiler import DistributeTranspiler, DistributeTranspilerConfig
from .ps_dispatcher import HashName, RoundRobin

__all__ = ["DistributeTranspiler", "DistributeTranspilerConfig", "HashName", "RoundRobin", "memory_optimize",
           "release_memory"]
