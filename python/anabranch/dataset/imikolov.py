"""Names of Fluid's ``dataset.imikolov`` that are available here. Written by tools/generate_modules.py."""
from ..datasets.imikolov import MD5 as MD5
from ..datasets.imikolov import URL as URL
from ..datasets.imikolov import DataType as DataType
from ..datasets.imikolov import build_dict, test, train

__all__ = [
    "build_dict", "test", "train",
]
