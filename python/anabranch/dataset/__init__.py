"""The name that programs import: ``anabranch.dataset.mnist`` is :mod:`anabranch.datasets.mnist`."""
from .._on_demand import modules as _modules
from . import mnist

__all__ = ["mnist"]

__getattr__ = _modules(__name__, "cifar", "common", "conll05", "flowers", "image", "imdb", "imikolov", "movielens",
                       "mq2007", "sentiment", "uci_housing", "voc2012", "wmt14", "wmt16")
