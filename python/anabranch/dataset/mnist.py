"""The names of Fluid's ``dataset.mnist`` that are here. Written by tools/generate_modules.py."""
from ..datasets.mnist import test, train

__all__ = [
    "test", "train",
]
