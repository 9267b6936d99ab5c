"""The names of Fluid's ``dataset.voc2012`` that are here. Written by tools/generate_modules.py."""
from ..datasets.voc2012 import test, train, val

__all__ = [
    "test", "train", "val",
]
