"""Fleets with parameter servers."""
from ....._on_demand import modules as _modules

__getattr__ = _modules(__name__, "distribute_transpiler", "pslib", "version")
