"""The names of Fluid's ``dataset.flowers`` that are here. Written by tools/generate_modules.py."""
from ..datasets.flowers import test, train, valid

__all__ = [
    "test", "train", "valid",
]
