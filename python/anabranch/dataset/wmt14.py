"""Names of Fluid's ``dataset.wmt14`` that are available here. Written by tools/generate_modules.py."""
from typing import TYPE_CHECKING as _TYPE_CHECKING

from .. import _on_demand

if _TYPE_CHECKING:
    from ..datasets.wmt14 import MD5_DEV_TEST as MD5_DEV_TEST
    from ..datasets.wmt14 import MD5_MODEL as MD5_MODEL
    from ..datasets.wmt14 import MD5_TRAIN as MD5_TRAIN
    from ..datasets.wmt14 import URL_DEV_TEST as URL_DEV_TEST
    from ..datasets.wmt14 import URL_MODEL as URL_MODEL
    from ..datasets.wmt14 import URL_TRAIN as URL_TRAIN
    from ..datasets.wmt14 import get_dict, test, train

__all__ = [
    "get_dict", "test", "train",
]

_on_demand.give(__name__, {
    "..datasets.wmt14": "MD5_DEV_TEST MD5_MODEL MD5_TRAIN URL_DEV_TEST URL_MODEL URL_TRAIN get_dict test train",
})
