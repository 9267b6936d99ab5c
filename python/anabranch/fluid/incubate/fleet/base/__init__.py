"""Base classes of all fleets."""
from ....._on_demand import modules as _modules

__getattr__ = _modules(__name__, "fleet_base", "mode", "role_maker")
