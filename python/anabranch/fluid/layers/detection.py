"""The names of Fluid's ``fluid.layers.detection`` that are here. Written by tools/generate_modules.py."""
from .scores import sigmoid_focal_loss

__all__ = [
    "sigmoid_focal_loss",
]
