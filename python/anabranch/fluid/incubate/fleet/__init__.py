"""Training with several processes, by parameter servers or by sums over all workers."""
from ...._on_demand import modules as _modules

__getattr__ = _modules(__name__, "base", "collective", "parameter_server", "utils")
