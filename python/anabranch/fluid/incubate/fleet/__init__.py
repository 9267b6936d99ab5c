"""Training with several processes: with parameter servers, or with sums over all workers."""
from ...._on_demand import modules as _modules

__getattr__ = _modules(__name__, "base", "collective", "parameter_server", "utils")
