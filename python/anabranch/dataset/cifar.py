"""Names of Fluid's ``dataset.cifar`` that are available here. Written by tools/generate_modules.py."""
from typing import TYPE_CHECKING as _TYPE_CHECKING

from .. import _on_demand

if _TYPE_CHECKING:
    from ..datasets.cifar import CIFAR10_MD5 as CIFAR10_MD5
    from ..datasets.cifar import CIFAR10_URL as CIFAR10_URL
    from ..datasets.cifar import CIFAR100_MD5 as CIFAR100_MD5
    from ..datasets.cifar import CIFAR100_URL as CIFAR100_URL
    from ..datasets.cifar import URL_PREFIX as URL_PREFIX
    from ..datasets.cifar import reader_creator as reader_creator
    from ..datasets.cifar import test10, test100, train10, train100

__all__ = [
    "test10", "test100", "train10", "train100",
]

_on_demand.give(__name__, {
    "..datasets.cifar":
        "CIFAR100_MD5 CIFAR100_URL CIFAR10_MD5 CIFAR10_URL URL_PREFIX reader_creator test10 test100 train10 "
        "train100",
})
