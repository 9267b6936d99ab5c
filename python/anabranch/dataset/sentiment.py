"""The names of Fluid's ``dataset.sentiment`` that are here. Written by tools/generate_modules.py."""
from ..datasets.sentiment import get_word_dict, test, train

__all__ = [
    "get_word_dict", "test", "train",
]
