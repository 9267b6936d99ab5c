"""The names of Fluid's ``dataset.wmt16`` that are here. Written by tools/generate_modules.py."""
from ..datasets.wmt16 import fetch, get_dict, test, train, validation

__all__ = [
    "fetch", "get_dict", "test", "train", "validation",
]
