"""The names of Fluid's ``dataset.cifar`` that are here. Written by tools/generate_modules.py."""
from ..datasets.cifar import test10, test100, train10, train100

__all__ = [
    "test10", "test100", "train10", "train100",
]
