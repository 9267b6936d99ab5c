"""Parts of Fluid that were experimental in 1.8."""
from ..._on_demand import modules as _modules
from . import data_generator

__all__ = ["data_generator"]
__getattr__ = _modules(__name__, "fleet")
