"""The name that programs import: ``anabranch.dataset.mnist`` is :mod:`anabranch.datasets.mnist`."""
from . import mnist

__all__ = ["mnist"]
