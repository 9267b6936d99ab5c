"""Names of Fluid's ``dataset.sentiment`` that are available here. Written by tools/generate_modules.py."""
from ..datasets.sentiment import MD5 as MD5
from ..datasets.sentiment import URL as URL
from ..datasets.sentiment import get_word_dict, test, train

__all__ = [
    "get_word_dict", "test", "train",
]
