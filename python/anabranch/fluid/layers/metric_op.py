"""Names of Fluid's ``fluid.layers.metric_op`` that are available here. Written by tools/generate_modules.py."""
from .metric import accuracy, auc

__all__ = [
    "accuracy", "auc",
]
