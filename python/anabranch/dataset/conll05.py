"""The names of Fluid's ``dataset.conll05`` that are here. Written by tools/generate_modules.py."""
from ..datasets.conll05 import get_dict as get_dict
from ..datasets.conll05 import get_embedding
from ..datasets.conll05 import test as test

__all__ = [
    "get_embedding",
]
