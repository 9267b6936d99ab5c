"""Names of Fluid's ``dataset.imdb`` that are available here. Written by tools/generate_modules.py."""
from ..datasets.imdb import MD5 as MD5
from ..datasets.imdb import URL as URL
from ..datasets.imdb import build_dict, test, train
from ..datasets.imdb import word_dict as word_dict

__all__ = [
    "build_dict", "test", "train",
]
