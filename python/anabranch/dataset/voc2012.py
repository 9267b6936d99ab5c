"""Names of Fluid's ``dataset.voc2012`` that are available here. Written by tools/generate_modules.py."""
from typing import TYPE_CHECKING as _TYPE_CHECKING

from .. import _on_demand

if _TYPE_CHECKING:
    from ..datasets.voc2012 import VOC_MD5 as VOC_MD5
    from ..datasets.voc2012 import VOC_URL as VOC_URL
    from ..datasets.voc2012 import test, train, val

__all__ = [
    "test", "train", "val",
]

_on_demand.give(__name__, {
    "..datasets.voc2012": "VOC_MD5 VOC_URL test train val",
})
