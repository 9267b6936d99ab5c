"""Names of Fluid's ``dataset.imdb`` that are available here. Written by tools/generate_modules.py."""
from typing import TYPE_CHECKING as _TYPE_CHECKING

from .. import _on_demand

if _TYPE_CHECKING:
    from ..datasets.imdb import MD5 as MD5
    from ..datasets.imdb import URL as URL
    from ..datasets.imdb import build_dict, test, train
    from ..datasets.imdb import reader_creator as reader_creator
    from ..datasets.imdb import tokenize as tokenize
    from ..datasets.imdb import word_dict as word_dict

__all__ = [
    "build_dict", "test", "train",
]

_on_demand.give(__name__, {
    "..datasets.imdb": "MD5 URL build_dict reader_creator test tokenize train word_dict",
})
