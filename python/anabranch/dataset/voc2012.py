"""Names of Fluid's ``dataset.voc2012`` that are available here. Written by tools/generate_modules.py."""
from ..datasets.voc2012 import VOC_MD5 as VOC_MD5
from ..datasets.voc2012 import VOC_URL as VOC_URL
from ..datasets.voc2012 import test, train, val

__all__ = [
    "test", "train", "val",
]
