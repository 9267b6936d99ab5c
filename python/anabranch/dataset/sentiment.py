"""Names of Fluid's ``dataset.sentiment`` that are available here. Written by tools/generate_modules.py."""
from typing import TYPE_CHECKING as _TYPE_CHECKING

from .. import _on_demand

if _TYPE_CHECKING:
    from ..datasets.sentiment import MD5 as MD5
    from ..datasets.sentiment import URL as URL
    from ..datasets.sentiment import get_word_dict, test, train

__all__ = [
    "get_word_dict", "test", "train",
]

_on_demand.give(__name__, {
    "..datasets.sentiment": "MD5 URL get_word_dict test train",
})
