"""Names of Fluid's ``dataset.mnist`` that are available here. Written by tools/generate_modules.py."""
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
