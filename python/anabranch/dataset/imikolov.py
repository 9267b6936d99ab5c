"""Names of Fluid's ``dataset.imikolov`` that are available here. Written by tools/generate_modules.py."""
from typing import TYPE_CHECKING as _TYPE_CHECKING

from .. import _on_demand

if _TYPE_CHECKING:
    from ..datasets.imikolov import MD5 as MD5
    from ..datasets.imikolov import URL as URL
    from ..datasets.imikolov import DataType as DataType
    from ..datasets.imikolov import build_dict, test, train
    from ..datasets.imikolov import reader_creator as reader_creator
    from ..datasets.imikolov import word_count as word_count

__all__ = [
    "build_dict", "test", "train",
]

_on_demand.give(__name__, {
    "..datasets.imikolov": "DataType MD5 URL build_dict reader_creator test train word_count",
})
