"""The names of Fluid's ``dataset.wmt14`` that are here. Written by tools/generate_modules.py."""
from ..datasets.wmt14 import get_dict, test, train

__all__ = [
    "get_dict", "test", "train",
]
