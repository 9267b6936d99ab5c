"""The name that programs import: ``anabranch.dataset.mnist`` is :mod:`anabranch.datasets.mnist`."""
from .._on_demand import modules as _modules
from . import mnist

__all__ = ["mnist"]

__getattr__ = _modules(__name__, "cifar", "common", "conll05", "image", "imdb", "imikolov", "movielens", "uci_housing",
                       "wmt14", "wmt16")
