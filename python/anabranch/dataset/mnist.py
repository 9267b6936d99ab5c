"""Names of Fluid's ``dataset.mnist`` that are available here. Written by tools/generate_modules.py."""
from typing import TYPE_CHECKING as _TYPE_CHECKING

from .. import _on_demand

if _TYPE_CHECKING:
    from ..datasets.mnist import TEST_IMAGE_MD5 as TEST_IMAGE_MD5
    from ..datasets.mnist import TEST_IMAGE_URL as TEST_IMAGE_URL
    from ..datasets.mnist import TEST_LABEL_MD5 as TEST_LABEL_MD5
    from ..datasets.mnist import TEST_LABEL_URL as TEST_LABEL_URL
    from ..datasets.mnist import TRAIN_IMAGE_MD5 as TRAIN_IMAGE_MD5
    from ..datasets.mnist import TRAIN_IMAGE_URL as TRAIN_IMAGE_URL
    from ..datasets.mnist import TRAIN_LABEL_MD5 as TRAIN_LABEL_MD5
    from ..datasets.mnist import TRAIN_LABEL_URL as TRAIN_LABEL_URL
    from ..datasets.mnist import URL_PREFIX as URL_PREFIX
    from ..datasets.mnist import reader_creator as reader_creator
    from ..datasets.mnist import test, train

__all__ = [
    "test", "train",
]

_on_demand.give(__name__, {
    "..datasets.mnist":
        "TEST_IMAGE_MD5 TEST_IMAGE_URL TEST_LABEL_MD5 TEST_LABEL_URL TRAIN_IMAGE_MD5 TRAIN_IMAGE_URL "
        "TRAIN_LABEL_MD5 TRAIN_LABEL_URL URL_PREFIX reader_creator test train",
})
