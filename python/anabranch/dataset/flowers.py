"""Names of Fluid's ``dataset.flowers`` that are available here. Written by tools/generate_modules.py."""
from typing import TYPE_CHECKING as _TYPE_CHECKING

from .. import _on_demand

if _TYPE_CHECKING:
    from ..datasets.flowers import DATA_MD5 as DATA_MD5
    from ..datasets.flowers import DATA_URL as DATA_URL
    from ..datasets.flowers import LABEL_MD5 as LABEL_MD5
    from ..datasets.flowers import LABEL_URL as LABEL_URL
    from ..datasets.flowers import SETID_MD5 as SETID_MD5
    from ..datasets.flowers import SETID_URL as SETID_URL
    from ..datasets.flowers import default_mapper as default_mapper
    from ..datasets.flowers import test, train, valid
    from ..datasets.flowers import test_mapper as test_mapper
    from ..datasets.flowers import train_mapper as train_mapper

__all__ = [
    "test", "train", "valid",
]

_on_demand.give(__name__, {
    "..datasets.flowers":
        "DATA_MD5 DATA_URL LABEL_MD5 LABEL_URL SETID_MD5 SETID_URL default_mapper test test_mapper train "
        "train_mapper valid",
})
