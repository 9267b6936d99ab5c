"""Names of Fluid's ``dataset.wmt16`` that are available here. Written by tools/generate_modules.py."""
from typing import TYPE_CHECKING as _TYPE_CHECKING

from .. import _on_demand

if _TYPE_CHECKING:
    from ..datasets.wmt16 import DATA_MD5 as DATA_MD5
    from ..datasets.wmt16 import DATA_URL as DATA_URL
    from ..datasets.wmt16 import fetch, get_dict, test, train, validation

__all__ = [
    "fetch", "get_dict", "test", "train", "validation",
]

_on_demand.give(__name__, {
    "..datasets.wmt16": "DATA_MD5 DATA_URL fetch get_dict test train validation",
})
